//! What the fuzz targets share.
//!
//! An input begins with a few bytes of choices; the rest is what a peer sent, so that a seed can be read
//! and written with a text editor.

use mcp_proto::http::Head;
use mcp_proto::rpc::write_str;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Takes choices off the front of an input.
#[derive(Debug, Clone)]
pub struct Input<'d> {
    rest: &'d [u8],
}

impl<'d> Input<'d> {
    pub fn new(data: &'d [u8]) -> Self {
        Self { rest: data }
    }

    /// The next byte; zero when there is none left.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        *first
    }

    /// What comes before the next newline, without it; all if there is none.
    pub fn line(&mut self) -> &'d [u8] {
        let end = self.rest.iter().position(|byte| *byte == b'\n').unwrap_or(self.rest.len());
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..).unwrap_or_default();
        line
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn rest(self) -> &'d [u8] {
        self.rest
    }
}

/// Cuts `bytes` into pieces whose lengths follow from `choice`: zero gives single bytes.
pub fn pieces(bytes: &[u8], choice: u8) -> impl Iterator<Item = &[u8]> {
    let (mut rest, mut state) = (bytes, u32::from(choice));
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        state = state.wrapping_mul(0x915F_77F5).wrapping_add(state >> 16);
        let length = 1 + (state >> 24) as usize % 13;
        let (piece, after) = rest.split_at(length.min(rest.len()));
        rest = after;
        Some(piece)
    })
}

/// The members of an object, raw.
#[derive(Debug, Clone)]
pub struct Entries(pub Vec<(String, String)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Entries;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut all = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    all.push((name, map.next_value::<&RawValue>()?.get().to_owned()));
                }
                Ok(Entries(all))
            }
        }
        deserializer.deserialize_map(All)
    }
}

impl Entries {
    /// Whether no name is given twice, as far as order could matter.
    pub fn is_unique(&self) -> bool {
        let mut names: Vec<_> = self.0.iter().map(|(name, _)| name).collect();
        names.sort();
        names.windows(2).all(|pair| pair[0] != pair[1])
    }

    /// Members of `params` and of its `_meta` change places, too.
    pub fn write(&self, order: u8, levels: usize) -> String {
        let mut out = b"{".to_vec();
        for (at, (name, value)) in self.0.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_str(&mut out, name);
            out.push(b':');
            match serde_json::from_str::<Self>(value) {
                Ok(mut inner) if levels > 0 && *name == ["", "_meta", "params"][levels] => {
                    shuffle(&mut inner.0, order);
                    out.extend_from_slice(inner.write(order, levels - 1).as_bytes());
                }
                _ => out.extend_from_slice(value.as_bytes()),
            }
        }
        out.push(b'}');
        String::from_utf8(out).expect("UTF-8")
    }
}

/// Another order of the same items, for each choice one.
pub fn shuffle<T>(items: &mut [T], order: u8) {
    if items.is_empty() {
        return;
    }
    let by = usize::from(order >> 1) % items.len();
    items.rotate_left(by);
    if order & 1 != 0 {
        items.reverse();
    }
}

/// The head of an HTTP request.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    /// With the query, if there is one.
    pub target: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, Vec<u8>)>,
}

impl Request {
    pub fn new(method: &str, target: &str) -> Self {
        Self { method: method.to_owned(), target: target.to_owned(), headers: Vec::new() }
    }

    /// Reads a first line and headers, up to an empty line. What is no header counts as one without a value.
    pub fn read(input: &mut Input<'_>) -> Self {
        let first = String::from_utf8_lossy(input.line()).into_owned();
        let (method, target) = first.split_once(' ').unwrap_or((&first, "/"));
        let mut request = Self::new(method, target);
        while !input.is_empty() {
            let line = input.line();
            if line.is_empty() {
                break;
            }
            let end = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
            let (name, value) = line.split_at(end);
            request = request.with(&String::from_utf8_lossy(name), value.get(1..).unwrap_or_default());
        }
        request
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: &[u8]) -> Self {
        self.headers.push((name.to_ascii_lowercase(), value.to_vec()));
        self
    }

    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self
    }
}

impl Head for Request {
    fn method(&self) -> &str {
        &self.method
    }
    fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }
    fn query(&self) -> Option<&str> {
        self.target.split_once('?').map(|(_, query)| query)
    }
    fn authority(&self) -> Option<&str> {
        None
    }
    fn values<'h>(&'h self, name: &str) -> impl Iterator<Item = &'h [u8]> {
        let name = name.to_owned();
        self.headers.iter().filter(move |(known, _)| *known == name).map(|(_, value)| &value[..])
    }
}
