//! What the fuzz targets share.
//!
//! An input begins with a few bytes of choices; the rest is what a peer sent, so that a seed can be read
//! and written with a text editor.

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
