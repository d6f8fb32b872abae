//! Server-sent events: any cut gives the same events, and what is read can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_proto::codec::sse::write_event;
use mcp_proto::codec::{SseDecoder, SseFrame};
use mcp_proto_fuzz::{Input, pieces};

#[derive(Debug, PartialEq)]
enum Found {
    Event { name: String, data: Vec<u8>, id: Option<String> },
    TooLong,
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    let (limit, cuts) = (usize::from(input.byte()), input.byte());
    let stream = input.rest();

    let mut whole = SseDecoder::new(limit);
    let expected = decode(&mut whole, [stream]);
    for cuts in [0, cuts] {
        let mut decoder = SseDecoder::new(limit);
        assert_eq!(decode(&mut decoder, pieces(stream, cuts)), expected);
        assert_eq!(decoder.last_event_id(), whole.last_event_id());
        assert_eq!(decoder.retry(), whole.retry());
    }

    let mut written = Vec::new();
    for found in &expected {
        let Found::Event { name, data, id } = found else { continue };
        // Replacing what is not UTF-8 can make a name or id longer than it was.
        assert!(data.len() <= limit, "{} bytes of data", data.len());
        assert!(!data.contains(&b'\r'));
        write_event(&mut written, id.as_deref(), Some(name), data).expect("it came in as one line");
    }
    let again = decode(&mut SseDecoder::new(usize::MAX), [&*written]);
    let events: Vec<_> = expected.into_iter().filter(|found| *found != Found::TooLong).collect();
    assert_eq!(again, events);
});

fn decode<'b>(decoder: &mut SseDecoder, pieces: impl IntoIterator<Item = &'b [u8]>) -> Vec<Found> {
    let mut all = Vec::new();
    for mut piece in pieces {
        while let Some(frame) = decoder.next_frame(&mut piece) {
            all.push(match frame {
                SseFrame::Event(event) => Found::Event {
                    name: event.name.to_owned(),
                    data: event.data.to_vec(),
                    id: event.id.map(str::to_owned),
                },
                SseFrame::TooLong { .. } => Found::TooLong,
            });
        }
        assert!(piece.is_empty());
    }
    all
}
