//! Writing messages. The caller's closure appends the part that differs; nothing is copied twice.

use alloc::vec::Vec;

use super::scan::plain;
use super::{Error, RequestId};

/// Appends a JSON string.
pub fn write_str(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut from = 0;
    loop {
        let at = plain(bytes, from);
        out.extend_from_slice(&bytes[from..at]);
        let Some(&byte) = bytes.get(at) else { break };
        from = at + 1;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            _ => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
        }
    }
    out.push(b'"');
}

/// Appends an error response; without an id where the id could not be read.
pub fn write_error(out: &mut Vec<u8>, id: Option<&RequestId>, error: &Error) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    if let Some(id) = id {
        out.extend_from_slice(b",\"id\":");
        id.write(out);
    }
    out.extend_from_slice(b",\"error\":");
    error.write(out);
    out.push(b'}');
}

/// Appends a notification; `params` appends an object, or nothing at all for none.
pub fn write_notification(out: &mut Vec<u8>, method: &str, params: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
    write_str(out, method);
    write_params(out, params);
}

/// Appends a request; `params` appends an object, or nothing at all for none.
pub fn write_request(out: &mut Vec<u8>, id: &RequestId, method: &str, params: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    id.write(out);
    out.extend_from_slice(b",\"method\":");
    write_str(out, method);
    write_params(out, params);
}

fn write_params(out: &mut Vec<u8>, params: impl FnOnce(&mut Vec<u8>)) {
    let before = out.len();
    out.extend_from_slice(b",\"params\":");
    let start = out.len();
    params(out);
    if out.len() == start {
        out.truncate(before);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    #[test]
    fn strings_read_back_as_they_were() {
        let all: String = (0..0x80u8).map(char::from).chain("é读🎉\u{2028}".chars()).collect();
        let mut out = Vec::new();
        write_str(&mut out, &all);
        assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), all);
        // The same as the reference, wherever in a chunk the escape stands.
        for at in 0..200 {
            let text: String = (0..200).map(|n| if n == at { '\u{1}' } else { 'é' }).collect();
            let mut out = Vec::new();
            write_str(&mut out, &text);
            assert_eq!(out, serde_json::to_vec(&text).unwrap());
        }
        assert!(!out.contains(&b'\n'));
    }

    #[test]
    fn params_are_left_out_when_nothing_is_written() {
        let mut out = Vec::new();
        write_notification(&mut out, "a/b", |_| {});
        write_request(&mut out, &RequestId::from("x"), "ping", |o| o.extend_from_slice(b"{}"));
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"jsonrpc":"2.0","method":"a/b"}{"jsonrpc":"2.0","id":"x","method":"ping","params":{}}"#
        );
    }
}
