//! Public keys as JSON. [RFC 7517]

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature as ring;
use serde_json::value::RawValue;

use super::Algorithm;
use crate::rpc::Members;

/// The longest text of a key set, in bytes.
const MAX_TEXT: usize = 256 << 10;
/// Most keys of a set.
const MAX_KEYS: usize = 256;

/// Text that is no key set, or none that should be in a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidKeys {
    /// It is longer than 256 KiB, or has more than 256 keys.
    TooLarge,
    /// It is no JSON object whose member `keys` is an array of objects, or a member stands twice.
    Shape,
    /// It has the private part of a key. Only the authorization server may have that.
    PrivateKey,
}

impl fmt::Display for InvalidKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "the key set is longer than 256 KiB, or has more than 256 keys",
            Self::Shape => "a key set is a JSON object with an array `keys` of objects, each member once",
            Self::PrivateKey => {
                "the key set has private keys, which belong to the authorization server alone"
            }
        })
    }
}

impl core::error::Error for InvalidKeys {}

/// The keys of a set that can verify signatures.
pub(super) struct Keys(Vec<Key>);

struct Key {
    kid: Option<String>,
    /// The one algorithm that the key is for; without it any that fits its kind.
    algorithm: Option<Algorithm>,
    material: Material,
}

enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// What the keys say of a signature.
pub(super) enum Outcome {
    Genuine,
    Forged,
    /// The token names no key, and more than one could be meant.
    Ambiguous,
    NoKey,
}

impl Keys {
    pub(super) fn parse(jwks: &str) -> Result<Self, InvalidKeys> {
        if jwks.len() > MAX_TEXT {
            return Err(InvalidKeys::TooLarge);
        }
        let set = Members::from_json(jwks).ok_or(InvalidKeys::Shape)?;
        let keys = set.get("keys").ok_or(InvalidKeys::Shape)?;
        let keys: Vec<&RawValue> = serde_json::from_str(keys.get()).map_err(|_| InvalidKeys::Shape)?;
        if keys.len() > MAX_KEYS {
            return Err(InvalidKeys::TooLarge);
        }
        let mut usable = Vec::new();
        for key in keys {
            let members = Members::from_json(key.get()).ok_or(InvalidKeys::Shape)?;
            // `k` is a shared secret, which is never used; it may stand there for others.
            if members.get("d").is_some() {
                return Err(InvalidKeys::PrivateKey);
            }
            usable.extend(Key::read(&members));
        }
        Ok(Self(usable))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// A key counts by its own kind, never by what the token says of it.
    pub(super) fn verify(
        &self,
        algorithm: Algorithm,
        kid: Option<&str>,
        message: &[u8],
        signature: &[u8],
    ) -> Outcome {
        let named = |key: &&Key| kid.is_none() || key.kid.as_deref() == kid;
        let mut candidates = self.0.iter().filter(named).filter(|key| key.fits(algorithm));
        let outcome = |genuine| if genuine { Outcome::Genuine } else { Outcome::Forged };
        if kid.is_none() {
            return match (candidates.next(), candidates.next()) {
                (None, _) => Outcome::NoKey,
                (Some(key), None) => outcome(key.verify(algorithm, message, signature)),
                _ => Outcome::Ambiguous,
            };
        }
        if !self.0.iter().any(|key| named(&key)) {
            return Outcome::NoKey;
        }
        outcome(candidates.any(|key| key.verify(algorithm, message, signature)))
    }
}

impl Key {
    /// `None` if the key is of another kind or for another use.
    fn read(members: &Members<'_>) -> Option<Self> {
        if members.text("use").ok()?.is_some_and(|usage| usage != "sig") {
            return None;
        }
        if let Some(operations) = members.get("key_ops") {
            let operations: Vec<Cow<'_, str>> = serde_json::from_str(operations.get()).ok()?;
            if !operations.iter().any(|operation| operation == "verify") {
                return None;
            }
        }
        let algorithm = match members.text("alg").ok()? {
            Some(name) => Some(Algorithm::parse(&name)?),
            None => None,
        };
        let bytes = |name| URL_SAFE_NO_PAD.decode(members.text(name).ok()??.as_bytes()).ok();
        let point = |size: usize| {
            let (x, y) = (bytes("x")?, bytes("y")?);
            (x.len() == size && y.len() == size).then(|| [&[4], &*x, &*y].concat())
        };
        let curve = members.text("crv").ok()?;
        let material = match (&*members.text("kty").ok()??, curve.as_deref()) {
            ("RSA", _) => {
                let (n, e) = (trimmed(bytes("n")?), trimmed(bytes("e")?));
                let bits = n.len() * 8 - n.first()?.leading_zeros() as usize;
                if !(2048..=8192).contains(&bits) || e.is_empty() {
                    return None;
                }
                Material::Rsa { n, e }
            }
            ("EC", Some("P-256")) => Material::P256(point(32)?),
            ("EC", Some("P-384")) => Material::P384(point(48)?),
            ("OKP", Some("Ed25519")) => Material::Ed25519(bytes("x").filter(|x| x.len() == 32)?),
            _ => return None,
        };
        Some(Self { kid: members.text("kid").ok()?.map(Cow::into_owned), algorithm, material })
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        self.algorithm.is_none_or(|only| only == algorithm)
            && match self.material {
                Material::Rsa { .. } => algorithm.rsa().is_some(),
                Material::P256(_) => algorithm == Algorithm::Es256,
                Material::P384(_) => algorithm == Algorithm::Es384,
                Material::Ed25519(_) => algorithm == Algorithm::EdDsa,
            }
    }

    fn verify(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let by = |algorithm: &'static dyn ring::VerificationAlgorithm, key: &[u8]| {
            ring::UnparsedPublicKey::new(algorithm, key).verify(message, signature)
        };
        match &self.material {
            Material::Rsa { n, e } => algorithm.rsa().is_some_and(|parameters| {
                ring::RsaPublicKeyComponents { n, e }.verify(parameters, message, signature).is_ok()
            }),
            Material::P256(point) => by(&ring::ECDSA_P256_SHA256_FIXED, point).is_ok(),
            Material::P384(point) => by(&ring::ECDSA_P384_SHA384_FIXED, point).is_ok(),
            Material::Ed25519(key) => by(&ring::ED25519, key).is_ok(),
        }
    }
}

/// A number without the zeros that some put before it.
fn trimmed(mut number: Vec<u8>) -> Vec<u8> {
    let zeros = number.iter().take_while(|b| **b == 0).count();
    number.drain(..zeros);
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7515, appendix A.2, with its key.
    const KEY: &str = r#"{"keys":[{"kty":"RSA","e":"AQAB","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"}]}"#;
    const MESSAGE: &[u8] = b"eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    const SIGNATURE: &str = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";

    #[test]
    fn the_rsa_example_of_the_rfc_verifies_and_nothing_else_does() {
        let keys = Keys::parse(KEY).unwrap();
        let signature = URL_SAFE_NO_PAD.decode(SIGNATURE).unwrap();
        assert!(matches!(keys.verify(Algorithm::Rs256, None, MESSAGE, &signature), Outcome::Genuine));
        assert!(matches!(keys.verify(Algorithm::Rs256, None, &MESSAGE[1..], &signature), Outcome::Forged));
        for algorithm in [Algorithm::Rs384, Algorithm::Ps256] {
            assert!(matches!(keys.verify(algorithm, None, MESSAGE, &signature), Outcome::Forged));
        }
        for algorithm in [Algorithm::Es256, Algorithm::EdDsa] {
            assert!(matches!(keys.verify(algorithm, None, MESSAGE, &signature), Outcome::NoKey));
        }
    }

    #[test]
    fn keys_for_other_things_are_passed_over() {
        let x = "A".repeat(43);
        for other in [
            r#"{"kty":"oct","k":"c2VjcmV0","alg":"HS256"}"#.into(),
            format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{x}","use":"enc"}}"#),
            format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{x}","key_ops":["sign"]}}"#),
            format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{x}","alg":"HS256"}}"#),
            format!(r#"{{"kty":"OKP","crv":"X25519","x":"{x}"}}"#),
            format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{x}AA"}}"#),
            format!(r#"{{"kty":"EC","crv":"P-521","x":"{x}","y":"{x}"}}"#),
            format!(r#"{{"kty":"EC","crv":"P-384","x":"{x}","y":"{x}"}}"#),
            r#"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#.into(),
            r#"{"kty":"new"}"#.into(),
            "{}".into(),
        ] {
            let other: String = other;
            assert_eq!(Keys::parse(&format!(r#"{{"keys":[{other}]}}"#)).unwrap().len(), 0, "{other}");
        }
        let good = format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{x}","use":"sig","key_ops":["verify"]}}"#);
        assert_eq!(Keys::parse(&format!(r#"{{"keys":[{good},{{"kty":"new"}}],"x":1}}"#)).unwrap().len(), 1);
    }

    #[test]
    fn what_is_no_key_set_is_refused() {
        for bad in ["", "[]", "{}", r#"{"keys":{}}"#, r#"{"keys":[1]}"#, r#"{"keys":[],"keys":[]}"#] {
            assert_eq!(Keys::parse(bad).err(), Some(InvalidKeys::Shape), "{bad}");
        }
        let twice = r#"{"keys":[{"kty":"RSA","kty":"EC"}]}"#;
        assert_eq!(Keys::parse(twice).err(), Some(InvalidKeys::Shape));
        let private = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","d":"AA"}]}"#;
        assert_eq!(Keys::parse(private).err(), Some(InvalidKeys::PrivateKey));
        let many = format!(r#"{{"keys":[{}{{}}]}}"#, "{},".repeat(MAX_KEYS));
        assert_eq!(Keys::parse(&many).err(), Some(InvalidKeys::TooLarge));
        let long = format!(r#"{{"keys":[]{}}}"#, " ".repeat(MAX_TEXT));
        assert_eq!(Keys::parse(&long).err(), Some(InvalidKeys::TooLarge));
    }
}
