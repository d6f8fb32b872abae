//! URI templates (RFC 6570) for resource templates: parse, expand, match. `[spec: server/resources]`
//!
//! ```
//! use mcp_proto::registry::uri_template::UriTemplate;
//!
//! let template = UriTemplate::parse("forecast://{city}/days{?from,to}")?;
//! let uri = template.expand(|name| match name {
//!     "city" => Some("Zürich/Oerlikon".into()),
//!     "to" => Some("friday".into()),
//!     _ => None,
//! });
//! assert_eq!(uri, "forecast://Z%C3%BCrich%2FOerlikon/days?to=friday");
//!
//! let found = template.matches(&uri).expect("it was made from the template");
//! assert_eq!(found.text("city"), Some("Zürich/Oerlikon"));
//! assert_eq!(found.text("from"), None);
//! # Ok::<(), mcp_proto::registry::uri_template::TemplateError>(())
//! ```

mod expand;
mod key;
mod matching;
mod named;
mod parse;
#[cfg(test)]
mod tests;

use alloc::borrow::{Cow, ToOwned};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

pub use matching::{Captured, Captures};

use key::Key;

/// Longest template in bytes.
pub const MAX_TEMPLATE: usize = 8 << 10;
/// Most variables in one template, each occurrence counted.
pub const MAX_VARIABLES: usize = 64;
/// Longest URI in bytes that is matched; a longer one is no match.
pub const MAX_URI: usize = 64 << 10;

/// A URI template, all four levels of RFC 6570.
#[derive(Debug, Clone)]
pub struct UriTemplate {
    source: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
enum Part {
    Literal(Literal),
    Expression(Expression),
}

#[derive(Debug, Clone)]
struct Literal {
    text: String,
    keys: Vec<Key>,
    /// For each position, how much of the literal's start ends there (Knuth, Morris and Pratt): finding
    /// it again after a near miss must not cost its length.
    borders: Vec<usize>,
}

#[derive(Debug, Clone)]
struct Expression {
    operator: Operator,
    variables: Vec<Variable>,
}

#[derive(Debug, Clone)]
struct Variable {
    name: String,
    keys: Vec<Key>,
    modifier: Modifier,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Modifier {
    None,
    /// `:n`, at most so many characters.
    Prefix(u16),
    /// `*`, each item on its own.
    Explode,
}

impl Modifier {
    /// How many characters a value may have.
    fn limit(self) -> usize {
        if let Self::Prefix(length) = self { usize::from(length) } else { usize::MAX }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    /// `{a}`
    Simple,
    /// `{+a}`
    Reserved,
    /// `{#a}`
    Fragment,
    /// `{.a}`
    Label,
    /// `{/a}`
    Path,
    /// `{;a}`
    Parameter,
    /// `{?a}`
    Query,
    /// `{&a}`
    Continuation,
}

impl Operator {
    /// What stands before the first defined variable.
    const fn first(self) -> Option<char> {
        match self {
            Self::Simple | Self::Reserved => None,
            Self::Fragment => Some('#'),
            Self::Label => Some('.'),
            Self::Path => Some('/'),
            Self::Parameter => Some(';'),
            Self::Query => Some('?'),
            Self::Continuation => Some('&'),
        }
    }

    /// What stands between variables, and between the items of an exploded one.
    const fn separator(self) -> char {
        match self {
            Self::Simple | Self::Reserved | Self::Fragment => ',',
            Self::Label => '.',
            Self::Path => '/',
            Self::Parameter => ';',
            Self::Query | Self::Continuation => '&',
        }
    }

    /// Whether variables are written as `name=value`.
    const fn is_named(self) -> bool {
        matches!(self, Self::Parameter | Self::Query | Self::Continuation)
    }

    /// Whether reserved characters stand for themselves in values.
    const fn allows_reserved(self) -> bool {
        matches!(self, Self::Reserved | Self::Fragment)
    }
}

/// What a variable is expanded to.
///
/// An empty list and an empty set of pairs are as good as undefined.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value<'v> {
    /// Text as it is. It comes back from a match unchanged, whatever it contains.
    ///
    /// Here this departs from RFC 6570: `%` followed by two hexadecimal digits stays text under `{+a}`
    /// and `{#a}` as well, instead of being taken for something already encoded. Otherwise the file
    /// `100%25` would be read as `100%`. [`Encoded`](Self::Encoded) does what the RFC says.
    Text(Cow<'v, str>),
    /// Text in which, under `{+a}` and `{#a}`, percent-encoded characters are left as they are.
    Encoded(Cow<'v, str>),
    /// Several texts. A prefix modifier (`{a:3}`) does not apply.
    List(Vec<Cow<'v, str>>),
    /// Names with their texts. A prefix modifier does not apply.
    Pairs(Vec<(Cow<'v, str>, Cow<'v, str>)>),
}

impl<'v> From<&'v str> for Value<'v> {
    fn from(text: &'v str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl<'v> From<&'v String> for Value<'v> {
    fn from(text: &'v String) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl<'v> From<Vec<&'v str>> for Value<'v> {
    fn from(items: Vec<&'v str>) -> Self {
        Self::List(items.into_iter().map(Cow::Borrowed).collect())
    }
}

impl From<Vec<String>> for Value<'_> {
    fn from(items: Vec<String>) -> Self {
        Self::List(items.into_iter().map(Cow::Owned).collect())
    }
}

/// How much of a URI a template pins down. The greater of two is to be preferred when both match.
///
/// More literal characters first; then fewer variables that may cross a `/`; then fewer variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Specificity {
    literal: usize,
    crossing: core::cmp::Reverse<usize>,
    variables: core::cmp::Reverse<usize>,
}

/// Why a template is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TemplateError {
    /// What is wrong.
    pub kind: TemplateErrorKind,
    /// Where, in bytes from the start of the template.
    pub at: usize,
}

/// What is wrong with a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TemplateErrorKind {
    /// More than [`MAX_TEMPLATE`] bytes.
    TooLong,
    /// More than [`MAX_VARIABLES`] variables.
    TooManyVariables,
    /// A `{` without its `}`.
    Unclosed,
    /// A `}` without its `{`.
    Unopened,
    /// A character that may not stand outside an expression.
    Literal(char),
    /// A `%` without two hexadecimal digits.
    Percent,
    /// Encoded bytes outside an expression that are not UTF-8.
    NotUtf8,
    /// An operator that RFC 6570 sets aside for later: `=`, `,`, `!`, `@` or `|`.
    ReservedOperator(char),
    /// No variable name where one has to be.
    MissingName,
    /// A character that may not stand in a variable name.
    Name(char),
    /// A prefix that is not a number from 1 to 9999.
    Prefix,
    /// Something other than `,` or `}` after a variable.
    AfterVariable(char),
}

impl UriTemplate {
    /// Reads a template.
    ///
    /// # Errors
    ///
    /// [`TemplateError`] with the place if it is not a template of RFC 6570, or too large.
    pub fn parse(template: &str) -> Result<Self, TemplateError> {
        Ok(Self { parts: parse::parts(template)?, source: template.to_owned() })
    }

    /// The template as it was read.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// The names of the variables in the order in which they first occur.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let all = || self.expressions().flat_map(|expression| &expression.variables).map(|v| &*v.name);
        all()
            .enumerate()
            .filter(move |(at, name)| all().take(*at).all(|earlier| earlier != *name))
            .map(|(_, n)| n)
    }

    /// How much of a URI this template pins down.
    #[must_use]
    pub fn specificity(&self) -> Specificity {
        let literal = self.parts.iter().map(|part| match part {
            Part::Literal(literal) => literal.keys.len(),
            Part::Expression(_) => 0,
        });
        let variables = || {
            self.expressions()
                .flat_map(|e| e.variables.iter().map(|variable| (e.operator, variable.modifier)))
        };
        let crossing = variables()
            .filter(|(operator, modifier)| operator.allows_reserved() || *modifier == Modifier::Explode);
        Specificity {
            literal: literal.sum(),
            crossing: core::cmp::Reverse(crossing.count()),
            variables: core::cmp::Reverse(variables().count()),
        }
    }

    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.parts.iter().filter_map(|part| match part {
            Part::Literal(_) => None,
            Part::Expression(expression) => Some(expression),
        })
    }
}

impl FromStr for UriTemplate {
    type Err = TemplateError;

    fn from_str(template: &str) -> Result<Self, TemplateError> {
        Self::parse(template)
    }
}

impl fmt::Display for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl PartialEq for UriTemplate {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for UriTemplate {}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            TemplateErrorKind::TooLong => write!(f, "expected at most {MAX_TEMPLATE} bytes")?,
            TemplateErrorKind::TooManyVariables => write!(f, "expected at most {MAX_VARIABLES} variables")?,
            TemplateErrorKind::Unclosed => f.write_str("expected a `}` for this `{`")?,
            TemplateErrorKind::Unopened => f.write_str("expected no `}` outside an expression")?,
            TemplateErrorKind::Literal(c) => {
                write!(f, "expected characters of a URI outside expressions, found {c:?}")?;
            }
            TemplateErrorKind::NotUtf8 => f.write_str("expected encoded bytes that are UTF-8")?,
            TemplateErrorKind::Percent => f.write_str("expected two hexadecimal digits after `%`")?,
            TemplateErrorKind::ReservedOperator(c) => {
                write!(f, "expected a variable name or an operator of `+#./;?&`, found {c:?}")?;
            }
            TemplateErrorKind::MissingName => f.write_str("expected a variable name")?,
            TemplateErrorKind::Name(c) => {
                write!(f, "expected a variable name of letters, digits, `_`, `.` and `%XX`, found {c:?}")?;
            }
            TemplateErrorKind::Prefix => f.write_str("expected a prefix length from 1 to 9999")?,
            TemplateErrorKind::AfterVariable(c) => write!(f, "expected `,` or `}}`, found {c:?}")?,
        }
        write!(f, " at byte {} of the URI template", self.at)
    }
}

impl core::error::Error for TemplateError {}
