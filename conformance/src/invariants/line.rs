//! One line of output: UTF-8, one JSON value, and that an object or, where batches exist, an array of them.

use serde_json::Value;

use super::{Breach, Ledger};
use crate::requirement::Level;
use crate::revision::Revision;
use crate::text::{printable, read_json, shorten};

pub(super) fn read(ledger: &Ledger, bytes: &[u8], first: bool) -> Result<Vec<Value>, Breach> {
    let shown = || shorten(&printable(bytes), 300);
    let breach =
        |rule, ids: &[&'static str], expected| ledger.breach(Level::Must, rule, ids, "", expected, shown());
    let bytes_of_mark = b"\xef\xbb\xbf";
    if first && bytes.starts_with(bytes_of_mark) {
        return Err(breach("no-byte-order-mark", &["S-STDIO-01", "S01"], "output without a byte order mark"));
    }
    if std::str::from_utf8(bytes).is_err() {
        return Err(breach("utf-8", &["B-TRANS-01", "S-STDIO-01"], "a line of UTF-8"));
    }
    if bytes.trim_ascii().is_empty() {
        return Err(ledger.breach(
            Level::Must,
            "only-messages",
            &["S-STDIO-01"],
            "",
            "one message a line",
            "an empty line".to_owned(),
        ));
    }
    match read_json(bytes) {
        Err(_) => Err(breach("only-messages", &["S-STDIO-01", "B-BASE-02"], "one JSON message a line")),
        Ok(message @ Value::Object(_)) => Ok(vec![message]),
        Ok(Value::Array(items)) if batches(ledger) && !items.is_empty() => Ok(items),
        Ok(Value::Array(_)) => Err(breach("no-batch", &["S08", "B-BASE-02"], "one message, not an array")),
        Ok(_) => Err(breach("message", &["B-BASE-02", "S-STDIO-01"], "a JSON object")),
    }
}

/// A body or the data of an event: white space is free there.
pub(super) fn read_text(ledger: &Ledger, bytes: &[u8]) -> Result<Vec<Value>, Breach> {
    let shown = || shorten(&printable(bytes), 300);
    let breach =
        |rule, ids: &[&'static str], expected| ledger.breach(Level::Must, rule, ids, "", expected, shown());
    if std::str::from_utf8(bytes).is_err() {
        return Err(breach("utf-8", &["B-TRANS-01"], "UTF-8"));
    }
    match read_json(bytes) {
        Err(_) => Err(breach("only-messages", &["S-HTTP-08", "B-BASE-02"], "one JSON message")),
        Ok(message @ Value::Object(_)) => Ok(vec![message]),
        Ok(Value::Array(items)) if batches(ledger) && !items.is_empty() => Ok(items),
        Ok(Value::Array(_)) => Err(breach("no-batch", &["S08", "B-BASE-02"], "one message, not an array")),
        Ok(_) => Err(breach("message", &["B-BASE-02"], "a JSON object")),
    }
}

/// Arrays exist in one revision only, and there as the answer to one.
fn batches(ledger: &Ledger) -> bool {
    ledger.revision == Revision::V2025_03_26 && ledger.batched
}
