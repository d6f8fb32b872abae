//! URI templates: what is matched can be made again, and what is made is matched. Names may have come in
//! another order.
//!
//! The first line is the template, the second a URI, the others are values: `-` for none, a text, or
//! several texts with a tab between them.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use mcp_proto::registry::uri_template::{Captured, Captures, MAX_URI, UriTemplate, Value};
use mcp_proto_fuzz::Input;

fuzz_target!(|data: &[u8]| -> Corpus {
    let mut input = Input::new(data);
    let (Ok(template), Ok(uri)) = (str::from_utf8(input.line()), str::from_utf8(input.line())) else {
        return Corpus::Reject;
    };
    let template = match UriTemplate::parse(template) {
        Ok(template) => template,
        Err(error) => {
            assert!(error.at <= template.len());
            return Corpus::Keep;
        }
    };
    let names: Vec<_> = template.variables().collect();

    let captures = template.matches(uri);
    if let Some(captures) = &captures {
        assert!(captures.iter().all(|value| names.contains(&value.name())));
    }
    if !is_reversible(&template) {
        return Corpus::Keep;
    }
    // `;name` of a pair without a value is taken only where a variable is called so.
    let nameless =
        |captures: &Captures<'_>| captures.iter().any(|v| v.pairs().any(|(_, text)| text.is_empty()));
    if let Some(captures) = captures
        && !nameless(&captures)
    {
        made_again(&template, &expand(&template, &captures));
    }

    let mut values = Vec::new();
    while !input.is_empty() {
        let Ok(line) = str::from_utf8(input.line()) else { return Corpus::Keep };
        values.push(match line {
            "-" => None,
            line if line.contains('\t') => Some(Value::from(line.split('\t').collect::<Vec<_>>())),
            line => Some(Value::from(line)),
        });
    }
    let value = |name: &str| {
        let at = names.iter().position(|known| *known == name)?;
        values.get(at).cloned().flatten()
    };
    made_again(&template, &template.expand(value));
    Corpus::Keep
});

/// Not if two variables share a name or could (one value need not fit both), and not with a prefix (a list
/// is not cut).
fn is_reversible(template: &UriTemplate) -> bool {
    let expressions = || template.as_str().split('{').skip(1).filter_map(|rest| rest.split('}').next());
    expressions().map(|expression| expression.split(',').count()).sum::<usize>()
        == template.variables().count()
        && !expressions().any(|expression| expression.contains([':', '%']))
}

fn made_again(template: &UriTemplate, uri: &str) {
    if uri.len() > MAX_URI {
        return;
    }
    let Some(captures) = template.matches(uri) else {
        panic!("{template} makes {uri} and does not match it")
    };
    let again = expand(template, &captures);
    if again != uri {
        let named = ["{?", "{&", "{;"].iter().any(|operator| template.as_str().contains(operator));
        assert!(named, "{template} makes {again} of {uri} with {captures:?}");
        assert_eq!(sorted(&again), sorted(uri), "{template} makes {again} of {uri} with {captures:?}");
    }
}

/// The bytes without their order. Whichever pair comes first has the `?`, if there is one.
fn sorted(uri: &str) -> Vec<u8> {
    let mut bytes: Vec<_> = uri.bytes().map(|byte| if byte == b'?' { b'&' } else { byte }).collect();
    bytes.sort_unstable();
    bytes
}

fn expand(template: &UriTemplate, captures: &Captures<'_>) -> String {
    template.expand(|name| captures.value(name).map(value))
}

fn value(captured: &Captured<'_>) -> Value<'static> {
    let pairs: Vec<_> =
        captured.pairs().map(|(name, value)| (name.to_owned().into(), value.to_owned().into())).collect();
    if pairs.iter().any(|(name, _)| name != captured.name()) {
        return Value::Pairs(pairs);
    }
    let mut items: Vec<_> = captured.items().map(str::to_owned).collect();
    if items.len() == 1 { items.remove(0).into() } else { items.into() }
}
