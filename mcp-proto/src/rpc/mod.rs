//! JSON-RPC 2.0 as MCP uses it: frames become messages, messages become frames.
//!
//! A frame is read once. The result borrows the frame: params and `_meta` are split into their members,
//! whose values stay raw until the method is known.

pub mod de;
mod error;
mod id;
mod members;
mod message;
mod scan;
mod write;

pub use error::{Error, code};
pub use id::{ProgressToken, RequestId};
pub use members::Members;
pub use message::{Batch, Malformed, Message, Params, Parsed, parse};
pub use write::{write_error, write_notification, write_request, write_str};

pub(crate) use error::{PointerToken, Short};
pub(crate) use id::{CowStr, str_from_json};
pub(crate) use members::unfit;
