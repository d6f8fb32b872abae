//! The access tokens that the suite was told.

use std::collections::BTreeMap;

/// What an access token is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum TokenKind {
    /// A good one, which every request bears that says nothing else.
    First,
    /// A good one of another user.
    Second,
    /// One of the first user that does not have the scopes of the tool `guarded`.
    Narrow,
    /// One whose time is over.
    Expired,
    /// One that was made for another server.
    Elsewhere,
}

impl TokenKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::First, Self::Second, Self::Narrow, Self::Expired, Self::Elsewhere];

    /// The name used on the command line, in exchanges and in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "second",
            Self::Narrow => "narrow",
            Self::Expired => "expired",
            Self::Elsewhere => "elsewhere",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// Access tokens by what they are good for; none for a server that asks for none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tokens(BTreeMap<TokenKind, String>);

impl Tokens {
    /// Those of the fixture.
    #[must_use]
    pub fn of_fixture() -> Self {
        Self(TokenKind::ALL.into_iter().map(|kind| (kind, format!("suite-{}", kind.as_str()))).collect())
    }

    /// Reads `TOKEN` or `KIND=TOKEN` each.
    ///
    /// # Errors
    ///
    /// A kind is there twice, the first is missing, or one cannot stand in a header.
    pub fn parse(all: &[String]) -> Result<Self, String> {
        let mut tokens = BTreeMap::new();
        for text in all {
            // A token may have `=` in it, too: at its end.
            let named =
                text.split_once('=').and_then(|(kind, token)| Some((TokenKind::from_name(kind)?, token)));
            let (kind, token) = named.unwrap_or((TokenKind::First, text));
            if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(format!(
                    "expected visible characters, got `{token}` as the token `{}`",
                    kind.as_str()
                ));
            }
            if tokens.insert(kind, token.to_owned()).is_some() {
                return Err(format!("expected one token `{}`, got two", kind.as_str()));
            }
        }
        if !tokens.is_empty() && !tokens.contains_key(&TokenKind::First) {
            return Err("expected a token `first` beside the others, got none".to_owned());
        }
        Ok(Self(tokens))
    }

    /// The token of a kind.
    pub(crate) fn of(&self, kind: TokenKind) -> Option<&str> {
        self.0.get(&kind).map(String::as_str)
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (TokenKind, &str)> {
        self.0.iter().map(|(kind, token)| (*kind, token.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_a_kind_or_is_the_first() {
        let parse =
            |all: &[&str]| Tokens::parse(&all.iter().map(|&text| text.to_owned()).collect::<Vec<_>>());
        let tokens = parse(&["second=b==", "a=="]).unwrap();
        assert_eq!((tokens.of(TokenKind::First), tokens.of(TokenKind::Second)), (Some("a=="), Some("b==")));
        assert_eq!(tokens.of(TokenKind::Expired), None);
        assert_eq!(parse(&["first=a"]), parse(&["a"]));
        assert!(parse(&[]).unwrap().is_empty());
        for (wrong, said) in [
            (&["a", "first=b"][..], "one token `first`"),
            (&["second=b"], "a token `first`"),
            (&["a b"], "visible characters"),
            (&["first="], "visible characters"),
        ] {
            assert!(parse(wrong).unwrap_err().contains(said), "{wrong:?}");
        }
    }
}
