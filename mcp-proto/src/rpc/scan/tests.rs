use alloc::string::String;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

/// The end of the value that `text` is, or the fault.
fn walk(text: &str) -> Result<&str, Fault> {
    let mut scanner = Scanner::new(text);
    let value = scanner.value()?;
    scanner.end()?;
    Ok(value.get())
}

fn reference(text: &str) -> Option<&str> {
    serde_json::from_str::<&RawValue>(text).ok().map(RawValue::get)
}

/// Both see the same value, or none.
fn same(text: &str) -> Result<(), TestCaseError> {
    prop_assert_eq!(walk(text).ok(), reference(text), "{:?}", text);
    Ok(())
}

#[test]
fn what_is_json_and_what_is_not() {
    for (text, fine) in [
        ("0", true),
        ("-0", true),
        ("-0.0e+00", true),
        ("1e999", true),
        ("12345678901234567890123", true),
        ("01", false),
        ("-", false),
        ("+1", false),
        ("1.", false),
        (".5", false),
        ("1e", false),
        ("1e+", false),
        ("NaN", false),
        ("true", true),
        ("tru", false),
        ("truee", false),
        ("null ", true),
        ("\u{a0}1", false),
        ("\u{feff}1", false),
        ("", false),
        (" ", false),
        ("1 2", false),
        ("[]", true),
        ("[ ]", true),
        ("[1,]", false),
        ("[,1]", false),
        ("[1 2]", false),
        ("[1}", false),
        ("{}", true),
        ("{ }", true),
        (r#"{"a":1,}"#, false),
        (r#"{"a"}"#, false),
        (r#"{"a":}"#, false),
        (r#"{a:1}"#, false),
        (r#"{"a":1]"#, false),
        (r#"{"a":1"#, false),
        (r#"[{"a":[{"b":[]},{}]},"x"]"#, true),
        (r#""\ud800""#, true),
        (r#""\u12g4""#, false),
        (r#""\u123"#, false),
        (r#""\x""#, false),
        ("\"\\", false),
        ("\"\u{7f}é🎉\"", true),
        ("\"\n\"", false),
        ("\"\u{0}\"", false),
    ] {
        assert_eq!(walk(text).is_ok(), fine, "{text:?}");
        assert_eq!(reference(text).is_some(), fine, "{text:?}");
    }
}

/// Trap 2 of every fast scanner: the byte that ends a run, at each place of a word and of a block.
#[test]
fn special_bytes_are_found_wherever_they_stand() {
    for len in 0..200 {
        for at in 0..len {
            for special in [0, 1, 0x1f, b'"', b'\\'] {
                for filler in [b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xa2, 0xdc, 0xff] {
                    let mut bytes = alloc::vec![filler; len];
                    bytes[at] = special;
                    assert_eq!(plain(&bytes, 0), at);
                    assert_eq!(plain(&bytes, at / 2), at);
                    // What stands behind the first one changes nothing.
                    bytes[len - 1] = special;
                    assert_eq!(plain(&bytes, 0), at);
                }
            }
        }
        assert_eq!(plain(&alloc::vec![b'x'; len], 0), len);
    }
}

/// E10: depth is exact on both sides of the list of bits, and takes no stack.
#[test]
fn depth_is_known() {
    for depth in (1..200).chain([1000, 200_000]) {
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"\":", "}]")] {
            let text = alloc::format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let deep = depth * (close.len());
            let mut scanner = Scanner::new(&text);
            scanner.value().unwrap();
            for max in [deep - 1, deep, 128] {
                assert_eq!(scanner.went_deeper_than(max), deep > max, "{deep} {max}");
            }
            assert!(walk(&text[..text.len() - 1]).is_err());
            assert!(walk(&alloc::format!("{text}]")).is_err());
        }
    }
}

#[test]
fn a_raw_value_is_the_text_itself() {
    let text = r#" {"a": [1, "\u0041"]} "#;
    let value = walk(text).unwrap();
    assert_eq!(value, text.trim());
    assert!(core::ptr::eq(value.as_ptr(), text[1..].as_ptr()), "nothing is copied");
    assert!(<&RawValue>::deserialize(Known("1")).is_ok(), "serde_json asks for raw values as before");
}

/// Names are decoded, and refused as `serde_json` refuses them.
#[test]
fn names_are_strings() {
    let names = |text: &str| {
        let mut seen = Vec::new();
        Scanner::new(text)
            .object(|scanner, name| {
                seen.push(name.into_owned());
                scanner.value().map(drop)
            })
            .map(|()| seen)
    };
    assert_eq!(names(r#"{"a":1,"\u0062":2,"\ud83c\udf89":{}}"#).unwrap(), ["a", "b", "🎉"]);
    assert_eq!(names(r#"{"a":1,"\ud800":2}"#).unwrap_err().place(r#"{"a":1,"\ud800":2}"#), (1, 9));
    assert_eq!(names("{\"a\":1\n,2}").unwrap_err().place("{\"a\":1\n,2}"), (2, 2));
}

/// A JSON value of any kind, as text with white space in it.
fn json() -> impl Strategy<Value = String> {
    let space = || prop::sample::select(&["", "", "", " ", "\n", "\t\r "][..]);
    let string =
        r#"([ -!#-\[\]-~é🎉]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}){0,90}"#.prop_map(|s| alloc::format!("\"{s}\""));
    let number = r"-?(0|[1-9][0-9]{0,4})(\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?";
    let leaf = prop_oneof![
        string.clone(),
        number.prop_map(String::from),
        prop::sample::select(&["true", "false", "null", "[]", "{}"][..]).prop_map(String::from),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        let item = (space(), inner, space()).prop_map(|(a, v, b)| alloc::format!("{a}{v}{b}"));
        let member = (space(), string.clone(), space(), item.clone())
            .prop_map(|(a, name, b, value)| alloc::format!("{a}{name}{b}:{value}"));
        prop_oneof![
            prop::collection::vec(item, 0..5).prop_map(|items| alloc::format!("[{}]", items.join(","))),
            prop::collection::vec(member, 0..5).prop_map(|all| alloc::format!("{{{}}}", all.join(","))),
        ]
    })
}

proptest! {
    #[test]
    fn json_is_walked_to_its_end(text in json()) {
        prop_assert!(walk(&text).is_ok(), "{}", text);
        same(&text)?;
    }

    /// One byte off: both still agree.
    #[test]
    fn damaged_json_is_judged_alike(text in json(), at in any::<prop::sample::Index>(), by in "[\\x00-\\x7f]{0,2}") {
        let at = at.index(text.len() + 1);
        let Some((before, after)) = text.split_at_checked(at) else { return Ok(()) };
        same(&alloc::format!("{before}{by}{after}"))?;
        let mut rest = after.chars();
        rest.next();
        same(&alloc::format!("{before}{by}{}", rest.as_str()))?;
        same(before)?;
    }

    #[test]
    fn tokens_in_any_order_are_judged_alike(
        tokens in prop::collection::vec(
            prop::sample::select(&["{", "}", "[", "]", ",", ":", "\"a\"", "1", "-", "0", ".", "e", "true", " "][..]), 0..12,
        ),
    ) {
        same(&tokens.concat())?;
    }
}
