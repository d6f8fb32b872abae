//! Signed state: whatever is done to a seal, nothing opens but the seals that were made, for the calls they
//! were made for, in time.
//!
//! The first line is what is sealed. Each of the others changes the text at hand: its first letter says how,
//! the bytes after it where.
#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use mcp_proto::random::PredictableRandom;
use mcp_proto::state::{
    Binding, KeyRing, MemoryStateStore, Nonce, Refusal, StateError, UnverifiedState, digest_arguments,
};
use mcp_proto::time::UnixTime;
use mcp_proto_fuzz::Input;

const KNOWN: &[u8] = b"a secret that verifies and signs";
const OLDER: &[u8] = b"another secret which verifies it";
const FOREIGN: &[u8] = b"the secret of some other server!";

struct Made {
    token: String,
    binding: Binding<'static>,
    payload: Vec<u8>,
    expires: u64,
    is_known: bool,
}

fn bindings() -> [Binding<'static>; 8] {
    let base = Binding {
        audience: "https://a/mcp",
        principal: Some("alice"),
        method: "tools/call",
        target: "t",
        arguments: digest_arguments(Some(r#"{"a":1}"#)),
    };
    [
        base,
        Binding { audience: "https://a/mcpa", ..base },
        Binding { principal: Some("lice"), audience: "https://a/mcpa", ..base },
        Binding { principal: None, ..base },
        Binding { principal: Some(""), ..base },
        Binding { method: "tools/cal", target: "lt", ..base },
        Binding { target: "", ..base },
        Binding { arguments: digest_arguments(Some(r#"{"a":"1"}"#)), ..base },
    ]
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    let payload = input.line();
    let mut random = PredictableRandom::for_tests(7);
    let ring = KeyRing::new(KNOWN).and_then(|ring| ring.accepting(OLDER)).expect("long enough");
    let all = bindings();
    let mut made = Vec::new();
    for (secret, binding, expires) in
        [(KNOWN, 0, 1_000), (KNOWN, 4, 2_000), (OLDER, 0, 1_500), (FOREIGN, 0, 1_000), (KNOWN, 2, 0)]
    {
        let keys = KeyRing::new(secret).expect("long enough");
        let binding = all[binding];
        let sealed = keys.seal(&binding, payload, UnixTime::from_millis(expires), &mut random);
        let Ok(token) = sealed.map(|sealed| sealed.into_string()) else { return };
        let is_known = secret != FOREIGN;
        made.push(Made { token, binding, payload: payload.to_vec(), expires, is_known });
    }
    let mut store = MemoryStateStore::new(2);
    let mut used = Used::default();
    let mut token = made[0].token.clone().into_bytes();
    open(&token, &ring, &made, 500, &mut store, &mut used);
    while !input.is_empty() {
        let mut step = Input::new(input.line());
        let letter = step.byte();
        let at = (usize::from(step.byte()) + usize::from(step.byte()) * 256) % (token.len() + 1);
        let other = &made[usize::from(step.byte()) % made.len()].token;
        match letter {
            b'k' => token = other.clone().into_bytes(),
            b's' if at < token.len() => token[at] = step.byte(),
            b'x' if at < token.len() => token[at] ^= 1 << (step.byte() % 8),
            b'i' => token.insert(at, step.byte()),
            b'd' if at < token.len() => drop(token.remove(at)),
            b't' => token.truncate(at),
            // The end of another one.
            b'c' => {
                token.truncate(at);
                token.extend_from_slice(&other.as_bytes()[at.min(other.len())..]);
            }
            // The tag of another one.
            b'w' => {
                let end = token.iter().rposition(|byte| *byte == b'.').unwrap_or(token.len());
                token.truncate(end);
                token.extend_from_slice(&other.as_bytes()[other.rfind('.').expect("a dot")..]);
            }
            b'r' => token = step.rest().to_vec(),
            _ => {}
        }
        for now in [0, 999, 1_000, 1_999, 2_000] {
            open(&token, &ring, &made, now, &mut store, &mut used);
        }
    }
});

/// What was used, and the latest time at which something was.
#[derive(Default)]
struct Used {
    nonces: BTreeSet<Nonce>,
    latest: u64,
}

fn open(
    token: &[u8],
    ring: &KeyRing,
    made: &[Made],
    now: u64,
    store: &mut MemoryStateStore,
    used: &mut Used,
) {
    let Ok(text) = str::from_utf8(token) else { return };
    let original = made.iter().find(|made| made.token == text);
    for binding in bindings() {
        let opened = UnverifiedState::new(text).open(ring, &binding, UnixTime::from_millis(now));
        let expected = match original {
            None => None,
            Some(made) if !made.is_known => Some(Refusal::UnknownKey),
            Some(made) if now >= made.expires => Some(Refusal::Expired),
            Some(made) => differs(&made.binding, &binding),
        };
        match opened {
            Ok(state) => {
                let made = original.expect("it opens, and nobody made it");
                assert_eq!(expected, None);
                assert_eq!((state.payload(), state.expires().as_millis()), (&*made.payload, made.expires));
                let nonce = state.nonce();
                let is_full = store.len() == 2;
                match state.claim(store, UnixTime::from_millis(now)) {
                    Ok(_) => assert!(used.nonces.insert(nonce), "used twice"),
                    Err(error) => {
                        assert_eq!(error.reason(), Refusal::Used);
                        let had_expired = made.expires <= used.latest;
                        assert!(used.nonces.contains(&nonce) || is_full || had_expired);
                    }
                }
                used.latest = used.latest.max(now);
            }
            Err(error) => {
                assert_eq!(error.to_string(), StateError::MESSAGE);
                match original {
                    Some(_) => assert_eq!(Some(error.reason()), expected),
                    None => assert!(
                        matches!(
                            error.reason(),
                            Refusal::Malformed | Refusal::Forged | Refusal::UnknownKey | Refusal::TooLong
                        ),
                        "{error:?}"
                    ),
                }
            }
        }
    }
}

/// The first part in which two calls differ.
fn differs(made: &Binding<'_>, now: &Binding<'_>) -> Option<Refusal> {
    if (made.audience, made.principal) != (now.audience, now.principal) {
        Some(Refusal::OtherCaller)
    } else if (made.method, made.target) != (now.method, now.target) {
        Some(Refusal::OtherRequest)
    } else {
        (made.arguments != now.arguments).then_some(Refusal::OtherArguments)
    }
}
