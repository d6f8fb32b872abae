use alloc::string::ToString;

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::*;
use crate::http::testing::TestHead;
use crate::model::JsonSchema;

const VERSION: &str = "2026-07-28";

fn head(method: &str) -> TestHead {
    TestHead::new().with("MCP-Protocol-Version", VERSION).with("Mcp-Method", method)
}

fn standard(head: &TestHead, method: &str, params: &str) -> Result<(), Error> {
    check_standard(head, method, &Params::from_json(params).unwrap(), VERSION)
}

/// What the refusal says, after a check of its code.
#[track_caller]
fn refused(result: Result<(), Error>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.code, -32020, "{error}");
    error.message.into_owned()
}

/// S-HDR-20, H07
#[test]
fn standard_headers_must_be_there_and_equal() {
    let call = r#"{"name":"greet"}"#;
    let full = head("tools/call").with("Mcp-Name", "greet");
    assert!(standard(&full, "tools/call", call).is_ok());
    for (name, wrong) in
        [("MCP-Protocol-Version", "2025-11-25"), ("Mcp-Method", "Tools/Call"), ("Mcp-Name", "Greet")]
    {
        let bare = full.clone().without(name);
        assert!(refused(standard(&bare, "tools/call", call)).ends_with("found no such header"), "{name}");
        let other = bare.clone().with(name, wrong);
        let message = refused(standard(&other, "tools/call", call));
        assert!(message.contains(name) && message.contains(wrong), "{message}");
        let good = full.headers.iter().find(|(n, _)| *n == name).unwrap().1.clone();
        for twice in [&good[..], wrong.as_bytes()] {
            let twice = full.clone().with(name, twice);
            assert!(refused(standard(&twice, "tools/call", call)).ends_with("more than once"), "{name}");
        }
        let blanks = bare.clone().with(name, [b"\t ", &good[..], b" "].concat());
        assert!(standard(&blanks, "tools/call", call).is_ok(), "{name}");
        let odd = bare.with(name, [&good[..], b"\xff"].concat());
        assert!(refused(standard(&odd, "tools/call", call)).contains("no header can hold"), "{name}");
    }
    assert_eq!(
        refused(standard(&full, "tools/call", r#"{"name":"bar"}"#)),
        r#"Header mismatch: Mcp-Name: expected "bar" at /params/name, found "greet""#
    );
}

/// B-HDR-05
#[test]
fn header_names_have_no_case() {
    let odd = TestHead::new()
        .with("mcp-protocol-VERSION", VERSION)
        .with("mcp-METHOD", "tools/call")
        .with("MCP-NAME", "greet");
    assert!(standard(&odd, "tools/call", r#"{"name":"greet"}"#).is_ok());
}

/// C-HDR-04, C-TASK-14: which methods are named by what.
#[test]
fn methods_that_name_something_have_a_name() {
    for (method, member) in [
        ("tools/call", "name"),
        ("prompts/get", "name"),
        ("resources/read", "uri"),
        ("tasks/get", "taskId"),
        ("tasks/update", "taskId"),
        ("tasks/cancel", "taskId"),
    ] {
        assert_eq!(name_member(method), Some(member));
        let params = format!(r#"{{"{member}":"x:\u002fy"}}"#);
        assert!(standard(&head(method).with("Mcp-Name", "x:/y"), method, &params).is_ok());
        refused(standard(&head(method).with("Mcp-Name", "x:/z"), method, &params));
        refused(standard(&head(method), method, &params));
    }
    for method in ["tools/list", "server/discover", "subscriptions/listen", "tasks/list", "own/method", ""] {
        assert_eq!(name_member(method), None);
        assert!(standard(&head(method), method, r#"{"name":"a"}"#).is_ok());
        // One that is not asked for does not count.
        assert!(standard(&head(method).with("Mcp-Name", "b"), method, r#"{"name":"a"}"#).is_ok());
    }
}

/// The check of the params says better what is wrong.
#[test]
fn a_body_without_a_name_is_refused_elsewhere() {
    for params in ["{}", r#"{"name":1}"#, r#"{"name":null}"#, r#"{"name":"\ud800"}"#] {
        assert!(standard(&head("tools/call").with("Mcp-Name", "greet"), "tools/call", params).is_ok());
        assert!(standard(&head("tools/call"), "tools/call", params).is_ok());
    }
}

/// S-HDR-12: names are decoded; versions and methods have no such form.
#[test]
fn only_names_are_decoded() {
    let named = |value: &str| {
        standard(&head("tools/call").with("Mcp-Name", value), "tools/call", r#"{"name":"Hello"}"#)
    };
    assert!(named("=?base64?SGVsbG8=?=").is_ok());
    assert!(refused(named("=?base64?SGVsbG8?=")).contains("standard base64"));
    assert!(refused(named("=?base64?aGVsbG8=?=")).contains("aGVsbG8"));
    let method = head("=?base64?dG9vbHMvbGlzdA==?=");
    refused(standard(&method, "tools/list", "{}"));
}

/// S-HDR-01: the order of the checks is not laid down, but one refusal is enough.
#[test]
fn messages_repeat_little() {
    let long = "x".repeat(100_000);
    let params = format!(r#"{{"name":"{long}"}}"#);
    let message =
        refused(standard(&head("tools/call").with("Mcp-Name", "y".repeat(9_000)), "tools/call", &params));
    assert!(message.len() < 300, "{message}");
    let message = refused(standard(&head("a\r\nb"), "tools/list", "{}"));
    assert!(!message.contains('\n'), "{message}");
}

fn annotated(properties: &str) -> Vec<HeaderArgument> {
    JsonSchema::parse(&format!(r#"{{"type":"object","properties":{{{properties}}}}}"#))
        .unwrap()
        .header_arguments()
        .unwrap()
}

/// `region` as text, `count` as a whole number, `dry` as a boolean, and `a.b`, `a.c.d` further inside.
fn usual() -> Vec<HeaderArgument> {
    annotated(
        r#""region":{"type":"string","x-mcp-header":"Region"},
           "count":{"type":"integer","x-mcp-header":"Count"},
           "dry":{"type":"boolean","x-mcp-header":"dry-run"},
           "a":{"type":"object","properties":{
               "b":{"type":"string","x-mcp-header":"B"},
               "c":{"type":"object","properties":{"d":{"type":"string","x-mcp-header":"D"}}}}}"#,
    )
}

fn arguments(headers: &[(&'static str, &str)], arguments: &str) -> Result<(), Error> {
    let head = headers.iter().fold(TestHead::new(), |head, (name, value)| head.with(name, value));
    let arguments = RawValue::from_string(arguments.into()).unwrap();
    let direct = check_arguments(|name| head.value(name), Some(&arguments), &usual());
    // What was kept of a head says the same as the head.
    let kept = ParamHeaders::collect(&head, &usual());
    let later = check_arguments(|name| kept.value(name), Some(&arguments), &usual());
    assert_eq!(direct.clone().map_err(|e| e.to_string()), later.map_err(|e| e.to_string()));
    direct
}

/// S-HDR-14, S-HDR-16, S-HDR-21, H08
#[test]
fn equal_arguments_pass() {
    for (headers, body) in [
        (&[][..], "{}"),
        (&[], r#"{"region":null,"count":null,"a":null}"#),
        (&[], r#"{"a":{"b":null,"c":{"d":null}},"other":1}"#),
        (&[], r#"{"a":7}"#),
        (&[("Mcp-Param-Region", "us-west1")], r#"{"region":"us-west1"}"#),
        (&[("mcp-param-REGION", " us-west1 ")], r#"{"region":"us-\u0077est1"}"#),
        (&[("Mcp-Param-Region", "=?base64?SGVsbG8=?=")], r#"{"region":"Hello"}"#),
        (&[("Mcp-Param-Region", "=?base64?SGVsbG8=")], r#"{"region":"=?base64?SGVsbG8="}"#),
        (&[("Mcp-Param-Region", "")], r#"{"region":""}"#),
        (&[("Mcp-Param-Count", "42")], r#"{"count":42}"#),
        (&[("Mcp-Param-Count", "42.0")], r#"{"count":42}"#),
        (&[("Mcp-Param-Count", "42")], r#"{"count":42.0}"#),
        (&[("Mcp-Param-Count", "-9007199254740991")], r#"{"count":-9007199254740991}"#),
        (&[("Mcp-Param-dry-run", "true")], r#"{"dry":true}"#),
        (&[("Mcp-Param-dry-run", "false")], r#"{"dry":false}"#),
        (&[("Mcp-Param-B", "x"), ("Mcp-Param-D", "y")], r#"{"a":{"c":{"d":"y"},"b":"x"}}"#),
        // Headers that no argument has are ignored.
        (&[("Mcp-Param-Other", "x"), ("Mcp-Param-Other", "\u{e9}")], "{}"),
        // A value of another type than the schema's is refused by the schema.
        (&[("Mcp-Param-Count", "many")], r#"{"count":"many"}"#),
        (&[("Mcp-Param-Region", "1")], r#"{"region":1}"#),
    ] {
        let result = arguments(headers, body);
        assert!(result.is_ok(), "{headers:?} {body}: {result:?}");
    }
    let none = |name: &str| TestHead::new().value(name).map(|_| None);
    assert!(check_arguments(none, None, &usual()).is_ok());
    assert!(check_arguments(|_| unreachable!(), None, &[]).is_ok());
}

/// S-HDR-13 to S-HDR-19, S-HDR-22, H08
#[test]
fn differing_arguments_are_refused() {
    for (headers, body, says) in [
        (&[][..], r#"{"region":"us"}"#, r#"expected "us" at /params/arguments/region, found no such header"#),
        (
            &[("Mcp-Param-Region", "eu")],
            r#"{"region":"us"}"#,
            r#"expected "us" at /params/arguments/region, found "eu""#,
        ),
        (&[("Mcp-Param-Region", "US")], r#"{"region":"us"}"#, "found \"US\""),
        (&[("Mcp-Param-Region", "us")], "{}", "expected no header"),
        (&[("Mcp-Param-Region", "")], "{}", "expected no header"),
        (&[("Mcp-Param-Region", "null")], r#"{"region":null}"#, "expected no header"),
        (&[("Mcp-Param-Region", "us"), ("mcp-param-region", "us")], r#"{"region":"us"}"#, "more than once"),
        (&[("Mcp-Param-Region", "us"), ("mcp-param-region", "us")], "{}", "more than one"),
        (&[("Mcp-Param-Region", "=?base64?SGVsbG8?=")], r#"{"region":"Hello"}"#, "standard base64"),
        (&[("Mcp-Param-Region", "=?base64?SGVs!!!bG8=?=")], r#"{"region":"Hello"}"#, "standard base64"),
        (&[("Mcp-Param-Region", "Hello, 世界")], r#"{"region":"Hello, 世界"}"#, "no header can hold"),
        (&[("Mcp-Param-Region", "")], r#"{"region":"us"}"#, "found \"\""),
        (&[], r#"{"region":""}"#, "no such header"),
        (&[("Mcp-Param-Count", "43")], r#"{"count":42}"#, "expected 42 at"),
        (&[("Mcp-Param-Count", "042")], r#"{"count":42}"#, "expected 42 at"),
        (&[("Mcp-Param-Count", "")], r#"{"count":0}"#, "expected 0 at"),
        (&[("Mcp-Param-Count", "9007199254740993")], r#"{"count":9007199254740993}"#, "beyond 2^53-1"),
        (
            &[("Mcp-Param-Count", "9007199254740992")],
            r#"{"count":9007199254740991}"#,
            "expected 9007199254740991",
        ),
        (&[("Mcp-Param-Count", "1.5")], r#"{"count":1.5}"#, "a fraction"),
        (&[("Mcp-Param-Count", "[1]")], r#"{"count":[1]}"#, "found an array"),
        (&[("Mcp-Param-Region", "{}")], r#"{"region":{}}"#, "found an object"),
        (&[("Mcp-Param-dry-run", "True")], r#"{"dry":true}"#, "expected true at"),
        (&[("Mcp-Param-dry-run", "1")], r#"{"dry":true}"#, "expected true at"),
        (&[("Mcp-Param-dry-run", "true")], r#"{"dry":false}"#, "expected false at"),
        (&[("Mcp-Param-D", "x")], r#"{"a":{"c":{"d":"y"}}}"#, "at /params/arguments/a/c/d"),
        (&[], r#"{"a":{"b":"x"}}"#, "Mcp-Param-B: expected \"x\" at /params/arguments/a/b"),
        (&[("Mcp-Param-B", "x")], r#"{"a":[{"b":"x"}]}"#, "expected no header"),
        (&[("Mcp-Param-B", "x")], r#"{"b":"x"}"#, "expected no header"),
        // Two readers of one body must not see different values.
        (&[("Mcp-Param-Region", "us")], r#"{"region":"us","region":"eu"}"#, "more than once"),
        (&[("Mcp-Param-Region", "us")], r#"{"region":"us","\u0072egion":"us"}"#, "more than once"),
        (&[("Mcp-Param-B", "x")], r#"{"a":{"b":"x"},"a":{}}"#, "more than once"),
        (&[("Mcp-Param-B", "x")], r#"{"a":{},"a":{"b":"x"}}"#, "more than once"),
        (&[("Mcp-Param-B", "x")], r#"{"a":1,"a":{"b":"x"}}"#, "more than once"),
        (&[("Mcp-Param-D", "x")], r#"{"a":{"c":{"d":"x","d":"x"}}}"#, "more than once"),
    ] {
        let message = refused(arguments(headers, body));
        assert!(message.contains(says), "{headers:?} {body}: {message}");
    }
}

/// The one that reads the params refuses them.
#[test]
fn arguments_that_are_no_object_have_no_values() {
    for odd in ["null", "1", "[]", r#""region""#, r#"[{"region":"us"}]"#] {
        assert!(arguments(&[], odd).is_ok(), "{odd}");
        refused(arguments(&[("Mcp-Param-Region", "us")], odd));
    }
    let error = arguments(&[], r#"{"\ud800":1}"#).unwrap_err();
    assert_eq!(error.code, -32602, "{error}");
}

/// Deep, wide and repeating arguments: one pass for each level of the annotated paths.
#[test]
fn hostile_arguments_are_only_long() {
    let deep = format!(r#"{{"x":{}{},"a":{{"b":"x"}}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert!(arguments(&[("Mcp-Param-B", "x")], &deep).is_ok());
    let wide: String = (0..100_000).map(|i| format!(r#""k{i}":0,"#)).collect();
    assert!(arguments(&[("Mcp-Param-B", "x")], &format!(r#"{{{wide}"a":{{{wide}"b":"x"}}}}"#)).is_ok());
    let again = r#""a":{"b":"x"},"#.repeat(50_000);
    refused(arguments(&[("Mcp-Param-B", "x")], &format!(r#"{{{again}"z":0}}"#)));
}

/// Paths that begin alike, share names, or are each other's beginning.
#[test]
fn paths_are_followed_step_by_step() {
    let odd = annotated(
        r#""a":{"type":"string","x-mcp-header":"A","properties":{"a":{"type":"string","x-mcp-header":"AA"}}},
           "ab":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"ABA"}}},
           "a/~":{"type":"string","x-mcp-header":"Odd"}"#,
    );
    let check = |headers: &[(&'static str, &str)], body: &str| {
        let head = headers.iter().fold(TestHead::new(), |head, (name, value)| head.with(name, value));
        let body = RawValue::from_string(body.into()).unwrap();
        check_arguments(|name| head.value(name), Some(&body), &odd)
    };
    assert!(check(&[("mcp-param-a", "1"), ("mcp-param-aba", "2")], r#"{"ab":{"a":"2"},"a":"1"}"#).is_ok());
    assert!(refused(check(&[], r#"{"a":{"a":"1"}}"#)).contains("found an object"));
    assert!(refused(check(&[], r#"{"a/~":"1"}"#)).contains("/params/arguments/a~1~0"));
}

proptest! {
    /// A client's own encoding always passes, and a different text never does.
    #[test]
    fn what_a_client_writes_passes(text in any::<String>(), other in any::<String>()) {
        let args = annotated(r#""p":{"type":"string","x-mcp-header":"P"}"#);
        let body = serde_json::value::to_raw_value(&serde_json::json!({ "p": text })).unwrap();
        let head = TestHead::new().with("Mcp-Param-P", value::encode(&text).as_bytes());
        prop_assert!(check_arguments(|name| head.value(name), Some(&body), &args).is_ok());
        let head = TestHead::new().with("Mcp-Param-P", value::encode(&other).as_bytes());
        prop_assert_eq!(check_arguments(|name| head.value(name), Some(&body), &args).is_ok(), text == other);
    }
}

/// What a client mirrors is what the check takes, for every argument that a header can repeat.
/// C-HDR-07, C-HDR-11, C-HDR-12, C-HDR-13, C-HDR-17, C-HDR-18, C-HDR-19; the values are those that the
/// official suite sends.
#[test]
fn a_client_mirrors_what_the_server_checks() {
    let argument = |header: &str, kind: &str| format!(r#"{{"type":"{kind}","x-mcp-header":"{header}"}}"#);
    let schema = [
        ("region", "Region", "string"),
        ("priority", "Priority", "integer"),
        ("verbose", "Verbose", "boolean"),
        ("debug", "Debug", "boolean"),
        ("empty_val", "EmptyVal", "string"),
        ("method_val", "Method", "string"),
        ("non_ascii_val", "NonAscii", "string"),
        ("whitespace_val", "Whitespace", "string"),
        ("leading_space_val", "LeadingSpace", "string"),
        ("trailing_space_val", "TrailingSpace", "string"),
        ("internal_space_val", "InternalSpace", "string"),
        ("control_char_val", "ControlChar", "string"),
        ("crlf_val", "CrLf", "string"),
        ("tab_val", "Tab", "string"),
    ]
    .map(|(name, header, kind)| format!("{name:?}:{}", argument(header, kind)))
    .join(",");
    let schema: JsonSchema =
        serde_json::from_str(&format!(r#"{{"type":"object","properties":{{{schema}}}}}"#)).unwrap();
    let annotated = schema.header_arguments().unwrap();
    let call = |arguments: &str| {
        let arguments = RawValue::from_string(arguments.into()).unwrap();
        let mut mirrored = mirrored(Some(&arguments), &annotated);
        let mut head = TestHead::new();
        for (name, value) in &mirrored {
            head = head.with(alloc::boxed::Box::leak(name.clone().into_boxed_str()), value);
        }
        check_arguments(|name| head.value(name), Some(&arguments), &annotated).unwrap();
        mirrored.sort();
        mirrored
    };
    let all = call(
        r#"{"region":"us-west1","priority":42,"verbose":false,"debug":true,"empty_val":"",
            "method_val":"test-method","float_val":3.14159,"non_ascii_val":"Hello, 世界",
            "whitespace_val":" padded ","leading_space_val":" us-west1","trailing_space_val":"us-west1 ",
            "internal_space_val":"us west 1","control_char_val":"line1\nline2","crlf_val":"line1\r\nline2",
            "tab_val":"\tindented","query":"SELECT * FROM users"}"#,
    );
    let expected = [
        ("ControlChar", "=?base64?bGluZTEKbGluZTI=?="),
        ("CrLf", "=?base64?bGluZTENCmxpbmUy?="),
        ("Debug", "true"),
        ("EmptyVal", ""),
        ("InternalSpace", "us west 1"),
        ("LeadingSpace", "=?base64?IHVzLXdlc3Qx?="),
        ("Method", "test-method"),
        ("NonAscii", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        ("Priority", "42"),
        ("Region", "us-west1"),
        ("Tab", "=?base64?CWluZGVudGVk?="),
        ("TrailingSpace", "=?base64?dXMtd2VzdDEg?="),
        ("Verbose", "false"),
        ("Whitespace", "=?base64?IHBhZGRlZCA=?="),
    ];
    let expected = expected.map(|(name, value)| (format!("mcp-param-{}", name.to_lowercase()), value.into()));
    assert_eq!(all, expected);

    let with_null = call(r#"{"region":"us-east1","priority":1.0,"verbose":null,"query":"SELECT 1"}"#);
    assert_eq!(
        with_null,
        [("mcp-param-priority", "1"), ("mcp-param-region", "us-east1")].map(|(a, b)| (a.into(), b.into()))
    );
    assert_eq!(call("{}"), []);
    assert_eq!(mirrored(None, &annotated), []);
}

/// B-HDR-01: what no header can repeat is not sent; the other side says what is wrong with it.
#[test]
fn what_no_header_can_repeat_is_not_mirrored() {
    let schema: JsonSchema =
        serde_json::from_str(r#"{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}"#)
            .unwrap();
    let annotated = schema.header_arguments().unwrap();
    for arguments in [r#"{"n":1.5}"#, r#"{"n":9007199254740993}"#, r#"{"n":[1]}"#, r#"{"n":1,"n":1}"#, "[1]"]
    {
        let arguments = RawValue::from_string(arguments.into()).unwrap();
        assert_eq!(mirrored(Some(&arguments), &annotated), [], "{arguments}");
    }
}
