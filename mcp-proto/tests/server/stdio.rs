//! Bytes as a pipe delivers them: framing and machine together.

use mcp_proto::codec::{Frame, LineBuffer};
use mcp_proto::limits::Limits;
use mcp_proto::model::{CallToolResult, ProtocolVersion as V};
use mcp_proto::server::{Call, Channel, Event};
use serde_json::{Value, json};

use super::pair::{META, Pair, config, initialize, limits, modern};

/// A server that echoes `arguments.text`, fed with bytes.
struct Stream {
    lines: LineBuffer,
    pair: Pair,
    calls: usize,
}

impl Stream {
    fn new(limits: Limits) -> Self {
        let lines = LineBuffer::new(limits.max_message);
        Self { lines, pair: Pair::of(config().limits(limits).build()), calls: 0 }
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.lines.extend(bytes);
        let Self { lines, pair, calls } = self;
        while let Some(frame) = lines.next_frame() {
            let Frame::Line(line) = frame else {
                let _ = pair.server.refuse_oversized(&mut pair.out);
                continue;
            };
            let Some(Event::Request(incoming)) = pair.server.handle(line, pair.now, &mut pair.out) else {
                continue;
            };
            match incoming.typed() {
                Ok(Call::CallTool(pending, params)) => {
                    *calls += 1;
                    let arguments = params.arguments.map_or("{}", |raw| raw.get());
                    let delivery = match serde_json::from_str::<Value>(arguments) {
                        Ok(arguments) => {
                            let text = arguments["text"].as_str().unwrap_or_default().to_owned();
                            pair.server.respond(pending, &CallToolResult::text(text), &mut pair.out)
                        }
                        Err(_) => pair.server.fail(
                            pending,
                            &mcp_proto::rpc::Error::invalid_params("Invalid arguments"),
                            &mut pair.out,
                        ),
                    };
                    assert!(delivery.is_written());
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Ids of success responses that were written.
    fn served(&mut self) -> Vec<Value> {
        let messages = self.pair.messages().into_iter();
        messages.filter(|m| m.get("result").is_some()).map(|m| m["id"].clone()).collect()
    }
}

fn echo(id: u32, text: &str) -> String {
    modern(&id.to_string(), "tools/call", &format!(r#""name":"echo","arguments":{{"text":"{text}"}}"#))
}

/// S01: one leading BOM is no part of the first message, in both eras; later it spoils its line only.
#[test]
fn s01_byte_order_mark() {
    let mut stream = Stream::new(Limits::default());
    stream.feed(format!("\u{feff}{}\n\u{feff}{}\n{}\n", echo(1, "a"), echo(2, "b"), echo(3, "c")).as_bytes());
    assert!(stream.pair.out.starts_with(b"{"));
    assert_eq!(stream.served(), [1, 3]);
    let mut stream = Stream::new(Limits::default());
    stream.feed(format!("\u{feff}{}\n", initialize("1", "2025-06-18", "{}")).as_bytes());
    assert_eq!(stream.served(), [1]);
}

/// S02: white space around a message is nothing; two values on a line are no message and do not run.
#[test]
fn s02_crlf_blank_lines_and_trailing_bytes() {
    let mut stream = Stream::new(Limits::default());
    let input = format!(
        "\r\n\n{}\r\n   \n{} \t\r\n{}{{\"x\":1}}\n{}\n",
        echo(1, ""),
        echo(2, ""),
        echo(3, ""),
        echo(4, "")
    );
    stream.feed(input.as_bytes());
    assert_eq!(stream.served(), [1, 2, 4]);
    assert_eq!(stream.calls, 3);
}

/// S04: large legal messages pass; an endless line is skipped, answered once, and the stream goes on.
#[test]
fn s04_long_lines() {
    let mut stream = Stream::new(Limits::default());
    let text = "x".repeat(5 << 20);
    stream.feed(format!("{}\n", echo(1, &text)).as_bytes());
    let answer = stream.pair.message();
    assert!(answer["result"]["content"][0]["text"] == *text);

    let mut stream = Stream::new(limits(|l| l.max_message = 64 << 10));
    let block = vec![b'a'; 8 << 10];
    for _ in 0..1_000 {
        stream.feed(&block);
        assert!(stream.lines.buffered() <= 72 << 10);
    }
    stream.feed(b"\n");
    let answer = stream.pair.message();
    assert_eq!(answer["error"]["code"], -32600);
    assert!(answer.get("id").is_none());
    stream.feed(format!("{}\n", echo(2, "")).as_bytes());
    assert_eq!(stream.served(), [2]);
}

/// S05: however the bytes are cut, the text is the same.
#[test]
fn s05_utf8_split_across_reads() {
    let text = "读—🎉é";
    let line = format!("{}\n", echo(1, text));
    for cut in 1..line.len() {
        let mut stream = Stream::new(Limits::default());
        let (head, tail) = line.as_bytes().split_at(cut);
        stream.feed(head);
        stream.feed(tail);
        assert_eq!(stream.pair.message()["result"]["content"][0]["text"], text, "cut at {cut}");
    }
    let mut stream = Stream::new(Limits::default());
    for byte in line.as_bytes() {
        stream.feed(&[*byte]);
    }
    assert_eq!(stream.pair.message()["result"]["content"][0]["text"], text);
}

/// S06: bytes that are no UTF-8, and escapes that stand for no character, spoil one message.
#[test]
fn s06_invalid_utf8_and_lone_surrogates() {
    let mut stream = Stream::new(Limits::default());
    let mut input = b"\xFF\xFE\n".to_vec();
    input.extend_from_slice(
        format!("{}\n{}\n{}\n", echo(1, ""), echo(2, "a\\ud83d b"), echo(3, "")).as_bytes(),
    );
    stream.feed(&input);
    let messages = stream.pair.messages();
    assert_eq!(messages.len(), 4);
    assert_eq!(messages[0]["error"]["code"], -32700);
    assert_eq!((&messages[1]["id"], &messages[3]["id"]), (&json!(1), &json!(3)));
    assert!(messages[1].get("result").is_some() && messages[3].get("result").is_some());
    assert_eq!((&messages[2]["id"], &messages[2]["error"]["code"]), (&json!(2), &json!(-32602)));
    // In the envelope it is no better: an error, and the next message is served.
    for bad in [
        echo(5, "").replace("\"id\":5", "\"id\":\"\\ud83d\""),
        echo(5, "").replace("tools/call", "\\udc00"),
        echo(5, "").replace("\"name\"", "\"na\\ud83dme\""),
    ] {
        let mut stream = Stream::new(Limits::default());
        stream.feed(format!("{bad}\n{}\n", echo(6, "")).as_bytes());
        let messages = stream.pair.messages();
        assert!(messages[0].get("error").is_some(), "{bad}: {messages:?}");
        assert_eq!(messages.last().map(|m| &m["id"]), Some(&json!(6)));
        assert_eq!(stream.calls, 1);
    }
}

/// S08: arrays on a revision without them, or without a handshake: one error or silence, nothing runs.
#[test]
fn s08_no_batches_outside_of_2025_03_26() {
    let member =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t",{META}}}}}"#);
    for version in [V::V2024_11_05, V::V2025_06_18, V::V2025_11_25, V::LATEST] {
        let mut pair = Pair::speaking(version);
        for frame in
            [format!("[{member}]"), "[]".into(), "[1,2]".into(), format!(" [ {member} , {member} ] ")]
        {
            let violation = pair.refused(&frame);
            assert_eq!(violation.error.code, -32600, "{version} {frame}");
            assert_eq!(violation.answered, version.allows_error_without_id());
            let messages = pair.messages();
            assert_eq!(messages.len(), usize::from(violation.answered));
            assert!(messages.iter().all(|m| m.get("id").is_none() && m["error"]["code"] == -32600));
        }
        assert_eq!(pair.server.in_flight(), 0);
    }
}

/// B-STDIO-01: an answer whose raw parts are pretty-printed is still one line.
#[test]
fn pretty_printed_parts_stay_on_one_line() {
    let mut pair = Pair::new();
    let frame = modern("1", "tools/call", "\"name\":\"t\"");
    let (pending, _) = pair.tool(&frame);
    let body = b"{\n  \"content\": [\r\n  ]\n}\n";
    assert!(pair.server.respond_raw(pending, body, &mut pair.out).is_written());
    assert_eq!(pair.message()["result"]["content"], json!([]));
}
