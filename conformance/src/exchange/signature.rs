//! A tool as an exchange uses it: its name, and the arguments that have to be listed with it.

use serde_json::Value;

/// A tool that an exchange needs: `slow`, or with what it is given and gives, `add(a:number,b:number)->sum`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Signature {
    /// The name in `tools/list`.
    pub name: String,
    /// The arguments that the exchange passes; `None` if it leaves them open.
    pub arguments: Option<Vec<Argument>>,
    /// The members of the structured result that the exchange looks at.
    pub results: Vec<String>,
}

/// One argument of a [`Signature`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Argument {
    /// The property of the input schema.
    pub name: String,
    /// The types of which its schema has to state one; any will do if empty.
    pub kinds: Vec<String>,
    /// Whether the schema has to require it and to take nothing else.
    pub strict: bool,
}

const TYPES: [&str; 6] = ["string", "integer", "number", "boolean", "object", "array"];

impl Signature {
    /// Reads `name`, `name()`, `name(a,b:integer|number,c:string!)` and each of them followed by `->x,y`.
    ///
    /// # Errors
    ///
    /// Says what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("`needs.tools`: expected {what}, got `{text}`");
        let (call, results) = match text.split_once("->") {
            Some((call, results)) => (call, results.split(',').map(str::to_owned).collect()),
            None => (text, Vec::new()),
        };
        let (name, arguments) = match call.split_once('(') {
            None => (call, None),
            Some((name, rest)) => {
                let inner = rest.strip_suffix(')').ok_or_else(|| wrong("a `)` after the arguments"))?;
                let each = inner.split(',').filter(|_| !inner.is_empty());
                (name, Some(each.map(Argument::parse).collect::<Option<Vec<_>>>()))
            }
        };
        let arguments = match arguments {
            Some(None) => return Err(wrong("arguments such as `text`, `ms:integer` or `a:number!`")),
            Some(some) => some,
            None => None,
        };
        if !is_word(name) || !results.iter().all(|result: &String| is_word(result)) {
            return Err(wrong("names without spaces and parentheses"));
        }
        Ok(Self { name: name.to_owned(), arguments, results })
    }

    /// Why a tool that is listed so is not the one meant; `None` if it fits.
    #[must_use]
    pub fn differs(&self, listed: &Value) -> Option<String> {
        let none = Value::Null;
        let schema = listed.get("inputSchema").unwrap_or(&none);
        let property = |name: &str| schema.get("properties").and_then(|all| all.get(name));
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let arguments = self.arguments.as_deref().unwrap_or_default();
        for Argument { name, kinds, strict } in arguments {
            let Some(property) = property(name) else { return Some(format!("takes no `{name}`")) };
            if !kinds.is_empty() && !states(property, kinds, *strict) {
                return Some(format!("does not say that `{name}` is of type {}", kinds.join(" or ")));
            }
            if *strict && !required.contains(&name.as_str()) {
                return Some(format!("does not require `{name}`"));
            }
        }
        if self.arguments.is_some()
            && let Some(more) =
                required.iter().find(|name| arguments.iter().all(|argument| argument.name != **name))
        {
            return Some(format!("also requires `{more}`"));
        }
        let output = listed.get("outputSchema").and_then(|schema| schema.get("properties"));
        let given = |name: &String| output.is_some_and(|all| all.get(name.as_str()).is_some());
        let missing = self.results.iter().find(|name| !given(name))?;
        Some(format!("does not say that it gives `{missing}`"))
    }
}

impl std::fmt::Display for Signature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)?;
        if let Some(arguments) = &self.arguments {
            let names: Vec<_> = arguments.iter().map(|argument| argument.name.as_str()).collect();
            write!(f, "({})", names.join(", "))?;
        }
        Ok(())
    }
}

impl Argument {
    fn parse(text: &str) -> Option<Self> {
        let (text, strict) = text.strip_suffix('!').map_or((text, false), |text| (text, true));
        let (name, kinds) = match text.split_once(':') {
            Some((name, kinds)) => (name, kinds.split('|').map(str::to_owned).collect()),
            None => (text, Vec::new()),
        };
        let known = kinds.iter().all(|kind| TYPES.contains(&kind.as_str()));
        (known && is_word(name)).then(|| Self { name: name.to_owned(), kinds, strict })
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
}

/// Whether a property's schema states one of the types, alone or beside others.
fn states(property: &Value, kinds: &[String], alone: bool) -> bool {
    let wanted = |stated: &Value| kinds.iter().any(|kind| stated == kind);
    match property.get("type") {
        Some(Value::Array(several)) if alone => several.iter().all(wanted),
        Some(Value::Array(several)) => several.iter().any(wanted),
        Some(one) => wanted(one),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_alone_asks_for_nothing_more() {
        let plain = Signature::parse("echo").unwrap();
        assert_eq!((plain.name.as_str(), &plain.arguments), ("echo", &None));
        assert_eq!(plain.differs(&json!({"name": "echo", "inputSchema": {"required": ["x"]}})), None);
    }

    #[test]
    fn arguments_are_held_against_the_listed_schema() {
        let integer = json!({"type": ["integer", "null"]});
        let listed = |properties: Value, required: Value| json!({"inputSchema": {"type": "object", "properties": properties, "required": required}});
        for (signature, properties, required, differs) in [
            ("f(a)", json!({"a": true}), json!([]), None),
            ("f(a)", json!({"a": {}, "b": {}}), json!(["a"]), None),
            ("f(a)", json!({"message": {}}), json!(["message"]), Some("takes no `a`")),
            ("f(a)", json!({"a": {}, "b": {}}), json!(["a", "b"]), Some("also requires `b`")),
            ("f()", json!({"b": {}}), json!(["b"]), Some("also requires `b`")),
            ("f()", json!({"b": {}}), json!([]), None),
            ("f(a:integer)", json!({"a": integer}), json!([]), None),
            (
                "f(a:number)",
                json!({"a": integer}),
                json!([]),
                Some("does not say that `a` is of type number"),
            ),
            ("f(a:number)", json!({"a": {}}), json!([]), Some("does not say that `a` is of type number")),
            ("f(a!)", json!({"a": {}}), json!([]), Some("does not require `a`")),
            ("f(a:integer|number)", json!({"a": integer}), json!(["a"]), None),
            ("f(a:integer!)", json!({"a": {"type": "integer"}}), json!(["a"]), None),
            (
                "f(a:integer!)",
                json!({"a": integer}),
                json!(["a"]),
                Some("does not say that `a` is of type integer"),
            ),
        ] {
            let got = Signature::parse(signature).unwrap().differs(&listed(properties.clone(), required));
            assert_eq!(got.as_deref(), differs, "{signature} against {properties}");
        }
        assert!(Signature::parse("f(a)").unwrap().differs(&json!({"name": "f"})).is_some());
    }

    #[test]
    fn results_are_held_against_the_output_schema() {
        let add = Signature::parse("add(a,b)->sum").unwrap();
        let listed = |output: Value| json!({"inputSchema": {"properties": {"a": {}, "b": {}}}, "outputSchema": output});
        assert_eq!(add.differs(&listed(json!({"properties": {"sum": {}}}))), None);
        assert_eq!(
            add.differs(&listed(json!({"properties": {"result": {}}}))).as_deref(),
            Some("does not say that it gives `sum`")
        );
        assert!(add.differs(&json!({"inputSchema": {"properties": {"a": {}, "b": {}}}})).is_some());
        assert_eq!(add.to_string(), "add(a, b)");
    }

    #[test]
    fn what_is_no_signature_is_refused_with_its_text() {
        for text in ["", "f(", "f(a", "f(a)b", "f(a:text)", "f(,)", "f (a)", "(a)", "f(a)->"] {
            assert!(Signature::parse(text).unwrap_err().contains(text), "{text}");
        }
    }
}
