use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};
use core::fmt::Debug;

use proptest::prelude::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{DecodeError, from_str};

#[derive(Debug, PartialEq, Deserialize)]
struct Add {
    a: f64,
    b: f64,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Counts {
    n: i64,
    m: Option<u8>,
    #[serde(default)]
    list: Vec<u32>,
    #[serde(default)]
    nested: BTreeMap<String, Inner>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Inner {
    k: i32,
    shape: Option<Shape>,
    pair: Option<(u8, String)>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Shape {
    Dot,
    Circle(u32),
    Box { w: u32, h: u32 },
    Line(i8, i8),
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Closed {
    x: bool,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Meters(u32);

fn error<T: DeserializeOwned + Debug>(text: &str) -> DecodeError {
    from_str::<T>(text).unwrap_err()
}

fn says<T: DeserializeOwned + Debug>(text: &str, words: &str) {
    assert_eq!(error::<T>(text).to_string(), words, "for {text}");
}

/// Trap 1: derived structs take arrays elsewhere.
#[test]
fn arrays_are_no_structs_at_any_depth() {
    assert_eq!(serde_json::from_str::<Add>("[1,2]").unwrap(), Add { a: 1.0, b: 2.0 });
    says::<Add>("[1,2]", "at the root: expected an object, found an array");
    says::<Vec<Add>>(r#"[{"a":1,"b":2},[1,2]]"#, "at /1: expected an object, found an array");
    says::<Shape>(r#"{"box":[1,2]}"#, "at /box: expected an object, found an array");
    says::<Counts>(
        r#"{"n":1,"nested":{"x":[1,null,null]}}"#,
        "at /nested/x: expected an object, found an array",
    );
    says::<Option<Add>>("[1,2]", "at the root: expected an object, found an array");
    assert_eq!(from_str::<(u8, Meters)>("[1,2]").unwrap(), (1, Meters(2)));
}

/// T06.
#[test]
fn whole_numbers_are_integers_whatever_their_spelling() {
    for (text, n) in [
        ("30", 30),
        ("30.0", 30),
        ("3e1", 30),
        ("3E+1", 30),
        ("0.3e2", 30),
        ("3000e-2", 30),
        ("30.000000000000000000000000000000000000000000000000", 30),
        ("-0.0", 0),
        ("-0", 0),
        ("0e999999999999999999999999", 0),
        ("9007199254740993", 9_007_199_254_740_993),
        ("9007199254740993.0", 9_007_199_254_740_993),
        ("900719925474099300e-2", 9_007_199_254_740_993),
        ("-9223372036854775808.0", i64::MIN),
        ("9223372036854775807e0", i64::MAX),
        ("9223372036854775807.00", i64::MAX),
    ] {
        assert_eq!(from_str::<i64>(text), Ok(n), "{text}");
        assert_eq!(from_str::<Counts>(&format!("{{\"n\":{text}}}")).unwrap().n, n, "{text}");
    }
    assert_eq!(from_str::<u64>("18446744073709551615.0"), Ok(u64::MAX));
    assert_eq!(from_str::<u128>("340282366920938463463374607431768211455.0"), Ok(u128::MAX));
    assert_eq!(from_str::<u128>("7"), Ok(7));
    assert_eq!(from_str::<i128>("-170141183460469231731687303715884105728.0"), Ok(i128::MIN));
    assert_eq!(
        from_str::<Vec<Option<Meters>>>("[1.0,null,2e0]").unwrap(),
        [Some(Meters(1)), None, Some(Meters(2))]
    );
}

/// T06.
#[test]
fn fractions_strings_and_what_is_out_of_range_are_no_integers() {
    let i64_range = "an integer from -9223372036854775808 to 9223372036854775807";
    for (text, found) in [
        ("1.5", "the number 1.5"),
        ("1.00000000000000000001", "the number 1.00000000000000000001"),
        ("1e-1", "the number 1e-1"),
        ("1e-99999999999999999999", "the number 1e-99999999999999999999"),
        ("9223372036854775808", "the number 9223372036854775808"),
        ("-9223372036854775809", "the number -9223372036854775809"),
        ("1e19", "the number 10000000000000000000"),
        ("1e400", "the number 1e400"),
        ("1e99999999999999999999", "the number 1e99999999999999999999"),
        ("\"30\"", "the string \"30\""),
        ("\"\\u0033\"", "the string \"3\""),
        ("null", "null"),
        ("true", "true"),
        ("[1]", "an array"),
        ("{\"n\":1}", "an object"),
    ] {
        says::<i64>(text, &format!("at the root: expected {i64_range}, found {found}"));
    }
    says::<u8>("256.0", "at the root: expected an integer from 0 to 255, found the number 256");
    says::<u8>("-1", "at the root: expected an integer from 0 to 255, found the number -1");
    assert!(from_str::<u128>("340282366920938463463374607431768211456").is_err());
    assert!(from_str::<u128>("-1.0").is_err());
    assert!(from_str::<i128>("170141183460469231731687303715884105728.0").is_err());
    assert!(from_str::<i128>(&format!("1{}.0", "0".repeat(39))).is_err());
}

#[test]
fn places_are_json_pointers() {
    says::<Add>(r#"{"a":"x","b":1}"#, "at /a: expected a number, found the string \"x\"");
    says::<Add>(r#"{"a":1}"#, "at /b: required, but missing");
    says::<Add>(r#"{"a":1,"b":1,"a":2}"#, "at /a: given twice");
    says::<Closed>(r#"{"x":true,"y/~z":1}"#, "at /y~1~0z: unknown member, expected \"x\"");
    says::<Counts>(
        r#"{"n":1,"list":[1,2,"x"]}"#,
        "at /list/2: expected an integer from 0 to 4294967295, found the string \"x\"",
    );
    says::<Counts>(r#"{"n":1,"nested":{"a\/b":{}}}"#, "at /nested/a~1b/k: required, but missing");
    says::<Vec<Vec<bool>>>("[[],[true,0]]", "at /1/1: expected a boolean, found the number 0");
    says::<BTreeMap<u32, bool>>(r#"{"7":0}"#, "at /7: expected a boolean, found the number 0");
    says::<BTreeMap<bool, u8>>(
        r#"{"true":"x"}"#,
        "at /true: expected an integer from 0 to 255, found the string \"x\"",
    );
    says::<BTreeMap<Option<Meters>, bool>>(r#"{"7":0}"#, "at /7: expected a boolean, found the number 0");
    says::<BTreeMap<u32, bool>>(r#"{"x":true}"#, "at the root: expected a member name that is a number");
}

impl PartialOrd for Meters {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Meters {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

impl Eq for Meters {}

#[test]
fn mismatches_are_told_in_the_words_of_json() {
    says::<bool>("null", "at the root: expected a boolean, found null");
    says::<String>("1.5", "at the root: expected a string, found the number 1.5");
    says::<String>("[]", "at the root: expected a string, found an array");
    says::<Vec<u8>>("{}", "at the root: expected an array, found an object");
    says::<BTreeMap<String, u8>>("true", "at the root: expected an object, found true");
    says::<()>("-4", "at the root: expected null, found the number -4");
    says::<char>("\"ab\"", "at the root: expected a string of one character, found the string \"ab\"");
    says::<(u8, u8)>("[1]", "at the root: expected an array of 2 items, found 1 item");
    says::<(u8, u8)>("[1,2,3]", "at the root: expected an array of 2 items, found more than 2 items");
    says::<[u8; 3]>("[1,2]", "at the root: expected an array of 3 items, found 2 items");
    says::<Shape>(r#"{"line":[1]}"#, "at /line: expected an array of 2 items, found 1 item");
}

#[test]
fn enums_name_their_choices() {
    assert_eq!(
        from_str::<Vec<Shape>>(
            r#"["dot",{"circle":2.0},{"box":{"h":1,"w":2}},{"line":[1,-1]},{"dot":null}]"#
        )
        .unwrap(),
        [Shape::Dot, Shape::Circle(2), Shape::Box { w: 2, h: 1 }, Shape::Line(1, -1), Shape::Dot,]
    );
    assert_eq!(from_str::<Shape>("\"d\\u006ft\"").unwrap(), Shape::Dot);
    let choices = r#"one of "dot", "circle", "box", "line""#;
    says::<Shape>("\"ring\"", &format!("at the root: expected {choices}, found the string \"ring\""));
    says::<Shape>("5", &format!("at the root: expected {choices}, found the number 5"));
    says::<Shape>("{}", &format!("at the root: expected {choices}, found an object"));
    says::<Shape>(r#"{"ring":1}"#, &format!("at the root: expected {choices}, found the string \"ring\""));
    says::<Shape>(
        r#"{"dot":null,"circle":1}"#,
        "at the root: expected an object with one member, found an object with more members",
    );
    says::<Shape>(
        "\"circle\"",
        "at the root: expected an object with a value for that name, found only the name",
    );
    says::<BTreeMap<Color, bool>>(r#"{"red":0}"#, "at /red: expected a boolean, found the number 0");
    says::<BTreeMap<Color, u8>>(r#"{"blue":0}"#, "at the root: expected \"red\", found the string \"blue\"");
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Color {
    Red,
}

/// Peer text in an error is short and free of control characters, however hostile.
#[test]
fn errors_echo_little() {
    let long = "x".repeat(10_000);
    let e = error::<Add>(&format!(r#"{{"a":"{long}"}}"#));
    assert_eq!(e.found.as_deref().unwrap(), format!("the string \"{}…\"", "x".repeat(40)));
    let e = error::<Vec<u8>>(&format!("[{}]", "1".repeat(10_000)));
    assert!(e.to_string().len() < 160, "{e}");
    for text in [r"\u0000".repeat(100), r#"\""#.repeat(100), r"\\".repeat(99), r"\n".repeat(100)] {
        for e in [
            error::<bool>(&format!("\"{text}\"")),
            error::<u8>(&format!("\"{text}\"")),
            error::<Color>(&format!("\"{text}\"")),
            error::<BTreeMap<String, BTreeMap<String, u8>>>(&format!(r#"{{"{text}":{{"{text}":null}}}}"#)),
            error::<Closed>(&format!(r#"{{"{text}":1}}"#)),
        ] {
            let shown = e.to_string();
            assert!(shown.chars().count() <= 620 && !shown.contains(char::is_control), "{shown:?}");
            assert!(e.found.is_none_or(|found| found.chars().count() <= 64));
        }
    }
    let deep = format!("{}1{}", r#"{"some name":"#.repeat(100), "}".repeat(100));
    let e = error::<Deep>(&deep);
    assert!(e.pointer.len() < 260 && e.pointer.ends_with("/…"), "{e}");
    let e = error::<Echo>("\"y\"");
    assert!(e.to_string().len() < 200, "{e}");
}

#[derive(Debug)]
struct Echo;

impl<'de> Deserialize<'de> for Echo {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom("y".repeat(10_000)))
    }
}

#[derive(Debug, Deserialize)]
#[allow(dead_code)]
struct Deep {
    #[serde(rename = "some name")]
    next: Option<Box<Self>>,
}

#[test]
fn broken_json_is_said_to_be_that() {
    says::<Add>("{\"a\":1,", "at the root: invalid JSON: EOF while parsing a value at line 1 column 7");
    says::<Add>("", "at the root: invalid JSON: EOF while parsing a value at line 1 column 0");
    says::<u8>("1 2", "at the root: invalid JSON: trailing characters at line 1 column 3");
    says::<Vec<u8>>("[1,]", "at /1: invalid JSON: trailing comma at line 1 column 4");
    assert!(error::<Vec<u8>>("[01]").message.starts_with("invalid JSON: "));
    assert!(error::<Value>("\"\\ud800\"").message.starts_with("invalid JSON: "));
}

#[test]
fn texts_and_borrows_pass() {
    #[derive(Deserialize)]
    struct Passing<'a> {
        n: u8,
        #[serde(borrow)]
        raw: &'a RawValue,
        owned: Box<RawValue>,
        plain: &'a str,
        #[serde(borrow)]
        cow: Cow<'a, str>,
        any: Value,
        raws: BTreeMap<String, &'a RawValue>,
    }
    // The second text needs the second pass.
    for n in ["1", "1.0"] {
        let text = format!(
            r#"{{"raw": {{"a" : [1.50]}},"owned": [ 1 ],"plain":"p","cow":"a\/b","any":{{"x":[1,2.5,null]}},"raws":{{"r":1e2}},"n":{n}}}"#
        );
        let p: Passing<'_> = from_str(&text).unwrap();
        assert_eq!(p.n, 1);
        assert_eq!((p.raw.get(), p.owned.get(), p.raws["r"].get()), (r#"{"a" : [1.50]}"#, "[ 1 ]", "1e2"));
        assert_eq!((p.plain, p.cow.as_ref()), ("p", "a/b"));
        assert_eq!(p.any, json!({"x": [1, 2.5, null]}));
        assert!(text.as_bytes().as_ptr_range().contains(&p.raw.get().as_ptr()));
    }
    assert!(from_str::<&str>(r#""a\/b""#).is_err());
    let keys: Pairs<'_> = from_str(r#"{"a\/b":1.0}"#).unwrap();
    assert_eq!((keys.0[0].0.get(), keys.0[0].1), (r#""a\/b""#, 1));
}

/// The members of an object, names as text.
struct Pairs<'a>(Vec<(&'a RawValue, u8)>);

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> serde::de::Visitor<'de> for Members {
            type Value = Pairs<'de>;
            fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Pairs<'de>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(from_str::<Value>(&nested(127)).is_ok());
    assert_eq!(error::<Value>(&nested(128)).message, "nested too deeply");
    assert_eq!(error::<Value>(&nested(100_000)).message, "nested too deeply");
    let objects = |n: usize| format!("{}null{}", r#"{"some name":"#.repeat(n), "}".repeat(n));
    assert!(from_str::<Deep>(&objects(127)).is_ok());
    assert_eq!(error::<Deep>(&objects(128)).message, "nested too deeply");
}

#[test]
fn a_fault_can_be_placed_in_a_larger_value() {
    let e = error::<Add>(r#"{"a":1,"b":null}"#).within("/params/arguments");
    assert_eq!(e.to_string(), "at /params/arguments/b: expected a number, found null");
    assert_eq!((e.expected.as_deref(), e.found.as_deref()), (Some("a number"), Some("null")));
}

/// What a type's own code says keeps its place.
#[test]
fn custom_messages_have_a_place() {
    #[derive(Debug, Deserialize)]
    #[serde(try_from = "u32")]
    struct Even;
    impl TryFrom<u32> for Even {
        type Error = &'static str;
        fn try_from(n: u32) -> Result<Self, Self::Error> {
            if n.is_multiple_of(2) { Ok(Self) } else { Err("not even") }
        }
    }
    says::<Vec<Even>>("[2,4.0,5]", "at /2: not even");
}

fn any_json() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        any::<i64>().prop_map(Value::from),
        (-3i64..300).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-8i32..8).prop_map(|n| Value::from(f64::from(n) / 2.0)),
        // Whole floats between these bounds are integers to us, whose digits no float holds exactly.
        any::<f64>()
            .prop_filter("finite", |n| n.is_finite()
                && (n.fract() != 0.0 || !(1e15..1e20).contains(&n.abs())))
            .prop_map(Value::from),
    ];
    let text =
        prop_oneof![Just("dot"), Just("red"), Just("true"), Just("7"), Just("é\"\n\\")].prop_map(Value::from);
    let leaf =
        prop_oneof![3 => number, 1 => any::<bool>().prop_map(Value::from), 1 => Just(Value::Null), 2 => text];
    let name = prop::sample::select(vec![
        "a", "b", "n", "m", "k", "list", "nested", "shape", "pair", "w", "h", "circle", "box", "line", "dot",
        "7",
    ]);
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..5)
                .prop_map(|members| members.into_iter().map(|(k, v)| (String::from(k), v)).collect())
        ]
    })
}

/// The value with what only this decoder takes rewritten to what everyone takes, where a whole float is
/// not a float on purpose.
fn with_plain_integers(value: &Value) -> Value {
    match value {
        Value::Number(n) => match n.as_f64() {
            Some(f) if n.is_f64() && f.fract() == 0.0 && f.abs() < 1e15 => Value::from(f as i64),
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(with_plain_integers).collect(),
        Value::Object(members) => members.iter().map(|(k, v)| (k.clone(), with_plain_integers(v))).collect(),
        _ => value.clone(),
    }
}

/// A struct never takes an array: whether `value` has an array where one of our structs may stand cannot
/// be told from outside, so agreement is asked in one direction for those.
fn agrees<T: DeserializeOwned + PartialEq + Debug>(value: &Value, exact: bool) -> Result<(), TestCaseError> {
    let plain = with_plain_integers(value).to_string();
    let text = value.to_string();
    let theirs = serde_json::from_str::<T>(&plain);
    match from_str::<T>(&text) {
        Ok(ours) => {
            let theirs = theirs.map_err(|e| TestCaseError::fail(format!("only we took {text}: {e}")))?;
            prop_assert_eq!(&ours, &theirs);
            prop_assert_eq!(&from_str::<T>(&plain).unwrap(), &ours);
        }
        Err(e) => {
            prop_assert!(!exact || theirs.is_err(), "only we refused {}: {}", text, e);
            prop_assert!(e.pointer.is_empty() || e.pointer.starts_with('/'));
            prop_assert!(
                value.pointer(&e.pointer).is_some() || e.message == "required, but missing",
                "{}",
                e
            );
            if theirs.is_ok() {
                prop_assert_eq!(e.expected.as_deref(), Some("an object"), "only we refused {}: {}", text, e);
                prop_assert_eq!(e.found.as_deref(), Some("an array"));
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6 * ProptestConfig::default().cases))]

    /// Agreement with `serde_json` apart from arrays for structs and whole numbers for integers.
    #[test]
    fn agrees_with_serde_json(value in any_json()) {
        agrees::<Value>(&with_plain_integers(&value), true)?;
        agrees::<Counts>(&value, false)?;
        agrees::<Inner>(&value, false)?;
        agrees::<Add>(&value, false)?;
        agrees::<Shape>(&value, false)?;
        agrees::<Vec<Shape>>(&value, false)?;
        agrees::<BTreeMap<String, i16>>(&value, true)?;
        agrees::<BTreeMap<Shape0, Option<bool>>>(&value, true)?;
        agrees::<(i64, Option<String>, Vec<u8>)>(&value, true)?;
        agrees::<Option<Vec<Meters>>>(&value, true)?;
    }

    /// The exact reading of digits agrees with a slow one.
    #[test]
    fn digits_are_exact(n in any::<i64>(), zeros in 0usize..30, shift in 0usize..25) {
        let digits = n.unsigned_abs().to_string();
        let sign = if n < 0 { "-" } else { "" };
        prop_assert_eq!(from_str::<i64>(&format!("{sign}{digits}.{}", "0".repeat(zeros + 1))), Ok(n));
        prop_assert_eq!(from_str::<i64>(&format!("{sign}{digits}{}e-{zeros}", "0".repeat(zeros))), Ok(n));
        let padded = format!("{}{digits}", "0".repeat(25));
        let at = padded.len() - shift;
        let whole = padded[..at].trim_start_matches('0');
        let whole = if whole.is_empty() { "0" } else { whole };
        let text = format!("{sign}{whole}.{}0e{shift}", &padded[at..]);
        prop_assert_eq!(from_str::<i64>(&text), Ok(n), "{}", text);
        let text = format!("{sign}{digits}.{}1", "0".repeat(zeros));
        prop_assert!(from_str::<i64>(&text).is_err());
    }

    #[test]
    fn no_text_makes_it_panic(text in "[\\[\\]{}\",:0-9eE.+\\-\\\\ truefalsn]{0,40}") {
        let _ = from_str::<Counts>(&text);
        let _ = from_str::<Shape>(&text);
        let ours = from_str::<Value>(&text);
        prop_assert_eq!(ours.is_ok(), serde_json::from_str::<Value>(&text).is_ok());
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Shape0 {
    Dot,
    A,
    B,
}
