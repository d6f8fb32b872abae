//! Signed tokens, good and hostile. Keys are made in the test.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use mcp_proto::http::ProtectedResource;
use mcp_proto::service::jwt::{Algorithm, InvalidKeys, JwtVerifier};
use mcp_proto::service::{Audience, TokenError, TokenVerifier, Verified};
use mcp_proto::time::UnixTime;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
    RSA_PKCS1_SHA256, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RsaKeyPair, RsaPublicKeyComponents,
};
use serde_json::{Value, json};

use crate::auth::block_on;

const ISSUER: &str = "https://as.example/t1";
const US: &str = "https://h/mcp";
/// Seconds.
const NOW: u64 = 1_785_231_000;

fn b64(bytes: impl AsRef<[u8]>) -> String {
    BASE64.encode(bytes)
}

/// A key of the authorization server.
enum Signer {
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl Signer {
    fn p256() -> Self {
        let (random, alg) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let document = EcdsaKeyPair::generate_pkcs8(alg, &random).unwrap();
        Self::P256(EcdsaKeyPair::from_pkcs8(alg, document.as_ref(), &random).unwrap())
    }

    fn p384() -> Self {
        let (random, alg) = (SystemRandom::new(), &ECDSA_P384_SHA384_FIXED_SIGNING);
        let document = EcdsaKeyPair::generate_pkcs8(alg, &random).unwrap();
        Self::P384(EcdsaKeyPair::from_pkcs8(alg, document.as_ref(), &random).unwrap())
    }

    fn ed() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap())
    }

    fn jwk(&self, kid: &str) -> Value {
        let ec = |key: &EcdsaKeyPair, curve: &str| {
            let point = key.public_key().as_ref();
            let (x, y) = point[1..].split_at((point.len() - 1) / 2);
            json!({"kty": "EC", "crv": curve, "x": b64(x), "y": b64(y), "kid": kid, "use": "sig"})
        };
        match self {
            Self::P256(key) => ec(key, "P-256"),
            Self::P384(key) => ec(key, "P-384"),
            Self::Ed(key) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": b64(key.public_key()), "kid": kid})
            }
        }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::P256(key) | Self::P384(key) => key.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::Ed(key) => key.sign(message).as_ref().to_vec(),
        }
    }

    fn token(&self, header: &Value, claims: &Value) -> String {
        self.raw(&header.to_string(), &claims.to_string())
    }

    fn raw(&self, header: &str, claims: &str) -> String {
        let message = format!("{}.{}", b64(header), b64(claims));
        let signature = b64(self.sign(message.as_bytes()));
        format!("{message}.{signature}")
    }
}

fn set(keys: &[Value]) -> String {
    json!({"keys": keys}).to_string()
}

fn claims() -> Value {
    json!({
        "iss": ISSUER, "sub": "alice", "aud": US, "exp": NOW + 600, "iat": NOW, "scope": "files:read mail",
    })
}

fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

fn header() -> Value {
    json!({"alg": "ES256", "kid": "k1", "typ": "at+jwt"})
}

fn verifier(key: &Signer) -> JwtVerifier {
    JwtVerifier::builder(ISSUER).build(&set(&[key.jwk("k1")])).unwrap()
}

/// As the authorizer does it, at this second.
fn admit_at(verified: Verified, second: u64) -> Result<String, TokenError> {
    let resource = ProtectedResource::builder(US).authorization_server(ISSUER).build().unwrap();
    verified.admit(&resource, UnixTime::from_millis(second * 1000)).map(|p| p.id().to_owned())
}

#[track_caller]
fn assert_invalid(verifier: &JwtVerifier, token: &str, why: &str) {
    match verifier.verify_now(token) {
        Err(TokenError::Invalid(found)) => assert!(found.contains(why), "{found}, not {why}"),
        other => panic!("{other:?}, not {why}"),
    }
}

#[test]
fn a_token_of_each_kind_of_key_is_good_s_auth_04() {
    for (key, names) in [
        (Signer::p256(), &["ES256"][..]),
        (Signer::p384(), &["ES384"]),
        (Signer::ed(), &["EdDSA", "Ed25519"]),
    ] {
        for name in names {
            let token = key.token(&json!({"alg": name, "kid": "k1"}), &claims());
            let verified = block_on(verifier(&key).verify(&token)).unwrap();
            assert_eq!(verified.scopes.to_string(), "files:read mail");
            assert_eq!(verified.audience, Audience::Named(vec![US.into()]));
            assert_eq!(admit_at(verified, NOW).unwrap(), "https://as.example/t1 alice");
        }
    }
}

#[test]
#[allow(clippy::print_stdout)] // says that it was skipped
fn rsa_tokens_are_good() {
    let made = std::process::Command::new("openssl")
        .args([
            "genpkey",
            "-quiet",
            "-algorithm",
            "RSA",
            "-pkeyopt",
            "rsa_keygen_bits:2048",
            "-outform",
            "DER",
        ])
        .output();
    // Which of the two forms it is depends on its version.
    let read = |key: &[u8]| RsaKeyPair::from_der(key).or_else(|_| RsaKeyPair::from_pkcs8(key));
    let Some(made) = made.ok().filter(|made| made.status.success()) else {
        println!("skipped: there is no `openssl` that makes RSA keys");
        return;
    };
    let key = read(&made.stdout).unwrap();
    let parts = RsaPublicKeyComponents::<Vec<u8>>::from(key.public());
    // Some issuers write a zero before the modulus.
    let n = [&[0], &*parts.n].concat();
    let jwk = json!({"kty": "RSA", "n": b64(n), "e": b64(&parts.e), "kid": "k1"});
    let all = JwtVerifier::builder(ISSUER).build(&set(std::slice::from_ref(&jwk))).unwrap();
    let mut bound = jwk;
    bound["alg"] = json!("RS256");
    let bound = JwtVerifier::builder(ISSUER).build(&set(&[bound])).unwrap();
    let kinds: [(&str, &'static dyn ring::signature::RsaEncoding); 3] =
        [("RS256", &RSA_PKCS1_SHA256), ("RS512", &RSA_PKCS1_SHA512), ("PS256", &RSA_PSS_SHA256)];
    for (name, encoding) in kinds {
        let message =
            format!("{}.{}", b64(json!({"alg": name, "kid": "k1"}).to_string()), b64(claims().to_string()));
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(encoding, &SystemRandom::new(), message.as_bytes(), &mut signature).unwrap();
        let token = format!("{message}.{}", b64(&signature));
        assert!(all.verify_now(&token).is_ok(), "{name}");
        assert_eq!(
            bound.verify_now(&token).is_ok(),
            name == "RS256",
            "a key may be for one algorithm: {name}"
        );
        // A public key is no secret: who signs with its bytes has signed nothing.
        for confused in ["HS256", "none", "ES256", "EdDSA"] {
            let header = json!({"alg": confused, "kid": "k1"}).to_string();
            let token = format!("{}.{}.{}", b64(header), b64(claims().to_string()), b64(&signature));
            assert!(matches!(all.verify_now(&token), Err(TokenError::Invalid(_))), "{confused}");
        }
    }
}

#[test]
fn no_algorithm_but_the_keys_own_counts() {
    let key = Signer::p256();
    let verifier = verifier(&key);
    for name in
        ["none", "None", "nOnE", "", "HS256", "HS384", "HS512", "es256", "ES512", "ES256K", "RSA-OAEP"]
    {
        let token = key.token(&json!({"alg": name, "kid": "k1"}), &claims());
        assert_invalid(&verifier, &token, "algorithm is not allowed");
    }
    // Allowed, but not for this key: its signature is never even looked at as another kind.
    for name in ["RS256", "PS256", "ES384", "EdDSA"] {
        let token = key.token(&json!({"alg": name, "kid": "k1"}), &claims());
        assert_invalid(&verifier, &token, "signature does not fit");
    }
    assert_invalid(&verifier, &key.token(&json!({"kid": "k1"}), &claims()), "algorithm");
    assert_invalid(&verifier, &key.token(&json!({"alg": ["ES256"], "kid": "k1"}), &claims()), "no string");
    // `none` without a signature.
    let bare = format!("{}.{}.", b64(r#"{"alg":"none"}"#), b64(claims().to_string()));
    assert_invalid(&verifier, &bare, "algorithm");
    let unsigned = format!("{}.{}.", b64(header().to_string()), b64(claims().to_string()));
    assert_invalid(&verifier, &unsigned, "signature does not fit");
    // Signed with the text of the public key as a shared secret.
    let message = format!("{}.{}", b64(r#"{"alg":"HS256","kid":"k1"}"#), b64(claims().to_string()));
    let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key.jwk("k1").to_string().as_bytes());
    let mac = ring::hmac::sign(&secret, message.as_bytes());
    assert_invalid(&verifier, &format!("{message}.{}", b64(mac)), "algorithm");
    // An algorithm that the host does not allow.
    let narrow =
        JwtVerifier::builder(ISSUER).algorithms([Algorithm::EdDsa]).build(&set(&[key.jwk("k1")])).unwrap();
    assert_invalid(&narrow, &key.token(&header(), &claims()), "algorithm");
}

#[test]
fn a_key_within_the_token_is_not_looked_at() {
    let (ours, theirs) = (Signer::p256(), Signer::p256());
    let mut header = header();
    header["jwk"] = theirs.jwk("k1");
    header["jku"] = json!("https://evil.example/keys");
    assert_invalid(&verifier(&ours), &theirs.token(&header, &claims()), "signature does not fit");
}

#[test]
fn a_changed_token_is_no_longer_genuine() {
    let key = Signer::p256();
    let verifier = verifier(&key);
    let token = key.token(&header(), &claims());
    assert!(verifier.verify_now(&token).is_ok());
    let parts: Vec<&str> = token.split('.').collect();
    let other = b64(with("sub", json!("mallory")).to_string());
    assert_invalid(&verifier, &format!("{}.{other}.{}", parts[0], parts[2]), "signature does not fit");
    let flipped = {
        let mut s = BASE64.decode(parts[2]).unwrap();
        s[0] ^= 1;
        b64(s)
    };
    assert_invalid(&verifier, &format!("{}.{}.{flipped}", parts[0], parts[1]), "signature does not fit");
    // The all-zero signature that some verifiers took for any message.
    assert_invalid(&verifier, &format!("{}.{}.{}", parts[0], parts[1], b64([0; 64])), "does not fit");
    for shape in [
        "",
        ".",
        "..",
        "a.b",
        "a.b.c.d",
        "....",
        &format!("{token}.{}", parts[2]),
        &format!("{token}="),
        &parts[..2].join("."),
    ] {
        assert!(matches!(verifier.verify_now(shape), Err(TokenError::Invalid(_))), "{shape}");
    }
}

#[test]
fn a_token_has_its_time_s_auth_07() {
    let key = Signer::p256();
    let verifier =
        JwtVerifier::builder(ISSUER).leeway(Duration::from_secs(10)).build(&set(&[key.jwk("k1")])).unwrap();
    let said = |claims: &Value| verifier.verify_now(&key.token(&header(), claims));
    let token = said(&with("exp", json!(NOW))).unwrap();
    assert!(admit_at(token.clone(), NOW + 9).is_ok());
    assert_eq!(admit_at(token, NOW + 10), Err(TokenError::Expired));
    let token = said(&with("nbf", json!(NOW))).unwrap();
    assert!(admit_at(token.clone(), NOW - 10).is_ok());
    assert_eq!(admit_at(token, NOW - 11), Err(TokenError::NotYetValid));
    assert!(said(&with("exp", json!(NOW as f64 + 0.5))).is_ok(), "fractions are allowed");
    for bad in [json!("soon"), json!(-1), json!(1e300), json!(null), json!([NOW]), json!(true)] {
        assert!(matches!(said(&with("exp", bad.clone())), Err(TokenError::Invalid(_))), "exp {bad}");
        assert!(matches!(said(&with("nbf", bad.clone())), Err(TokenError::Invalid(_))), "nbf {bad}");
    }
    let mut endless = claims();
    endless.as_object_mut().unwrap().remove("exp");
    assert_invalid(&verifier, &key.token(&header(), &endless), "never expires");
}

#[test]
fn a_token_for_another_server_is_not_for_this_one_a06_s_auth_05() {
    let key = Signer::p256();
    let verifier = verifier(&key);
    let said = |claims: &Value| verifier.verify_now(&key.token(&header(), claims));
    for good in [json!(US), json!([US]), json!(["https://other", US])] {
        assert!(admit_at(said(&with("aud", good)).unwrap(), NOW).is_ok());
    }
    let none = {
        let mut c = claims();
        c.as_object_mut().unwrap().remove("aud");
        c
    };
    let others =
        [json!("https://other"), json!([]), json!("https://h/mcp/"), json!("https://H/mcp"), json!("")];
    for claims in others.into_iter().map(|aud| with("aud", aud)).chain([none]) {
        assert_eq!(admit_at(said(&claims).unwrap(), NOW), Err(TokenError::Audience), "{claims}");
    }
    for bad in [json!(1), json!({"a": US}), json!([US, 1]), json!(null)] {
        assert_invalid(&verifier, &key.token(&header(), &with("aud", bad)), "audience");
    }
}

#[test]
fn the_issuer_is_compared_byte_for_byte() {
    let key = Signer::p256();
    let verifier = verifier(&key);
    for other in [
        "https://as.example",
        "https://as.example/t1/",
        "https://AS.example/t1",
        "https://as.example/t10",
        "",
    ] {
        assert_invalid(&verifier, &key.token(&header(), &with("iss", json!(other))), "issuer");
    }
    let mut none = claims();
    none.as_object_mut().unwrap().remove("iss");
    assert_invalid(&verifier, &key.token(&header(), &none), "issuer");
    assert_invalid(&verifier, &key.token(&header(), &with("iss", json!([ISSUER]))), "not");
}

#[test]
fn who_and_what_s_auth_17() {
    let key = Signer::p256();
    let verifier = JwtVerifier::builder(ISSUER).roles_claim("roles").build(&set(&[key.jwk("k1")])).unwrap();
    let said = |claims: &Value| verifier.verify_now(&key.token(&header(), claims));
    for bad in [json!(""), json!(7), json!(null)] {
        assert!(matches!(said(&with("sub", bad)), Err(TokenError::Invalid(_))));
    }
    let mut claims = with("roles", json!(["dev"]));
    claims["scp"] = json!(["x", "mail"]);
    let verified = said(&claims).unwrap();
    assert_eq!(verified.scopes.to_string(), "files:read mail x");
    assert!(verified.principal.has_role("dev"));
    claims["scp"] = json!("y z");
    claims.as_object_mut().unwrap().remove("scope");
    assert_eq!(said(&claims).unwrap().scopes.to_string(), "y z");
    claims.as_object_mut().unwrap().remove("scp");
    assert!(said(&claims).unwrap().scopes.is_empty());
    for (name, bad) in [
        ("scope", json!(["a"])),
        ("scope", json!("a\"b")),
        ("scp", json!([1])),
        ("scp", json!(["a b"])),
        ("roles", json!("dev")),
    ] {
        assert!(matches!(said(&with(name, bad.clone())), Err(TokenError::Invalid(_))), "{name} {bad}");
    }
}

#[test]
fn what_stands_twice_is_refused() {
    let key = Signer::p256();
    let verifier = verifier(&key);
    let text = claims().to_string();
    for extra in [r#""sub":"mallory""#, r#""\u0073ub":"mallory""#, r#""aud":"x""#, r#""x":1,"x":2"#] {
        let twice = format!("{},{extra}}}", &text[..text.len() - 1]);
        assert_invalid(&verifier, &key.raw(&header().to_string(), &twice), "twice");
    }
    assert_invalid(&verifier, &key.raw(r#"{"alg":"ES256","kid":"k1","kid":"k1"}"#, &text), "twice");
    for shape in ["[]", "null", "", "{", "{}x"] {
        assert_invalid(&verifier, &key.raw(&header().to_string(), shape), "no JSON object");
        assert_invalid(&verifier, &key.raw(shape, &text), "no JSON object");
    }
}

#[test]
fn a_token_for_another_purpose_is_no_access_token() {
    let key = Signer::p256();
    let verifier = verifier(&key);
    let strict = JwtVerifier::builder(ISSUER).access_tokens_only().build(&set(&[key.jwk("k1")])).unwrap();
    let token = |typ: Value| key.token(&json!({"alg": "ES256", "kid": "k1", "typ": typ}), &claims());
    for typ in ["at+jwt", "AT+JWT", "application/at+jwt"] {
        assert!(verifier.verify_now(&token(json!(typ))).is_ok());
        assert!(strict.verify_now(&token(json!(typ))).is_ok());
    }
    assert!(verifier.verify_now(&token(json!("JWT"))).is_ok());
    assert_invalid(&strict, &token(json!("JWT")), "type");
    assert_invalid(&strict, &key.token(&json!({"alg": "ES256", "kid": "k1"}), &claims()), "type");
    for typ in ["dpop+jwt", "oauth-id-jag+jwt", "logout+jwt", "", "é"] {
        assert_invalid(&verifier, &token(json!(typ)), "type");
    }
    let critical = json!({"alg": "ES256", "kid": "k1", "crit": ["b64"], "b64": false});
    assert_invalid(&verifier, &key.token(&critical, &claims()), "critical");
}

#[test]
fn a_name_of_no_key_is_told_and_new_keys_help() {
    let (old, new) = (Signer::p256(), Signer::ed());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&heard);
    let verifier = JwtVerifier::builder(ISSUER)
        .on_unknown_key(move |kid| tell.lock().unwrap().push(kid.to_owned()))
        .build(&set(&[old.jwk("k1")]))
        .unwrap();
    let token = new.token(&json!({"alg": "EdDSA", "kid": "k2"}), &claims());
    assert_eq!(verifier.verify_now(&token).unwrap_err(), TokenError::UnknownKey("k2".into()));
    assert_eq!(*heard.lock().unwrap(), ["k2"]);
    assert_eq!(verifier.replace_keys("[]"), Err(InvalidKeys::Shape));
    let before = old.token(&header(), &claims());
    assert!(verifier.verify_now(&before).is_ok(), "a broken set changes nothing");
    let clone = verifier.clone();
    assert_eq!(verifier.replace_keys(&set(&[new.jwk("k2")])), Ok(1));
    assert!(clone.verify_now(&token).is_ok(), "clones share the keys");
    assert_eq!(verifier.verify_now(&before).unwrap_err(), TokenError::UnknownKey("k1".into()));
    // Not a flood of text to fetch for.
    let long = new.token(&json!({"alg": "EdDSA", "kid": "k".repeat(257)}), &claims());
    assert_invalid(&verifier, &long, "too long");
    assert_eq!(heard.lock().unwrap().len(), 2);
}

#[test]
fn a_token_without_the_name_of_a_key_is_good_if_only_one_could_be_meant() {
    let (a, b, ed) = (Signer::p256(), Signer::p256(), Signer::ed());
    let token = a.token(&json!({"alg": "ES256"}), &claims());
    let verifier = JwtVerifier::builder(ISSUER).build(&set(&[ed.jwk("e"), a.jwk("a")])).unwrap();
    assert!(verifier.verify_now(&token).is_ok());
    verifier.replace_keys(&set(&[a.jwk("a"), b.jwk("b")])).unwrap();
    assert_invalid(&verifier, &token, "names no key");
    verifier.replace_keys(&set(&[ed.jwk("e")])).unwrap();
    assert_eq!(verifier.verify_now(&token).unwrap_err(), TokenError::UnknownKey(String::new()));
    // A key without a name is not the one that a token names.
    let mut nameless = a.jwk("");
    nameless.as_object_mut().unwrap().remove("kid");
    verifier.replace_keys(&set(&[nameless])).unwrap();
    assert!(verifier.verify_now(&token).is_ok());
    let named = a.token(&header(), &claims());
    assert_eq!(verifier.verify_now(&named).unwrap_err(), TokenError::UnknownKey("k1".into()));
}

#[test]
fn huge_tokens_are_not_read() {
    let key = Signer::p256();
    let verifier = verifier(&key);
    let huge = key.token(&header(), &with("x", json!("a".repeat(16 << 10))));
    assert_invalid(&verifier, &huge, "too long");
    let many: String = (0..1100).map(|n| format!(",\"{n}\":1")).collect();
    let text = claims().to_string();
    let many = format!("{}{many}}}", &text[..text.len() - 1]);
    assert_invalid(&verifier, &key.raw(&header().to_string(), &many), "no JSON object");
    let deep = format!("{},\"x\":{}}}", &text[..text.len() - 1], "[".repeat(4000));
    assert_invalid(&verifier, &key.raw(&header().to_string(), &deep), "no JSON object");
}
