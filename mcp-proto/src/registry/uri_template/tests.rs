use alloc::string::ToString;
use alloc::{format, vec};

use proptest::prelude::*;

use super::*;

fn template(text: &str) -> UriTemplate {
    UriTemplate::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The variables of the examples in RFC 6570, section 3.2.
fn example(name: &str) -> Option<Value<'static>> {
    Some(match name {
        "count" => vec!["one", "two", "three"].into(),
        "dom" => vec!["example", "com"].into(),
        "dub" => "me/too".into(),
        "hello" => "Hello World!".into(),
        "half" => "50%".into(),
        "var" => "value".into(),
        "who" => "fred".into(),
        "base" => "http://example.com/home/".into(),
        "path" => "/foo/bar".into(),
        "list" => vec!["red", "green", "blue"].into(),
        "keys" => Value::Pairs(vec![
            ("semi".into(), ";".into()),
            ("dot".into(), ".".into()),
            ("comma".into(), ",".into()),
        ]),
        "v" => "6".into(),
        "x" => "1024".into(),
        "y" => "768".into(),
        "empty" => "".into(),
        "empty_keys" => Value::Pairs(vec![]),
        "empty_list" => Value::List(vec![]),
        _ => return None,
    })
}

#[test]
fn r01_expansion_by_the_examples_of_the_rfc() {
    for (text, expected) in [
        // 3.2.2 simple
        ("{var}", "value"),
        ("{hello}", "Hello%20World%21"),
        ("{half}", "50%25"),
        ("O{empty}X", "OX"),
        ("O{undef}X", "OX"),
        ("{x,y}", "1024,768"),
        ("{x,hello,y}", "1024,Hello%20World%21,768"),
        ("?{x,empty}", "?1024,"),
        ("?{x,undef}", "?1024"),
        ("?{undef,y}", "?768"),
        ("{var:3}", "val"),
        ("{var:30}", "value"),
        ("{list}", "red,green,blue"),
        ("{list*}", "red,green,blue"),
        ("{keys}", "semi,%3B,dot,.,comma,%2C"),
        ("{keys*}", "semi=%3B,dot=.,comma=%2C"),
        // 3.2.3 reserved
        ("{+hello}", "Hello%20World!"),
        ("{+half}", "50%25"),
        ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
        ("{+base}index", "http://example.com/home/index"),
        ("O{+empty}X", "OX"),
        ("{+path}/here", "/foo/bar/here"),
        ("here?ref={+path}", "here?ref=/foo/bar"),
        ("up{+path}{var}/here", "up/foo/barvalue/here"),
        ("{+x,hello,y}", "1024,Hello%20World!,768"),
        ("{+path,x}/here", "/foo/bar,1024/here"),
        ("{+path:6}/here", "/foo/b/here"),
        ("{+list}", "red,green,blue"),
        ("{+keys}", "semi,;,dot,.,comma,,"),
        ("{+keys*}", "semi=;,dot=.,comma=,"),
        // 3.2.4 fragment
        ("{#var}", "#value"),
        ("{#hello}", "#Hello%20World!"),
        ("foo{#empty}", "foo#"),
        ("foo{#undef}", "foo"),
        ("{#path:6}here", "#/foo/bhere"),
        ("{#x,hello,y}", "#1024,Hello%20World!,768"),
        ("{#list*}", "#red,green,blue"),
        ("{#keys*}", "#semi=;,dot=.,comma=,"),
        // 3.2.5 label
        ("{.who}", ".fred"),
        ("{.who,who}", ".fred.fred"),
        ("{.half,who}", ".50%25.fred"),
        ("www{.dom*}", "www.example.com"),
        ("X{.empty}", "X."),
        ("X{.undef}", "X"),
        ("X{.var:3}", "X.val"),
        ("X{.list}", "X.red,green,blue"),
        ("X{.list*}", "X.red.green.blue"),
        ("X{.keys*}", "X.semi=%3B.dot=..comma=%2C"),
        ("X{.empty_keys}", "X"),
        ("X{.empty_list*}", "X"),
        // 3.2.6 path
        ("{/who,who}", "/fred/fred"),
        ("{/half,who}", "/50%25/fred"),
        ("{/who,dub}", "/fred/me%2Ftoo"),
        ("{/var,empty}", "/value/"),
        ("{/var,undef}", "/value"),
        ("{/var,x}/here", "/value/1024/here"),
        ("{/var:1,var}", "/v/value"),
        ("{/list}", "/red,green,blue"),
        ("{/list*,path:4}", "/red/green/blue/%2Ffoo"),
        ("{/keys*}", "/semi=%3B/dot=./comma=%2C"),
        // 3.2.7 path-style parameters
        ("{;who}", ";who=fred"),
        ("{;empty}", ";empty"),
        ("{;v,empty,who}", ";v=6;empty;who=fred"),
        ("{;v,undef,who}", ";v=6;who=fred"),
        ("{;hello:5}", ";hello=Hello"),
        ("{;list}", ";list=red,green,blue"),
        ("{;list*}", ";list=red;list=green;list=blue"),
        ("{;keys*}", ";semi=%3B;dot=.;comma=%2C"),
        // 3.2.8 query
        ("{?x,y}", "?x=1024&y=768"),
        ("{?x,y,empty}", "?x=1024&y=768&empty="),
        ("{?x,y,undef}", "?x=1024&y=768"),
        ("{?var:3}", "?var=val"),
        ("{?list}", "?list=red,green,blue"),
        ("{?list*}", "?list=red&list=green&list=blue"),
        ("{?keys}", "?keys=semi,%3B,dot,.,comma,%2C"),
        ("{?keys*}", "?semi=%3B&dot=.&comma=%2C"),
        // 3.2.9 query continuation
        ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        ("{&x,y,empty}", "&x=1024&y=768&empty="),
        ("{&var:3}", "&var=val"),
        ("{&list*}", "&list=red&list=green&list=blue"),
        // literals
        ("café/100%25/{var}", "caf%C3%A9/100%25/value"),
    ] {
        assert_eq!(template(text).expand(example), expected, "{text}");
    }
}

#[test]
fn r01_percent_signs_in_values() {
    let expand = |text: &str, value: Value<'static>| template(text).expand(|_| Some(value.clone()));
    for (text, percent) in [("{v}", "%252F"), ("{+v}", "%252F"), ("{#v}", "#%252F")] {
        assert_eq!(expand(text, "%2F".into()), percent, "text stays text: {text}");
    }
    let encoded = |text: &'static str| Value::Encoded(text.into());
    assert_eq!(expand("{+v}", encoded("a%2Fb/%zz%")), "a%2Fb/%25zz%25");
    assert_eq!(expand("{#v}", encoded("%C3%A9")), "#%C3%A9");
    assert_eq!(expand("{v}", encoded("a%2Fb")), "a%252Fb", "only where reserved characters may be");
    // A prefix counts characters and cuts none of them.
    assert_eq!(expand("{+v:2}", encoded("a%C3%A9b")), "a%C3%A9");
    assert_eq!(expand("{+v:2}", "é%2F".into()), "%C3%A9%25");
    assert_eq!(expand("{v:1}", "🎉é".into()), "%F0%9F%8E%89");
}

fn texts(text: &str, uri: &str) -> Option<Vec<(String, String)>> {
    let template = template(text);
    let captures = template.matches(uri)?;
    Some(captures.iter().map(|value| (value.name().to_owned(), value.text().to_owned())).collect())
}

#[track_caller]
fn assert_matches(text: &str, uri: &str, expected: &[(&str, &str)]) {
    let expected: Vec<_> = expected.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    assert_eq!(texts(text, uri), Some(expected), "{text} on {uri}");
}

#[track_caller]
fn assert_no_match(text: &str, uri: &str) {
    assert_eq!(texts(text, uri), None, "{text} on {uri}");
}

#[test]
fn r01_matching() {
    assert_matches("d://{p}/i", "d://a%2Fb/i", &[("p", "a/b")]);
    assert_no_match("d://{p}/i", "d://a/b/i");
    assert_matches("d://{p}/i", "d://a%252Fb/i", &[("p", "a%2Fb")]);
    assert_matches("d://{+p}", "d://a/b", &[("p", "a/b")]);
    assert_matches("d://{+p}", "d://a%2Fb%20", &[("p", "a/b ")]);
    assert_matches("d://x{?q,r}", "d://x?r=2&q=1", &[("r", "2"), ("q", "1")]);
    assert_matches("d://x{?q,r}", "d://x", &[]);
    assert_matches("d://x{?q,r}", "d://x?q=", &[("q", "")]);
    assert_matches("d://café/{p}", "d://caf%C3%A9/z", &[("p", "z")]);
    assert_matches("d://café/{p}", "d://café/z", &[("p", "z")]);
    assert_matches("d://caf%C3%A9/{p}", "d://caf%c3%a9/z", &[("p", "z")]);
    assert_matches("d://café/{p}", "d://%63af%C3%A9/%C3%BC", &[("p", "ü")]);
    for malformed in ["d://%zz/i", "d://%/i", "d://%2/i", "d://a/i%", "d://%C3%/i", "d://%FF/i", "d://%C3/i"]
    {
        assert_no_match("d://{p}/i", malformed);
        assert_no_match("d://{+p}", malformed);
    }
    assert_no_match("d://{p}/i", "d://none");
    // A near miss of a literal, and one within another.
    assert_no_match("{x}ab{y}", "acb");
    assert_matches("{x}aab{y}", "aaabaab", &[("x", "aaab"), ("y", "")]);
    assert_matches("{x}abab", "ababab", &[("x", "ab")]);
    assert_matches("{x}aabaaa", "aabaaabaaa", &[("x", "aaba")]);
    assert_no_match("d://{p}/i", "D://x/i");
    // An encoded slash is data, in the template too.
    assert_no_match("d://a/b", "d://a%2Fb");
    assert_matches("d://a%2fb", "d://a%2Fb", &[]);
    assert_no_match("d://a%2Fb", "d://a/b");
}

#[test]
fn what_people_write_by_hand_is_matched_as_far_as_it_is_clear() {
    assert_matches("u://{mail}", "u://a@b.c", &[("mail", "a@b.c")]);
    assert_matches("u://{a}/{b}", "u://x:y/z!", &[("a", "x:y"), ("b", "z!")]);
    assert_matches("u://x{?path}", "u://x?path=/etc/x?y=1", &[("path", "/etc/x?y=1")]);
    assert_matches("u://x{?q}", "u://x?q", &[("q", "")]);
    assert_matches("u://x{?q}", "u://x?q=a+b", &[("q", "a+b")]);
    assert_matches("u://{a}", "u://a b", &[("a", "a b")]);
    for separator in ["/", "?", "#"] {
        assert_no_match("u://{a}", &format!("u://x{separator}y"));
    }
    assert_no_match("u://x{?q}", "u://x?q=1#f");
    assert_matches("u://x{?q}{#f}", "u://x?q=1#f", &[("q", "1"), ("f", "f")]);
}

#[test]
fn each_operator_matches() {
    assert_matches("{a,b}", "1,2", &[("a", "1"), ("b", "2")]);
    assert_matches("{a,b}", "1", &[("a", "1")]);
    assert_matches("x{/a,b}/c", "x/1/2/c", &[("a", "1"), ("b", "2")]);
    assert_matches("x{/a,b}/c", "x/1/c", &[("a", "1")]);
    assert_matches("x{/a,b}/c", "x/c", &[]);
    assert_matches("x{/a}", "x/", &[("a", "")]);
    assert_matches("x{.a}", "x.tar.gz", &[("a", "tar.gz")]);
    assert_matches("x{.a,b}", "x.tar.gz", &[("a", "tar"), ("b", "gz")]);
    assert_matches("x{#a}", "x#1/2?#", &[("a", "1/2?#")]);
    assert_matches("x{;a,b,c}", "x;c=3;a=1;b", &[("c", "3"), ("a", "1"), ("b", "")]);
    assert_matches("x?f=1{&a,b}", "x?f=1&b=2&a=1", &[("b", "2"), ("a", "1")]);
    assert_matches("x{?a}{&b}", "x?b=2&a=1", &[("b", "2"), ("a", "1")]);
    assert_matches("x{?a}{&b}", "x&b=2", &[("b", "2")]);
    assert_matches("x{a:3}", "xabc", &[("a", "abc")]);
    assert_no_match("x{a:3}", "xabcd");
    assert_matches("x{a:3}{b}", "xa%C3%A9cd", &[("a", "aéc"), ("b", "d")]);
    assert_matches("x{?a:2,b}", "x?b=123&a=12", &[("b", "123"), ("a", "12")]);
    assert_no_match("x{?a:2,b}", "x?b=123&a=123");
    assert_matches("{a}", "", &[("a", "")]);
    assert_matches("", "", &[]);
    assert_no_match("", "x");
    assert_matches("x", "x", &[]);
    assert_no_match("x", "xx");
}

#[test]
fn queries_are_exact() {
    assert_no_match("x{?a,b}", "x?c=1");
    assert_no_match("x{?a,b}", "x?a=1&c=1");
    assert_no_match("x{?a,b}", "x?a=1&a=1");
    assert_no_match("x{?a,b}", "x?a=1&");
    assert_no_match("x{?a,b}", "x?");
    assert_no_match("x{?a,b}", "x?aa=1");
    assert_no_match("x{?a,b}", "x?A=1");
    assert_matches("x{?a,aa}", "x?aa=1", &[("aa", "1")]);
    assert_matches("x{?a,aa}", "x?aa=1&a=2", &[("aa", "1"), ("a", "2")]);
}

fn items<'c>(captures: &'c Captures<'_>, name: &str) -> Vec<&'c str> {
    captures.value(name).unwrap().items().collect()
}

#[test]
fn lists_are_matched() {
    for (text, uri, whole, expected) in [
        ("x{a}", "x1,2%2C3", "1,2,3", vec!["1", "2,3"]),
        ("x{a}", "x1", "1", vec!["1"]),
        ("x{/a*}", "x/1/2%2F3", "1/2/3", vec!["1", "2/3"]),
        ("x{.a*}", "x.1.2", "1.2", vec!["1", "2"]),
        ("x{?a*}", "x?a=1&a=2", "1,2", vec!["1", "2"]),
        ("x{?a}", "x?a=1,2", "1,2", vec!["1", "2"]),
        ("x{;a*}", "x;a=1;a", "1,", vec!["1", ""]),
        ("x{+a*}", "x1,2/3", "1,2/3", vec!["1", "2/3"]),
    ] {
        let template = template(text);
        let captures = template.matches(uri).unwrap_or_else(|| panic!("{text} on {uri}"));
        assert_eq!(captures.text("a"), Some(whole), "{text} on {uri}");
        assert_eq!(items(&captures, "a"), expected, "{text} on {uri}");
    }
    let own_name = template("x{?l%69st*}");
    let captures = own_name.matches("x?list=1&l%69st=2").unwrap();
    let pairs: Vec<_> = captures.value("l%69st").unwrap().pairs().collect();
    assert_eq!(pairs, [("l%69st", "1"), ("l%69st", "2")], "as the template spells it");
    let template = template("x{?q,rest*}");
    let captures = template.matches("x?size=1&q=2&rest=3&%63olor=r%26d=").unwrap();
    assert_eq!(captures.text("q"), Some("2"));
    let rest = captures.value("rest").unwrap();
    assert_eq!(rest.pairs().collect::<Vec<_>>(), [("size", "1"), ("rest", "3"), ("color", "r&d=")]);
    assert_eq!(rest.items().collect::<Vec<_>>(), ["1", "3", "r&d="]);
}

#[test]
fn the_rule_where_several_values_fit() {
    assert_matches("{a}{b}{c}{d}", "xyz", &[("a", "xyz"), ("b", ""), ("c", ""), ("d", "")]);
    assert_matches("{name}{.extension}", "a.b.c", &[("name", "a.b"), ("extension", "c")]);
    assert_matches("{name}{.extension}", "abc", &[("name", "abc")]);
    assert_matches("{+path}.{extension}", "a.b/c.d.e", &[("path", "a.b/c.d"), ("extension", "e")]);
    assert_matches("{+path}{?q}", "a/b?q=1", &[("path", "a/b"), ("q", "1")]);
    assert_matches("{+path}{?q}", "a/b?r=1", &[("path", "a/b?r=1")]);
    assert_matches("{+path}{#f}", "a/b#c", &[("path", "a/b"), ("f", "c")]);
    assert_matches("{+path}/{name}", "a/b/c", &[("path", "a/b"), ("name", "c")]);
    assert_matches("x{/dirs*,name}", "x/a/b/c", &[("dirs", "a/b"), ("name", "c")]);
    assert_matches("{a}{+b}", "x:y", &[("a", "x"), ("b", ":y")]);
    assert_matches("{+path}{?q}{&r}", "a?q=1&r=2", &[("path", "a"), ("q", "1"), ("r", "2")]);
    assert_matches("{;a,ab}{+rest}", ";ab=1", &[("ab", "1"), ("rest", "")]);
    assert_matches("{?a}{+b}", "?ab", &[("b", "?ab")]);
    assert_matches("{;a}{.b}", ";a=.", &[("a", ".")]);
    let others_names = "{?all*,a}{x}{&b,c}";
    assert_matches(others_names, "?a=1&b=2&c=3", &[("a", "1"), ("x", ""), ("b", "2"), ("c", "3")]);
    assert_matches("{?a}{+b}", "?a=1&a=2", &[("a", "1"), ("b", "&a=2")]);
}

#[test]
fn a_name_that_occurs_twice_has_one_value() {
    assert_matches("{x}/{x}", "a/%61", &[("x", "a")]);
    assert_no_match("{x}/{x}", "a/b");
    assert_matches("{x:1}/{x}", "é/éa", &[("x", "éa")]);
    assert_matches("{x}/{x:1}", "éa/é", &[("x", "éa")]);
    assert_matches("{x:1}/{x:3}/{x:2}", "a/abc/ab", &[("x", "abc")]);
    assert_no_match("{x:1}/{x}", "a/ba");
    assert_no_match("{x:2}/{x}", "a/ab");
    assert_matches("{x}{?x}", "a?x=a", &[("x", "a")]);
    assert_no_match("{x}{?x}", "a?x=b");
    assert_eq!(template("{x}/{y}{?x}").variables().collect::<Vec<_>>(), ["x", "y"]);
}

#[test]
fn r01_paths_that_lead_elsewhere_are_flagged() {
    let template = template("f://{p}");
    let flagged = |uri: &str| template.matches(uri).unwrap().value("p").unwrap().may_leave_directory();
    for bad in ["..%2F..%2Fetc", "..", "a%2F..", "..%5Cx", "%2Fetc", "%5C%5Chost", "C:x", "a%00", "%2e%2E"] {
        assert!(flagged(&format!("f://{bad}")), "{bad}");
    }
    for good in ["", "a", "a%2Fb", "..a", "a..b", "a%2F...%2Fb", "%252E%252E"] {
        assert!(!flagged(&format!("f://{good}")), "{good}");
    }
}

/// These would take for ever with a matcher that goes back.
#[test]
fn r02_hostile_uris() {
    let hostile = format!("t://h{}{}", "/a".repeat(20_000), ",".repeat(20_000));
    assert!(template("t://h{/id*}{?tags*}").matches(&hostile).is_some());
    assert!(template("t://h{/id*}{?tags*}").matches(&format!("{hostile}#")).is_none());
    let long = "a".repeat(MAX_URI - 1);
    let four = template("{a}{b}{c}{d}");
    assert_eq!(four.matches(&long).unwrap().text("a"), Some(&*long));
    assert!(four.matches(&format!("{long}/")).is_none());
    assert!(four.matches(&format!("{long}aa")).is_none(), "longer than is matched");
    for (text, unit) in [
        ("{+a}{+b}{+c}{+d}x", "a"),
        ("{a*}{b*}{c*}{/d*}#", ","),
        ("{+a}aaaaaaaaaaaaaaaaaaab{+b}", "a"),
        ("{?a*}{&b*}#", "?"),
        ("{?a*}{&b*}#", "?a&"),
        ("{?a*,b,c,d:3}x", "&a="),
        ("{a:9999}{b:9999}{c:9999}/", "a"),
        ("{;a*}{;b}#", ";a"),
    ] {
        let uri = format!("{unit}{}", unit.repeat((MAX_URI - 3) / unit.len()));
        assert!(template(text).matches(&uri).is_none(), "{text}");
    }
}

#[test]
fn r02_over_long_templates_are_refused() {
    let kind = |text: &str| UriTemplate::parse(text).unwrap_err().kind;
    assert_eq!(kind(&"a".repeat(1 << 20)), TemplateErrorKind::TooLong);
    assert_eq!(kind(&"{a}".repeat(10_000)), TemplateErrorKind::TooLong);
    assert_eq!(kind(&"{a}".repeat(MAX_VARIABLES + 1)), TemplateErrorKind::TooManyVariables);
    assert!(UriTemplate::parse(&"{a}".repeat(MAX_VARIABLES)).is_ok());
    let names = vec!["a"; MAX_VARIABLES].join(",");
    assert!(template(&format!("x{{/{names}}}{}", "y".repeat(1000))).matches("x").is_none());
}

#[test]
fn what_is_no_template_is_refused_with_the_place() {
    use TemplateErrorKind as Kind;
    for (text, kind, at) in [
        ("a{", Kind::Unclosed, 1),
        ("a{b", Kind::Unclosed, 1),
        ("a{b,", Kind::Unclosed, 1),
        ("a{b:3", Kind::Unclosed, 1),
        ("a}", Kind::Unopened, 1),
        ("é}", Kind::Unopened, 2),
        ("{a}}", Kind::Unopened, 3),
        ("{}", Kind::MissingName, 1),
        ("{+}", Kind::MissingName, 2),
        ("{a,}", Kind::MissingName, 3),
        ("{a.}", Kind::MissingName, 3),
        ("{*}", Kind::MissingName, 1),
        ("{a{b}}", Kind::Name('{'), 2),
        ("{a b}", Kind::Name(' '), 2),
        ("{a-b}", Kind::Name('-'), 2),
        ("{a..b}", Kind::Name('.'), 3),
        ("{é}", Kind::Name('é'), 1),
        ("{=a}", Kind::ReservedOperator('='), 1),
        ("{!a}", Kind::ReservedOperator('!'), 1),
        ("{,a}", Kind::ReservedOperator(','), 1),
        ("{a%2}", Kind::Percent, 2),
        ("a%2", Kind::Percent, 1),
        ("100%", Kind::Percent, 3),
        ("d://%FF/{p}", Kind::NotUtf8, 0),
        // Without a value for `a` the halves would be `é`, which the template does not have.
        ("%C3{#a}%A9xb", Kind::NotUtf8, 0),
        ("a b", Kind::Literal(' '), 1),
        ("a\n", Kind::Literal('\n'), 1),
        ("<a>", Kind::Literal('<'), 0),
        ("{a:}", Kind::Prefix, 3),
        ("{a:0}", Kind::Prefix, 3),
        ("{a:03}", Kind::Prefix, 3),
        ("{a:10000}", Kind::Prefix, 3),
        ("{a:x}", Kind::Prefix, 3),
        ("{a:3*}", Kind::AfterVariable('*'), 4),
        ("{a*:3}", Kind::AfterVariable(':'), 3),
    ] {
        assert_eq!(UriTemplate::parse(text).map(|_| ()), Err(TemplateError { kind, at }), "{text}");
    }
    let shown = |text: &str| UriTemplate::parse(text).unwrap_err().to_string();
    assert_eq!(shown("a{b"), "expected a `}` for this `{` at byte 1 of the URI template");
    assert_eq!(shown("{a:3*}"), "expected `,` or `}`, found '*' at byte 4 of the URI template");
}

#[test]
fn the_more_specific_template_is_greater() {
    let order = [
        "d://{+rest}",
        "d://{/rest*}",
        "d://{a}/{b}",
        "d://users/{+rest}",
        "d://users/{id}{?q}",
        "d://users/{id}",
        "d://users/me{?q}",
        "d://users/me",
    ];
    for pair in order.windows(2) {
        let (less, more) = (template(pair[0]).specificity(), template(pair[1]).specificity());
        assert!(less <= more, "{} before {}", pair[0], pair[1]);
        assert!(pair[0].contains("rest") && pair[1].contains("rest") || less < more, "{pair:?}");
    }
}

/// Text in which everything that could go wrong is likely.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => proptest::collection::vec(
            proptest::sample::select(vec![
                "a", "b", "1", ".", "-", "/", ",", "?", "&", "=", ";", "#", ":", "%", "%2F", "%25", "%zz", " ",
                "+", "é", "🎉", "{", "\0", "v0", "v1",
            ]),
            0..6,
        )
        .prop_map(|pieces| pieces.concat()),
        1 => any::<String>(),
    ]
}

#[derive(Debug, Clone)]
enum Given {
    Nothing,
    Text(String),
    List(Vec<String>),
}

impl Given {
    fn value(&self) -> Option<Value<'_>> {
        match self {
            Self::Nothing => None,
            Self::Text(text) => Some(text.into()),
            Self::List(items) => Some(items.clone().into()),
        }
    }
}

/// Templates whose variables are called `v0`, `v1` and so on, and a value for each.
fn any_template() -> impl Strategy<Value = (String, Vec<Given>)> {
    let given = || {
        prop_oneof![
            2 => Just(Given::Nothing),
            5 => any_text().prop_map(Given::Text),
            2 => proptest::collection::vec(any_text(), 1..4).prop_map(Given::List),
        ]
    };
    let literal = proptest::sample::select(vec![
        "/", "a", "é", "x=1", "?", "&", ".", "%2F", "b,c", ";", "#", ":", "%C3%A9", "v0", "=", ",",
    ]);
    let operator = proptest::sample::select(vec!["", "+", "#", ".", "/", ";", "?", "&"]);
    let modifier = proptest::sample::select(vec!["", "", "", "*", ":1", ":3"]);
    let expression = (operator, proptest::collection::vec((modifier, given()), 1..4));
    let part = prop_oneof![
        2 => literal.prop_map(|text| (Some(text), ("", Vec::new()))),
        3 => expression.prop_map(|expression| (None, expression)),
    ];
    proptest::collection::vec(part, 0..6).prop_map(|parts| {
        let (mut text, mut values) = (String::new(), Vec::new());
        for (literal, (operator, variables)) in parts {
            if let Some(literal) = literal {
                text.push_str(literal);
                continue;
            }
            text.push('{');
            text.push_str(operator);
            for (at, (modifier, given)) in variables.into_iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                text.push_str(&format!("v{}{modifier}", values.len()));
                values.push(match given {
                    // A prefix does not apply to lists, so what was cut is not known.
                    Given::List(items) if modifier.starts_with(':') => Given::Text(items.concat()),
                    given => given,
                });
            }
            text.push('}');
        }
        (text, values)
    })
}

fn expand(template: &UriTemplate, values: &[Given]) -> String {
    template.expand(|name| values[name[1..].parse::<usize>().unwrap()].value())
}

/// The value that `expand` needs to write what was captured.
fn captured(captures: &Captures<'_>, name: &str) -> Option<Value<'static>> {
    let value = captures.value(name)?;
    let items: Vec<_> = value.items().map(ToOwned::to_owned).collect();
    let pairs: Vec<_> = value.pairs().map(|(k, v)| (k.to_owned().into(), v.to_owned().into())).collect();
    Some(match <[String; 1]>::try_from(items) {
        _ if pairs.iter().any(|(key, _)| key != name) => Value::Pairs(pairs),
        Ok([only]) => only.into(),
        Err(items) => items.into(),
    })
}

/// Whether the captured values make `uri` again. In a set of names the same pairs have to be there, in
/// any order; which of `?` and `&` stands first depends on who comes first.
fn makes(template: &UriTemplate, captures: &Captures<'_>, uri: &str) -> bool {
    let mut rest = uri;
    let mut parts = &template.parts[..];
    while let Some(first) = parts.first() {
        let mut count = 1;
        let mut set = None;
        if let Part::Expression(first) = first
            && first.operator.is_named()
        {
            let goes_on = |part: &&Part| match part {
                Part::Expression(next) if next.operator != Operator::Query => {
                    next.operator.is_named() && next.operator.separator() == first.operator.separator()
                }
                _ => false,
            };
            count += parts[1..].iter().take_while(goes_on).count();
            set = Some((first.operator == Operator::Query, first.operator.separator()));
        }
        let (these, later) = parts.split_at(count);
        parts = later;
        let these = UriTemplate { source: String::new(), parts: these.to_vec() };
        let made = these.expand(|name| captured(captures, name));
        // Whatever the order, the length is the same.
        let Some((here, after)) = rest.split_at_checked(made.len()) else { return false };
        rest = after;
        let same = match set {
            Some((may_ask, separator)) if !made.is_empty() => {
                let begins = here.starts_with(separator) || may_ask && here.starts_with('?');
                let sorted = |set: &str| {
                    let mut pairs: Vec<_> = set[1..].split(separator).map(ToOwned::to_owned).collect();
                    pairs.sort();
                    pairs
                };
                begins && sorted(here) == sorted(&made)
            }
            _ => here == made,
        };
        if !same {
            return false;
        }
    }
    rest.is_empty()
}

/// Names come in any order, so what follows a set may be read as more of it: as it is for the query here,
/// where a text under `{+rest}` looks like one more pair.
#[test]
fn a_set_takes_the_names_that_follow_in_another_order() {
    type Texts = &'static [(&'static str, &'static str)];
    let cases: [(&str, Texts, &str, &str, Texts); 4] = [
        (
            "{?all*,a}{+rest}",
            &[("a", ""), ("rest", "&%=")],
            "?a=&%25=",
            "?%25=&a=",
            &[("a", ""), ("all", ""), ("rest", "")],
        ),
        (
            "{?b,a}{+rest}",
            &[("a", "1"), ("rest", "&b=2")],
            "?a=1&b=2",
            "?b=2&a=1",
            &[("a", "1"), ("b", "2"), ("rest", "")],
        ),
        (
            "{;b,a}{+rest}",
            &[("a", "1"), ("rest", ";b=2")],
            ";a=1;b=2",
            ";b=2;a=1",
            &[("a", "1"), ("b", "2"), ("rest", "")],
        ),
        ("{+path}{?a}{&b}", &[("path", "x?b=1")], "x?b=1", "x&b=1", &[("path", "x"), ("b", "1")]),
    ];
    for (text, given, uri, again, expected) in cases {
        let value = |name: &str| given.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
        let template = template(text);
        assert_eq!(template.expand(|name| value(name).map(Into::into)), uri, "{text}");
        assert_matches(text, uri, expected);
        let captures = template.matches(uri).unwrap();
        assert!(makes(&template, &captures, uri), "{text}");
        assert_eq!(template.expand(|name| captured(&captures, name)), again, "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4 * ProptestConfig::default().cases))]

    /// R01: where only one set of values can have made the URI, they come back.
    #[test]
    fn r01_round_trip_is_identity(a in any_text(), b in any_text()) {
        for text in [
            "d://{a}/i", "d://{+a}", "d://{+a}/i", "d://x{?a,b}", "d://x{?b}{&a}", "d://café/{a}", "{a}/{b}",
            "{a,b}", "x{/a,b}", "x{/a}/{b}", "x{;a,b}", "x{#a}", "x{.a}", "{a}:{b}", "{/a}{?b}", "{a}{#b}",
            "x?y=1{&a,b}",
        ] {
            let template = template(text);
            let uri = template.expand(|name| Some(if name == "a" { (&a).into() } else { (&b).into() }));
            let captures = template.matches(&uri);
            prop_assert!(captures.is_some(), "{} on {}", text, uri);
            let captures = captures.unwrap();
            for name in template.variables() {
                let expected = if name == "a" { &a } else { &b };
                prop_assert_eq!(captures.text(name), Some(&**expected), "{} of {} on {}", name, text, &uri);
            }
        }
    }

    #[test]
    fn r01_lists_come_back(list in proptest::collection::vec(any_text(), 1..5)) {
        for text in ["x{a}", "x{/a*}", "x{/a}", "x{?a*}", "x{?a}", "x{;a*}", "x{a*}/y", "x?y=1{&a*}"] {
            let template = template(text);
            let uri = template.expand(|_| Some(list.clone().into()));
            let captures = template.matches(&uri);
            prop_assert!(captures.is_some(), "{} on {}", text, uri);
            let captures = captures.unwrap();
            prop_assert_eq!(items(&captures, "a"), list.clone(), "{} on {}", text, uri);
        }
    }

    /// Whatever expansion makes is matched, by values that make it again, but for the order of names.
    #[test]
    fn every_expansion_is_matched((text, values) in any_template()) {
        let template = UriTemplate::parse(&text).unwrap();
        let uri = expand(&template, &values);
        let captures = template.matches(&uri);
        prop_assert!(captures.is_some(), "{} on {}", text, uri);
        let captures = captures.unwrap();
        prop_assert!(makes(&template, &captures, &uri), "{} on {} with {:?}", text, uri, captures);
    }

    /// Any two strings: no panic, and a template that was read is read again.
    #[test]
    fn anything_goes(text in any_text(), uri in any_text()) {
        if let Ok(template) = UriTemplate::parse(&text) {
            prop_assert_eq!(UriTemplate::parse(template.as_str()), Ok(template.clone()));
            let _ = template.matches(&uri);
        }
    }
}
