//! Newline framing: any cut gives the frames that the rules give.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_proto::codec::{Frame, LineBuffer};
use mcp_proto_fuzz::{Input, pieces};

/// `None` for a line that is too long.
type Frames = Vec<Option<Vec<u8>>>;

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    let (limit, cuts) = (usize::from(input.byte()), input.byte());
    let stream = input.rest();

    let expected = by_the_rules(limit, stream);
    let mut whole = LineBuffer::new(limit);
    whole.extend(stream);
    assert_eq!(finish(whole, Vec::new()), expected);

    let (mut lines, mut found) = (LineBuffer::new(limit), Vec::new());
    for (at, piece) in pieces(stream, cuts).enumerate() {
        if at % 2 == 0 {
            lines.extend(piece);
        } else {
            lines.spare(piece.len() + at % 3)[..piece.len()].copy_from_slice(piece);
            lines.commit(piece.len());
        }
        // Now and then frames are left for later.
        while let Some(frame) = lines.next_frame() {
            found.push(owned(frame));
            if at % 5 == 0 {
                break;
            }
        }
    }
    assert_eq!(finish(lines, found), expected);
});

fn finish(mut lines: LineBuffer, mut found: Frames) -> Frames {
    while let Some(frame) = lines.finish() {
        found.push(owned(frame));
    }
    assert_eq!(lines.buffered(), 0);
    found
}

fn owned(frame: Frame<'_>) -> Option<Vec<u8>> {
    match frame {
        Frame::Line(line) => Some(line.to_vec()),
        Frame::TooLong { .. } => None,
    }
}

fn by_the_rules(limit: usize, stream: &[u8]) -> Frames {
    let stream = stream.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(stream);
    let lines = stream.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let blank = |line: &[u8]| line.iter().all(|byte| b" \t\r".contains(byte));
    let frames = lines.filter(|line| line.len() > limit || !blank(line));
    frames.map(|line| (line.len() <= limit).then(|| line.to_vec())).collect()
}
