//! The algorithms of signatures.

use ring::signature as ring;

/// An algorithm by which tokens are signed with a private key. There is none without a key (`none`) and
/// none with a shared secret (`HS256` and the like). [RFC 7518, section 3.1; RFC 8037]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// RSA as in PKCS #1 v1.5 with SHA-256; keys of 2,048 to 8,192 bits, here and below.
    Rs256,
    /// RSA as in PKCS #1 v1.5 with SHA-384.
    Rs384,
    /// RSA as in PKCS #1 v1.5 with SHA-512.
    Rs512,
    /// RSA-PSS with SHA-256.
    Ps256,
    /// RSA-PSS with SHA-384.
    Ps384,
    /// RSA-PSS with SHA-512.
    Ps512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// Ed25519, by the names `EdDSA` and `Ed25519`.
    EdDsa,
}

impl Algorithm {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// By the name that headers have.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "RS256" => Self::Rs256,
            "RS384" => Self::Rs384,
            "RS512" => Self::Rs512,
            "PS256" => Self::Ps256,
            "PS384" => Self::Ps384,
            "PS512" => Self::Ps512,
            "ES256" => Self::Es256,
            "ES384" => Self::Es384,
            "EdDSA" | "Ed25519" => Self::EdDsa,
            _ => return None,
        })
    }

    /// Its form for RSA keys, if it is one of RSA.
    pub(super) fn rsa(self) -> Option<&'static ring::RsaParameters> {
        Some(match self {
            Self::Rs256 => &ring::RSA_PKCS1_2048_8192_SHA256,
            Self::Rs384 => &ring::RSA_PKCS1_2048_8192_SHA384,
            Self::Rs512 => &ring::RSA_PKCS1_2048_8192_SHA512,
            Self::Ps256 => &ring::RSA_PSS_2048_8192_SHA256,
            Self::Ps384 => &ring::RSA_PSS_2048_8192_SHA384,
            Self::Ps512 => &ring::RSA_PSS_2048_8192_SHA512,
            Self::Es256 | Self::Es384 | Self::EdDsa => return None,
        })
    }
}
