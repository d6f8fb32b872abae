use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::limits::Limits;
use crate::random::PredictableRandom;

const ARGUMENTS: &str = r#"{"env":"prod","n":30}"#;
const EXPIRES: UnixTime = UnixTime::from_millis(1_785_231_000_000);
const NOW: UnixTime = UnixTime::from_millis(1_785_230_999_999);
/// Made by an independent program from the description of the format.
const GOLDEN: &str = "v1.2P1cuGMolnUAAAGfqA9BwAABAgMEBQYHCAkKCwwNDg9vNpsizQ6GulP5Zji5zyE_BO13kAiAkjP1hWx1nFF-\
                      Yiia3qxcsxKVfaQcEeB6VWFqb3VybmFs.dDlwveKhi-cLcH4zABPm3EtxhvpGUb9dYUxyn0arWx8";

fn binding() -> Binding<'static> {
    Binding {
        audience: "https://example.com/mcp",
        principal: Some("alice"),
        method: "tools/call",
        target: "deploy",
        arguments: digest_arguments(Some(ARGUMENTS)),
    }
}

fn secret(n: u8) -> Vec<u8> {
    (n..n + 32).collect()
}

fn ring(n: u8) -> KeyRing {
    KeyRing::new(&secret(n)).unwrap()
}

fn sealed(keys: &KeyRing, payload: &[u8]) -> String {
    keys.seal(&binding(), payload, EXPIRES, &mut PredictableRandom::for_tests(1)).unwrap().into_string()
}

fn refusal(token: &str, keys: &KeyRing, binding: &Binding<'_>, now: UnixTime) -> Refusal {
    let error = UnverifiedState::new(token).open(keys, binding, now).unwrap_err();
    // Nothing of the reason gets out.
    assert_eq!(error.to_string(), StateError::MESSAGE);
    let outward = rpc::Error::from(error);
    assert_eq!((outward.code, outward.message.as_ref()), (-32602, StateError::MESSAGE));
    assert!(outward.data.is_none());
    error.reason()
}

/// The format is frozen: tokens outlive the process that made them.
#[test]
fn golden_token() {
    struct Counting;
    impl Random for Counting {
        fn fill(&mut self, bytes: &mut [u8]) {
            bytes.iter_mut().zip(0..).for_each(|(byte, n)| *byte = n);
        }
    }
    let keys = ring(0);
    assert_eq!(keys.seal(&binding(), b"journal", EXPIRES, &mut Counting).unwrap().as_str(), GOLDEN);
    let opened = UnverifiedState::new(GOLDEN).open(&keys, &binding(), NOW).unwrap();
    assert_eq!(opened.payload(), b"journal");
    assert_eq!(opened.expires(), EXPIRES);
    assert_eq!(opened.nonce().as_bytes()[..3], [0, 1, 2]);
}

/// The digests are part of the format; these, too, come from an independent program.
#[test]
fn golden_digests() {
    for (text, digest) in [
        (ARGUMENTS, "0038e763476c514e19530e7aa8225bb4bb7c3eb7d66d2d4b1db0d72e666375b2"),
        (
            r#"[null,true,false,0,-1.25,"é",{},[]]"#,
            "b5ce141c5ea90dc1c2f4d5884bd1f7e26f20373591431a8e83ad0bad38cda4e3",
        ),
    ] {
        assert_eq!(format!("{:?}", digest_arguments(Some(text))), digest);
    }
}

/// S-MRTR-05, S-MRTR-07: every single change of a byte.
#[test]
fn no_byte_can_be_changed() {
    let keys = ring(0);
    for payload in [&b""[..], b"j", b"jo", b"journal"] {
        let token = sealed(&keys, payload);
        for i in 0..token.len() {
            for byte in (0..128).filter(|byte| *byte != token.as_bytes()[i]) {
                let mut forged = token.clone().into_bytes();
                forged[i] = byte;
                refusal(core::str::from_utf8(&forged).unwrap(), &keys, &binding(), NOW);
            }
        }
    }
}

#[test]
fn no_part_can_be_cut_doubled_or_exchanged() {
    let keys = ring(0);
    let (a, b) = (sealed(&keys, b"once"), {
        let mut random = PredictableRandom::for_tests(2);
        keys.seal(&binding(), b"more", EXPIRES, &mut random).unwrap().into_string()
    });
    for end in 0..a.len() {
        refusal(&a[..end], &keys, &binding(), NOW);
        refusal(&a[end + 1..], &keys, &binding(), NOW);
    }
    let parts = |token: &str| token.split('.').map(String::from).collect::<Vec<_>>();
    let (pa, pb) = (parts(&a), parts(&b));
    for (token, why) in [
        (format!("v1.{}.{}", pa[1], pb[2]), Refusal::Forged),
        (format!("v1.{}.{}", pb[1], pa[2]), Refusal::Forged),
        (format!("v1.{}.{}", pa[2], pa[1]), Refusal::Malformed),
        (format!("v1.{}.{}", pa[2], pa[2]), Refusal::Malformed),
        (format!("v1.{}{}.{}", pa[1], pb[1], pa[2]), Refusal::Forged),
        (format!("v1.{}.{}.{}", pa[1], pa[1], pa[2]), Refusal::Malformed),
        (format!("v2.{}.{}", pa[1], pa[2]), Refusal::Malformed),
        (format!("{}.{}", pa[1], pa[2]), Refusal::Malformed),
        (format!("{a}="), Refusal::Malformed),
        (format!(" {a}"), Refusal::Malformed),
        (format!("{a}\n"), Refusal::Malformed),
        (format!("v1.{}=.{}", pa[1], pa[2]), Refusal::Malformed),
        (String::from("é.é.é"), Refusal::Malformed),
        (String::new(), Refusal::Malformed),
        (String::from(".."), Refusal::Malformed),
        (String::from("v1.."), Refusal::Malformed),
    ] {
        assert_eq!(refusal(&token, &keys, &binding(), NOW), why, "{token}");
    }
    assert!(UnverifiedState::new(a).open(&keys, &binding(), NOW).is_ok());
}

/// S-MRTR-08, S-MRTR-10.
#[test]
fn a_state_is_good_for_its_call_only() {
    let keys = ring(0);
    let token = sealed(&keys, b"journal");
    let own = binding();
    for (other, why) in [
        (Binding { audience: "https://example.com/mcp/", ..own }, Refusal::OtherCaller),
        (Binding { principal: Some("bob"), ..own }, Refusal::OtherCaller),
        (Binding { principal: Some(""), ..own }, Refusal::OtherCaller),
        (Binding { principal: None, ..own }, Refusal::OtherCaller),
        (Binding { method: "prompts/get", ..own }, Refusal::OtherRequest),
        (Binding { target: "deploy2", ..own }, Refusal::OtherRequest),
        (Binding { method: "tools/calld", target: "eploy", ..own }, Refusal::OtherRequest),
        (
            Binding { audience: "https://example.com/mcpa", principal: Some("lice"), ..own },
            Refusal::OtherCaller,
        ),
        (Binding { arguments: digest_arguments(None), ..own }, Refusal::OtherArguments),
    ] {
        assert_eq!(refusal(&token, &keys, &other, NOW), why, "{other:?}");
    }
    let respelt = digest_arguments(Some(r#"{ "n" : 3e1, "\u0065nv": "prod" }"#));
    assert!(UnverifiedState::new(token).open(&keys, &Binding { arguments: respelt, ..own }, NOW).is_ok());
    // No principal and an empty one are two.
    let nobody = Binding { principal: None, ..own };
    let token = keys.seal(&nobody, b"", EXPIRES, &mut PredictableRandom::for_tests(1)).unwrap();
    assert_eq!(
        refusal(token.as_str(), &keys, &Binding { principal: Some(""), ..own }, NOW),
        Refusal::OtherCaller
    );
}

/// S-MRTR-09.
#[test]
fn a_state_expires() {
    let keys = ring(0);
    let token = sealed(&keys, b"journal");
    assert!(UnverifiedState::new(&token).open(&keys, &binding(), NOW).is_ok());
    assert_eq!(refusal(&token, &keys, &binding(), EXPIRES), Refusal::Expired);
    assert_eq!(refusal(&token, &keys, &binding(), UnixTime::from_millis(u64::MAX)), Refusal::Expired);
    // Who has no right to the state does not learn from us that it is old.
    assert_eq!(refusal(&token, &ring(1), &binding(), EXPIRES), Refusal::UnknownKey);
}

#[test]
fn keys_rotate() {
    let (old, new) = (secret(1), secret(2));
    let mut keys = KeyRing::new(&old).unwrap().accepting(&new).unwrap();
    let (by_old, by_new) = (sealed(&keys, b"1"), sealed(&KeyRing::new(&new).unwrap(), b"2"));
    let opens = |keys: &KeyRing, token: &str| UnverifiedState::new(token).open(keys, &binding(), NOW).is_ok();
    assert!(opens(&keys, &by_old) && opens(&keys, &by_new));
    assert!(!opens(&ring(1), &by_new));
    assert_eq!(sealed(&keys, b"1"), sealed(&ring(1), b"1"));

    keys.rotate(&new).unwrap();
    assert_eq!(sealed(&keys, b"2"), by_new);
    assert!(opens(&keys, &by_old) && opens(&keys, &by_new));
    keys.rotate(&new).unwrap();
    keys.retire(1);
    assert!(opens(&keys, &by_old) && opens(&keys, &by_new));
    keys.retire(0);
    assert!(!opens(&keys, &by_old) && opens(&keys, &by_new));
    assert_eq!(refusal(&by_old, &keys, &binding(), NOW), Refusal::UnknownKey);
    keys.rotate_random(&mut PredictableRandom::for_tests(9));
    assert!(opens(&keys, &by_new) && opens(&keys, &sealed(&keys, b"3")));
}

#[test]
fn secrets_are_long_enough_and_stay_secret() {
    assert_eq!(KeyRing::new(&[7; 31]).unwrap_err(), WeakSecret);
    assert_eq!(ring(0).accepting(b"hunter2").unwrap_err(), WeakSecret);
    let long = KeyRing::new(&[7; 200]).unwrap();
    let token = sealed(&long, b"j");
    assert!(UnverifiedState::new(&token).open(&long, &binding(), NOW).is_ok());
    assert_eq!(refusal(&token, &KeyRing::new(&[7; 199]).unwrap(), &binding(), NOW), Refusal::UnknownKey);

    let mut random = PredictableRandom::for_tests(3);
    let (one, other) = (KeyRing::random(&mut random), KeyRing::random(&mut random));
    assert_eq!(refusal(&sealed(&one, b"j"), &other, &binding(), NOW), Refusal::UnknownKey);

    let state = UnverifiedState::new(GOLDEN);
    let opened = state.open(&ring(0), &binding(), NOW).unwrap();
    let shown = format!("{:?} {state:?} {opened:?}", ring(0));
    assert!(!shown.contains("2P1c") && !shown.contains("106, 111") && !shown.contains("journal"), "{shown}");
}

#[test]
fn a_token_says_no_names() {
    let token = sealed(&ring(0), b"");
    let body = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
    assert_eq!(body.len(), HEAD);
    for name in ["alice", "example", "tools", "deploy"] {
        assert!(!body.windows(name.len()).any(|w| w == name.as_bytes()));
    }
}

#[test]
fn tokens_are_bounded_both_ways() {
    let wide = ring(0);
    let limits = Limits { max_state: 300, ..Limits::default() };
    let narrow = ring(0).with_limits(&limits);
    let mut random = PredictableRandom::for_tests(1);
    let mut fitting = 0;
    for len in 0..400 {
        let payload = vec![7; len];
        let token = wide.seal(&binding(), &payload, EXPIRES, &mut random).unwrap().into_string();
        match narrow.seal(&binding(), &payload, EXPIRES, &mut random) {
            Ok(sealed) => {
                assert_eq!(sealed.as_str().len(), token.len());
                assert!(token.len() <= 300);
                fitting = token.len();
            }
            Err(e) => {
                assert_eq!(e, StateTooLarge { len: token.len(), max: 300 });
                assert!(token.len() > 300);
                assert_eq!(refusal(&token, &narrow, &binding(), NOW), Refusal::TooLong);
            }
        }
    }
    assert!(fitting >= 299);
    assert!(wide.seal(&binding(), &[0; 64 << 10], EXPIRES, &mut random).is_err());
}

/// S-MRTR-11.
#[test]
fn a_state_can_be_made_single_use() {
    let keys = ring(0);
    let mut store = MemoryStateStore::new(2);
    let open = |seed: u64, expires: u64, now: u64| {
        let mut random = PredictableRandom::for_tests(seed);
        let token = keys.seal(&binding(), b"", UnixTime::from_millis(expires), &mut random).unwrap();
        UnverifiedState::new(token.as_str()).open(&keys, &binding(), UnixTime::from_millis(now)).unwrap()
    };
    let mut claim = |state: OpenedState, now| state.claim(&mut store, UnixTime::from_millis(now));
    assert!(claim(open(1, 100, 0), 0).is_ok());
    assert_eq!(claim(open(1, 100, 0), 1).unwrap_err().reason(), Refusal::Used);
    assert!(claim(open(2, 200, 0), 1).is_ok());
    // Full: better refused than used twice.
    assert_eq!(claim(open(3, 300, 0), 99).unwrap_err().reason(), Refusal::Used);
    assert_eq!(claim(open(1, 100, 0), 99).unwrap_err().reason(), Refusal::Used);
    // The first has expired and makes room, but does not become usable again.
    assert_eq!(claim(open(1, 100, 0), 100).unwrap_err().reason(), Refusal::Used);
    assert!(claim(open(3, 300, 0), 100).is_ok());
    assert_eq!(store.len(), 2);
    assert!(!MemoryStateStore::new(0).claim(Nonce([0; 16]), EXPIRES, NOW));
}

/// What has expired is forgotten; a clock that is set back must not make it usable a second time.
#[test]
fn a_clock_that_is_set_back_makes_nothing_usable_again() {
    let mut store = MemoryStateStore::new(2);
    let at = UnixTime::from_millis;
    assert!(store.claim(Nonce([1; 16]), at(100), at(50)));
    assert!(store.claim(Nonce([2; 16]), at(300), at(200)));
    assert_eq!(store.len(), 1);
    assert!(!store.claim(Nonce([1; 16]), at(100), at(50)));
    assert!(!store.claim(Nonce([3; 16]), at(150), at(50)), "it has expired, too");
    assert!(store.claim(Nonce([3; 16]), at(201), at(50)));
}

#[test]
fn arguments_written_alike_or_not() {
    let digest = |text: &str| digest_arguments(Some(text));
    assert_eq!(digest_arguments(None), digest(" { } "));
    let classes: &[&[&str]] = &[
        &["{}", "{ }", "\n{\t}\r"],
        &["[]"],
        &["null"],
        &["true"],
        &["false"],
        &["\"\"", " \"\" "],
        &["[[]]", "[ [ ] ]"],
        &["[{}]"],
        &["[[],[]]"],
        &["0", "-0", "0.0", "-0.00e5", "0e-9"],
        &["30", "30.0", "3e1", "3E+1", "300e-1", "0.3e2", "30.000e0"],
        &["-30", "-3e1"],
        &["3", "3.0"],
        &["1.25", "125e-2", "0.0125e2"],
        &["9007199254740993", "9007199254740993.0"],
        &["9007199254740992"],
        &["1e400", "10e399"],
        &["1e401"],
        &["\"30\"", r#""\u0033\u0030""#],
        &["\"a\\/b\"", "\"a/b\""],
        &["\"é\"", r#""\u00e9""#, r#""\u00E9""#],
        &["\"e\u{301}\""],
        &["\"😀\"", r#""\ud83d\ude00""#],
        &[r#""\ud83d""#],
        &[r#""\ude00\ud83d""#],
        &[r#""\ud83d\ud83d\ude00""#, "\"\\ud83d😀\""],
        &[r#""\ud83d\u0061""#, r#""\ud83da""#],
        &["\"\u{fffd}\""],
        &[r#""\u0000""#],
        &[r#""\b\f\n\r\t\"\\""#, r#""\u0008\u000c\u000a\u000d\u0009\u0022\u005c""#],
        &[r#"{"a":1,"b":2}"#, r#"{"b":2.0,"a":1}"#, r#"{ "\u0062" : 2 , "\u0061" : 1 }"#],
        &[r#"{"a":2,"b":1}"#],
        &[r#"{"a":1}"#],
        &[r#"{"a":1,"a":1}"#],
        &[r#"{"a":1,"a":2}"#, r#"{"a":1,"\u0061":2}"#],
        &[r#"{"a":2,"a":1}"#],
        &[r#"{"a":2}"#],
        &[r#"{"a":[1,2]}"#],
        &[r#"{"a":["1",2]}"#],
        &[r#"{"a":[[1],2]}"#],
        &[r#"{"a":{"b":null}}"#],
        &[r#"{"a":{},"b":null}"#],
        &[r#"{"ab":"c"}"#],
        &[r#"{"a":"bc"}"#],
        &[r#"["a","b"]"#],
        &[r#"["ab"]"#],
        // Not JSON: as text.
        &[""],
        &["{"],
        &["{} {}"],
        &["01"],
        &["1."],
        &[".5"],
        &["+1"],
        &["-"],
        &["1e"],
        &["nul"],
        &["\"\\x\""],
        &["\"\u{1}\""],
        &["\"\\u12\""],
        &["[1,]"],
        &["{\"a\"}"],
        &["{,}"],
        &["1e99999999999999999999"],
        &["1e99999999999999999998"],
    ];
    for (i, class) in classes.iter().enumerate() {
        for text in *class {
            assert_eq!(digest(text), digest(class[0]), "{text} and {}", class[0]);
            for other in &classes[..i] {
                assert_ne!(digest(text), digest(other[0]), "{text} and {}", other[0]);
            }
        }
    }
}

/// Hostile sizes: neither the stack nor the clock suffers.
#[test]
fn arguments_of_any_depth_and_width() {
    let nested = |n: usize, inner: &str| format!("{}{inner}{}", "[".repeat(n), "]".repeat(n));
    let digest = |text: &str| digest_arguments(Some(text));
    assert_eq!(digest(&nested(128, "1")), digest(&nested(128, " 1.0")));
    // Beyond the bound spelling counts, and different things still differ.
    assert_ne!(digest(&nested(129, "1")), digest(&nested(129, "1.0")));
    assert_ne!(digest(&nested(200_000, "1")), digest(&nested(200_000, "2")));
    let wide = |last: &str| {
        let mut text = String::from("{");
        (0..50_000).rev().for_each(|n| text.push_str(&format!("\"{n}\":{{\"x\":[{n}]}},")));
        text + "\"last\":" + last + "}"
    };
    assert_ne!(digest(&wide("1")), digest(&wide("2")));
    assert_eq!(digest(&wide("1")), digest(&wide("1e0")));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-5i64..5).prop_map(Value::from),
        "[a-c\"\\\\/\u{1}é😀]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c\u{1}é]{0,2}", inner, 0..4)
                .prop_map(|members| members.into_iter().collect())
        ]
    })
}

/// Writes a value in one of many ways.
fn spell(value: &Value, random: &mut PredictableRandom, out: &mut String) {
    fn pick(random: &mut PredictableRandom, n: u8) -> u8 {
        random::bytes::<1>(random)[0] % n
    }
    fn text(s: &str, random: &mut PredictableRandom, out: &mut String) {
        out.push('"');
        for c in s.chars() {
            if pick(random, 2) == 0 || c < ' ' || matches!(c, '"' | '\\') {
                c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
            } else {
                out.push(c);
            }
        }
        out.push('"');
    }
    out.push_str(["", " ", "\n\t"][usize::from(pick(random, 3))]);
    match value {
        Value::Number(n) => {
            out.push_str(&n.to_string());
            out.push_str(["", ".0", "e0", ".00E+0", ".0e-0"][usize::from(pick(random, 5))]);
        }
        Value::String(s) => text(s, random, out),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                spell(item, random, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            if !members.is_empty() {
                let by = usize::from(pick(random, 8)) % members.len();
                members.rotate_left(by);
            }
            out.push('{');
            for (i, (name, value)) in members.into_iter().enumerate() {
                out.push_str(if i > 0 { " ," } else { "" });
                text(name, random, out);
                out.push_str(" :");
                spell(value, random, out);
            }
            out.push('}');
        }
        _ => out.push_str(&value.to_string()),
    }
    out.push_str(["", "\r\n"][usize::from(pick(random, 2))]);
}

proptest! {
    /// The digest is a function of the value, and of nothing else.
    #[test]
    fn digests_tell_values_apart_and_spellings_not(a in any_json(), b in any_json(), seed in any::<u64>()) {
        let mut random = PredictableRandom::for_tests(seed);
        let mut spelt = String::new();
        spell(&a, &mut random, &mut spelt);
        let digest = |text: &str| digest_arguments(Some(text));
        prop_assert_eq!(digest(&spelt), digest(&a.to_string()), "{}", spelt);
        prop_assert_eq!(a == b, digest(&a.to_string()) == digest(&b.to_string()));
    }

    #[test]
    fn what_is_sealed_opens_and_no_change_of_a_claim_does(
        texts in prop::array::uniform3("[a-z/:]{0,6}"),
        principal in prop::option::of("[a-z]{0,4}"),
        others in prop::array::uniform3("[a-z/:]{0,6}"),
        other_principal in prop::option::of("[a-z]{0,4}"),
        payload in prop::collection::vec(any::<u8>(), 0..80),
        expires in 1u64..,
        now in any::<u64>(),
        seed in any::<u64>(),
    ) {
        let mut random = PredictableRandom::for_tests(seed);
        let keys = KeyRing::random(&mut random);
        let bind = |texts: &'_ [String; 3], principal: &'_ Option<String>| -> Binding<'static> {
            let leak = |text: &str| -> &'static str { String::from(text).leak() };
            Binding {
                audience: leak(&texts[0]),
                principal: principal.as_deref().map(leak),
                method: leak(&texts[1]),
                target: leak(&texts[2]),
                arguments: digest_arguments(None),
            }
        };
        let (own, other) = (bind(&texts, &principal), bind(&others, &other_principal));
        let (expires, now) = (UnixTime::from_millis(expires), UnixTime::from_millis(now));
        let token = keys.seal(&own, &payload, expires, &mut random).unwrap();
        let state = UnverifiedState::new(token.as_str());
        let opened = state.open(&keys, &own, now);
        prop_assert_eq!(opened.is_ok(), now < expires);
        if let Ok(opened) = opened {
            prop_assert_eq!(opened.payload(), &payload[..]);
            prop_assert_eq!(opened.expires(), expires);
        }
        prop_assert_eq!(state.open(&keys, &other, now).is_ok(), own == other && now < expires);
        prop_assert!(state.open(&KeyRing::random(&mut random), &own, now).is_err());
    }

    /// Any other text is refused without a panic.
    #[test]
    fn no_text_passes_or_panics(text in "(v1)?[.A-Za-z0-9_=é-]{0,300}") {
        prop_assert!(UnverifiedState::new(text.as_str()).open(&ring(0), &binding(), NOW).is_err());
    }

    #[test]
    fn no_arguments_make_it_panic(text in "[\\[\\]{}\",:0-9eE.+\\-\\\\u dntrueflas]{0,40}") {
        let json = serde_json::from_str::<Value>(&text).is_ok();
        let digest = digest_arguments(Some(&text));
        // White space matters only where there is no JSON.
        if json {
            prop_assert_eq!(digest, digest_arguments(Some(&format!(" {text}\n"))));
        }
    }
}
