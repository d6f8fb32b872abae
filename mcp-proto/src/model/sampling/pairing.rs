//! Tool uses and their results in a conversation. [spec: client/sampling#tool-use]

use alloc::vec::Vec;
use core::fmt;

use super::{SamplingBlock, SamplingMessage};
use crate::model::{Role, Str};

/// Why tool uses and results in a conversation do not belong together. `message` counts from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolUseFault {
    /// A tool use is not the model's, or a tool result is not the user's.
    Role {
        /// Where.
        message: usize,
    },
    /// A message with tool results holds something else too.
    Mixed {
        /// Where.
        message: usize,
    },
    /// Two uses, or two results, of one message have the same id.
    Duplicate {
        /// Where.
        message: usize,
        /// Which id.
        id: Str,
    },
    /// The message after a tool use does not answer it.
    Unanswered {
        /// Where the use is.
        message: usize,
        /// Its id.
        id: Str,
    },
    /// A result answers no use of the message before it.
    Unasked {
        /// Where the result is.
        message: usize,
        /// The id of the use that it names.
        id: Str,
    },
}

/// Checks that every message with tool uses is followed at once by one that answers each of them and
/// says nothing else. A client may refuse a conversation in which it is not so.
pub fn check_tool_use(messages: &[SamplingMessage]) -> Result<(), ToolUseFault> {
    let mut open: Vec<&Str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let (mut uses, mut results) = (Vec::new(), Vec::new());
        for block in message.content.blocks() {
            match block {
                SamplingBlock::ToolUse(content) => uses.push(&content.id),
                SamplingBlock::ToolResult(content) => results.push(&content.tool_use_id),
                _ => {}
            }
        }
        let role_fits = (uses.is_empty() || message.role == Role::Assistant)
            && (results.is_empty() || message.role == Role::User);
        if !role_fits {
            return Err(ToolUseFault::Role { message: at });
        }
        if !results.is_empty() && results.len() != message.content.blocks().len() {
            return Err(ToolUseFault::Mixed { message: at });
        }
        answers(at, &open, sorted(at, &mut results)?)?;
        sorted(at, &mut uses)?;
        open = uses;
    }
    answers(messages.len(), &open, &[])
}

/// Sorts ids, which must be unique.
fn sorted<'a, 'b>(message: usize, ids: &'a mut [&'b Str]) -> Result<&'a [&'b Str], ToolUseFault> {
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(ToolUseFault::Duplicate { message, id: pair[0].clone() }),
        None => Ok(ids),
    }
}

/// Compares the sorted ids of the uses before message `at` with those of the results in it.
fn answers(at: usize, open: &[&Str], results: &[&Str]) -> Result<(), ToolUseFault> {
    if let Some(id) = results.iter().find(|id| open.binary_search(id).is_err()) {
        return Err(ToolUseFault::Unasked { message: at, id: (*id).clone() });
    }
    match open.iter().find(|id| results.binary_search(id).is_err()) {
        Some(id) => Err(ToolUseFault::Unanswered { message: at.saturating_sub(1), id: (*id).clone() }),
        None => Ok(()),
    }
}

impl fmt::Display for ToolUseFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Role { message } => {
                write!(f, "at /messages/{message}: tool uses are the assistant's, tool results the user's")
            }
            Self::Mixed { message } => {
                write!(f, "at /messages/{message}: a message with tool results holds nothing else")
            }
            Self::Duplicate { message, id } => {
                write!(f, "at /messages/{message}: the tool use {id:?} occurs twice")
            }
            Self::Unanswered { message, id } => {
                write!(f, "at /messages/{message}: the next message has no result for the tool use {id:?}")
            }
            Self::Unasked { message, id } => {
                write!(f, "at /messages/{message}: the message before has no tool use {id:?}")
            }
        }
    }
}

impl core::error::Error for ToolUseFault {}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::model::{ContentBlock, Json, SamplingContent, ToolResultContent, ToolUseContent};

    fn uses(ids: &[&'static str]) -> SamplingMessage {
        let block = |id: &&'static str| ToolUseContent::new(*id, "t", Json::empty_object()).into();
        SamplingMessage::assistant(SamplingContent::Many(ids.iter().map(block).collect()))
    }

    fn results(ids: &[&'static str]) -> SamplingMessage {
        let block = |id: &&'static str| ToolResultContent::new(*id, [ContentBlock::text("r")]).into();
        SamplingMessage::user(SamplingContent::Many(ids.iter().map(block).collect()))
    }

    #[test]
    fn every_use_is_answered_at_once_and_alone() {
        // S-SAMP-04, S-SAMP-05, S-SAMP-07, M07
        let says = |text| SamplingMessage::user(SamplingContent::from(text));
        let id = Str::Borrowed;
        let both = |a: SamplingMessage, b: SamplingBlock| {
            let mut blocks = a.content.blocks().to_vec();
            blocks.push(b);
            SamplingMessage::new(a.role, blocks)
        };
        for (messages, expected) in [
            (vec![], Ok(())),
            (
                vec![
                    says("a"),
                    uses(&["1", "2"]),
                    results(&["2", "1"]),
                    uses(&["1"]),
                    results(&["1"]),
                    says("b"),
                ],
                Ok(()),
            ),
            (vec![both(uses(&["1"]), "let me see".into()), results(&["1"])], Ok(())),
            (vec![uses(&["1"])], Err(ToolUseFault::Unanswered { message: 0, id: id("1") })),
            (
                vec![uses(&["1"]), says("a"), results(&["1"])],
                Err(ToolUseFault::Unanswered { message: 0, id: id("1") }),
            ),
            (
                vec![uses(&["1", "2"]), results(&["1"])],
                Err(ToolUseFault::Unanswered { message: 0, id: id("2") }),
            ),
            (vec![says("a"), results(&["1"])], Err(ToolUseFault::Unasked { message: 1, id: id("1") })),
            (
                vec![uses(&["1"]), results(&["1", "3"])],
                Err(ToolUseFault::Unasked { message: 1, id: id("3") }),
            ),
            (vec![uses(&["1"]), both(results(&["1"]), "x".into())], Err(ToolUseFault::Mixed { message: 1 })),
            (vec![uses(&["1", "1"])], Err(ToolUseFault::Duplicate { message: 0, id: id("1") })),
            (
                vec![uses(&["1"]), results(&["1", "1"])],
                Err(ToolUseFault::Duplicate { message: 1, id: id("1") }),
            ),
            (
                vec![SamplingMessage { role: Role::User, ..uses(&["1"]) }],
                Err(ToolUseFault::Role { message: 0 }),
            ),
            (
                vec![uses(&["1"]), SamplingMessage { role: Role::Assistant, ..results(&["1"]) }],
                Err(ToolUseFault::Role { message: 1 }),
            ),
        ] {
            assert_eq!(check_tool_use(&messages), expected, "{messages:?}");
        }
    }
}
