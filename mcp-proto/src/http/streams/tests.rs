use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::{format, vec};

use super::*;
use crate::codec::{SseDecoder, SseFrame};

const ALL: usize = usize::MAX;

fn streams() -> Streams {
    Streams::new(ProtocolVersion::V2025_11_25, &Limits::default())
}

fn small(bytes: usize, events: usize) -> Streams {
    let limits = Limits { event_log_bytes: bytes, event_log_events: events, ..Limits::default() };
    Streams::new(ProtocolVersion::V2025_11_25, &limits)
}

fn events(bytes: &[u8]) -> Vec<(String, String)> {
    let mut decoder = SseDecoder::new(1 << 26);
    let mut input = bytes;
    let mut found = Vec::new();
    while let Some(SseFrame::Event(event)) = decoder.next_frame(&mut input) {
        found.push((
            event.id.expect("every event has an id").to_owned(),
            String::from_utf8(event.data.to_owned()).unwrap(),
        ));
    }
    assert!(input.is_empty());
    found
}

fn read(streams: &mut Streams, reader: &Reader) -> (Vec<(String, String)>, Progress) {
    let mut out = Vec::new();
    let progress = streams.write(reader, ALL, &mut out);
    (events(&out), progress)
}

fn texts(found: &[(String, String)]) -> Vec<&str> {
    found.iter().map(|(_, text)| text.as_str()).collect()
}

fn ids(found: &[(String, String)]) -> Vec<&str> {
    found.iter().map(|(id, _)| id.as_str()).collect()
}

#[test]
fn a_single_answer_leaves_nothing_behind() {
    let mut streams = streams();
    let (id, reader) = streams.open_post();
    assert!(streams.is_undecided(&reader));
    assert_eq!(streams.take_single(&reader), None, "no answer yet");
    assert_eq!(streams.push(Some(id), b"1", true), Pushed::Ready(id));
    assert!(streams.is_undecided(&reader));
    assert_eq!(streams.take_single(&reader).as_deref(), Some(&b"1"[..]));
    assert_eq!(streams.bytes(), 0);
    assert!(streams.table.is_none());
    assert_eq!(read(&mut streams, &reader), (vec![], Progress::Stale));
    assert_eq!(streams.push(Some(id), b"2", false), Pushed::Dropped);
    assert!(size_of::<Streams>() < 100, "what an idle session pays: {}", size_of::<Streams>());
}

#[test]
fn a_session_at_rest_takes_little_memory() {
    let mut streams = streams();
    let posts = allocation_counter::measure(|| {
        for _ in 0..100 {
            let (id, reader) = streams.open_post();
            streams.push(Some(id), b"1", true);
            streams.take_single(&reader).unwrap();
        }
    });
    assert_eq!(posts.bytes_current, 0);
    let get = allocation_counter::measure(|| {
        let reader = streams.open_get().unwrap();
        streams.prime(&reader, None, &mut Vec::new());
    });
    assert!(get.bytes_current < 600, "with a GET that waits: {}", get.bytes_current);
}

#[test]
fn the_get_stream_does_not_end() {
    let mut streams = streams();
    let get = streams.open_get().unwrap();
    streams.end(get.stream());
    assert_eq!(streams.push(None, b"1", true), Pushed::Ready(get.stream()));
    assert_eq!(read(&mut streams, &get).1, Progress::Pending);
}

#[test]
fn two_messages_or_a_priming_event_decide_for_a_stream() {
    let mut streams = streams();
    let (id, reader) = streams.open_post();
    streams.push(Some(id), b"1", false);
    assert!(!streams.is_undecided(&reader));
    streams.push(Some(id), b"2", true);
    assert_eq!(streams.take_single(&reader), None);
    let (found, progress) = read(&mut streams, &reader);
    assert_eq!(
        (texts(&found), ids(&found), progress),
        (vec!["1", "2"], vec!["0-1", "0-2"], Progress::Finished)
    );
    let (id, reader) = streams.open_post();
    streams.prime(&reader, None, &mut Vec::new());
    streams.push(Some(id), b"1", true);
    assert!(!streams.is_undecided(&reader));
    assert_eq!(streams.take_single(&reader), None);
    let (id, reader) = streams.open_post();
    streams.end(id);
    assert!(!streams.is_undecided(&reader), "cancelled: there will be no answer");
    assert_eq!(read(&mut streams, &reader), (vec![], Progress::Finished));
    let (id, reader) = streams.open_post();
    streams.push(Some(id), b"1", false);
    streams.end(id);
    assert_eq!(streams.take_single(&reader), None, "this is not the answer");
    assert_eq!(texts(&read(&mut streams, &reader).0), ["1"]);
}

#[test]
fn ls_http_04_h12_priming_only_where_the_revision_has_it() {
    for version in ProtocolVersion::ALL {
        let mut streams = Streams::new(version, &Limits::default());
        let (_, reader) = streams.open_post();
        let mut out = Vec::new();
        streams.prime(&reader, Some(Duration::from_millis(50)), &mut out);
        streams.prime(&reader, Some(Duration::from_millis(50)), &mut out);
        let expected: &[u8] =
            if version == ProtocolVersion::V2025_11_25 { b"retry: 50\nid: 0-0\ndata: \n\n" } else { b"" };
        assert_eq!(out, expected, "{version}");
        streams.detach(reader);
        assert_eq!(streams.resume("0-0").is_ok(), !expected.is_empty(), "{version}");
    }
}

#[test]
fn ls_http_16_every_priming_event_has_an_id_of_its_own() {
    let mut streams = streams();
    let (id, reader) = streams.open_post();
    streams.push(Some(id), b"1", false);
    read(&mut streams, &reader);
    let second = streams.resume("0-1").unwrap();
    let mut out = Vec::new();
    streams.prime(&second, None, &mut out);
    assert_eq!(out, b"id: 0-1-1\ndata: \n\n");
    streams.push(Some(id), b"2", true);
    let third = streams.resume("0-1-1").unwrap();
    assert_eq!(read(&mut streams, &second).1, Progress::Stale);
    assert_eq!(ids(&read(&mut streams, &third).0), ["0-2"]);
    for never in ["0-0", "0-1-0", "0-1-3", "0-2-3", "0-3"] {
        assert_eq!(streams.resume(never), Err(Unknown), "{never}");
    }
}

#[test]
fn ls_http_18_every_cut_is_replayed_exactly() {
    let mut streams = streams();
    let (a, reader_a) = streams.open_post();
    let (b, reader_b) = streams.open_post();
    let get = streams.open_get().unwrap();
    for reader in [&reader_a, &reader_b, &get] {
        streams.prime(reader, None, &mut Vec::new());
    }
    for n in 0..9 {
        streams.push(Some(a), format!("\"a{n}\"").as_bytes(), n == 8);
        streams.push(Some(b), format!("\"b{n}\"").as_bytes(), false);
        streams.push(None, format!("\"g{n}\"").as_bytes(), false);
    }
    let whole_a = read(&mut streams, &reader_a);
    let whole_b = read(&mut streams, &reader_b);
    let whole_get = read(&mut streams, &get);
    assert_eq!(whole_a.1, Progress::Finished);
    for (stream, (whole, end)) in [&whole_a, &whole_b, &whole_get].into_iter().enumerate() {
        assert_eq!(whole.len(), 9);
        for cut in 0..=9 {
            let reader = streams.resume(&format!("{stream}-{cut}")).unwrap();
            let (rest, progress) = read(&mut streams, &reader);
            assert_eq!(rest, whole[cut..], "stream {stream} from {cut}");
            assert_eq!(progress, *end);
        }
        assert_eq!(streams.resume(&format!("{stream}-10")), Err(Unknown));
    }
}

#[test]
fn malformed_ids_are_unknown() {
    let mut streams = streams();
    let (id, reader) = streams.open_post();
    streams.push(Some(id), b"1", false);
    streams.prime(&reader, None, &mut Vec::new());
    read(&mut streams, &reader);
    assert!(streams.resume("0-1").is_ok());
    for bad in [
        "",
        "-",
        "0",
        "0-",
        "-1",
        "0-+1",
        "+0-1",
        "00-1",
        "0-01",
        " 0-1",
        "0-1 ",
        "0-1-",
        "0-1-1-1",
        "0-1-01",
        "0–1",
        "1-1",
        "0-18446744073709551615",
        "0-18446744073709551616",
        "a-1",
        "0_1",
    ] {
        assert_eq!(streams.resume(bad), Err(Unknown), "{bad:?}");
    }
}

#[test]
fn one_get_at_a_time_and_the_next_gets_what_was_not_sent() {
    let mut streams = streams();
    assert_eq!(streams.push(None, b"0", false), Pushed::Kept);
    let get = streams.open_get().unwrap();
    assert_eq!(streams.open_get(), Err(AlreadyOpen));
    assert_eq!(texts(&read(&mut streams, &get).0), ["0"]);
    assert_eq!(streams.push(None, b"1", true), Pushed::Ready(get.stream()));
    let old = get.stream();
    streams.detach(get);
    assert_eq!(streams.push(None, b"2", false), Pushed::Kept);
    let next = streams.open_get().unwrap();
    assert_ne!(next.stream(), old);
    assert_eq!(read(&mut streams, &next).1, Progress::Pending);
    // The old one has what was sent on it, and no more (LS-HTTP-14).
    let reader = streams.resume(&format!("{}-1", old.0)).unwrap();
    assert_eq!(read(&mut streams, &reader), (vec![], Progress::Finished));
    let again = streams.resume(&format!("{}-1", next.stream().0)).unwrap();
    assert_eq!(texts(&read(&mut streams, &again).0), ["2"]);
    assert_eq!(streams.push(None, b"3", false), Pushed::Ready(again.stream()));
    assert_eq!(streams.open_get(), Err(AlreadyOpen), "a resumed one is open too");
}

#[test]
fn room_is_kept_to_but_one_event_always_goes() {
    let mut streams = streams();
    let (id, reader) = streams.open_post();
    for _ in 0..3 {
        streams.push(Some(id), &[b'7'; 100], false);
    }
    assert_eq!(streams.pending(&reader), 3 * cost(&[b'7'; 100]));
    let mut out = Vec::new();
    assert_eq!(streams.write(&reader, 0, &mut out), Progress::More);
    assert_eq!(events(&out).len(), 1);
    assert_eq!(streams.write(&reader, 300, &mut out), Progress::Pending);
    assert_eq!(events(&out).len(), 3);
    assert_eq!(streams.pending(&reader), 0);
    out.clear();
    assert_eq!(streams.write(&reader, 300, &mut out), Progress::Pending);
    assert_eq!(out, b"");
}

#[test]
fn what_nobody_can_ask_for_is_not_kept() {
    let mut streams = streams();
    let (id, reader) = streams.open_post();
    streams.push(Some(id), b"1", false);
    streams.detach(reader);
    assert_eq!(streams.bytes(), 0, "the client has no id");
    assert_eq!(streams.push(Some(id), b"2", true), Pushed::Dropped);
    let get = streams.open_get().unwrap();
    streams.detach(get);
    assert!(streams.table.is_none());
}

#[test]
fn ls_http_06_an_answer_that_came_after_the_disconnect_is_replayed() {
    let mut streams = streams();
    let (id, reader) = streams.open_post();
    streams.prime(&reader, None, &mut Vec::new());
    streams.detach(reader);
    assert_eq!(streams.push(Some(id), b"1", false), Pushed::Kept);
    assert_eq!(streams.push(Some(id), b"2", true), Pushed::Kept);
    assert_eq!(streams.push(Some(id), b"3", true), Pushed::Dropped, "it has ended");
    for _ in 0..2 {
        let reader = streams.resume("0-0").unwrap();
        assert!(!streams.is_undecided(&reader));
        let (found, progress) = read(&mut streams, &reader);
        assert_eq!((ids(&found), progress), (vec!["0-1", "0-2"], Progress::Finished));
        assert_eq!(streams.write(&reader, ALL, &mut Vec::new()), Progress::Stale);
    }
}

#[test]
fn a_stale_reader_can_do_nothing() {
    let mut streams = streams();
    let (id, old) = streams.open_post();
    streams.push(Some(id), b"1", false);
    read(&mut streams, &old);
    let new = streams.resume("0-1").unwrap();
    streams.push(Some(id), b"2", true);
    let mut out = Vec::new();
    streams.prime(&old, None, &mut out);
    assert_eq!(streams.write(&old, ALL, &mut out), Progress::Stale);
    assert_eq!(out, b"");
    assert_eq!(streams.take_single(&old), None);
    assert_eq!(streams.pending(&old), 0);
    assert!(!streams.is_undecided(&old));
    streams.detach(old);
    assert_eq!(texts(&read(&mut streams, &new).0), ["2"], "the new one is still attached");
}

#[test]
fn streams_that_are_done_go_first_then_what_was_sent() {
    let mut streams = small(ALL, 4);
    let (running, running_reader) = streams.open_post();
    streams.push(Some(running), b"1", false);
    streams.push(Some(running), b"2", false);
    read(&mut streams, &running_reader);
    let (done, done_reader) = streams.open_post();
    streams.push(Some(done), b"1", false);
    streams.push(Some(done), b"2", true);
    assert_eq!(read(&mut streams, &done_reader).1, Progress::Finished);
    // Younger, but of no use to anyone whose response arrived.
    streams.push(Some(running), b"3", false);
    read(&mut streams, &running_reader);
    assert_eq!(streams.resume("1-1"), Err(Unknown));
    streams.push(Some(running), b"4", false);
    streams.push(Some(running), b"5", false);
    read(&mut streams, &running_reader);
    assert_eq!(streams.resume("0-0"), Err(Unknown));
    let reader = streams.resume("0-1").unwrap();
    assert_eq!(texts(&read(&mut streams, &reader).0), ["2", "3", "4", "5"]);
}

#[test]
fn a_gap_makes_a_post_stream_unknown() {
    let mut streams = small(ALL, 3);
    let (id, reader) = streams.open_post();
    streams.push(Some(id), b"1", false);
    read(&mut streams, &reader);
    streams.detach(reader);
    for n in 2..5 {
        assert_eq!(streams.push(Some(id), format!("{n}").as_bytes(), false), Pushed::Kept);
    }
    // The sent one went. From its id all that follows is there.
    let reader = streams.resume("0-1").unwrap();
    streams.detach(reader);
    assert_eq!(streams.push(Some(id), b"5", false), Pushed::Dropped);
    assert_eq!(streams.resume("0-1"), Err(Unknown));
    assert_eq!(streams.push(Some(id), b"6", true), Pushed::Dropped);
    assert_eq!(streams.bytes(), 0);
}

#[test]
fn a_gap_takes_the_past_of_the_get_stream_and_the_rest_goes_to_the_next() {
    let mut streams = small(ALL, 3);
    let get = streams.open_get().unwrap();
    streams.push(None, b"1", false);
    read(&mut streams, &get);
    streams.detach(get);
    for n in 2..7 {
        assert_eq!(streams.push(None, format!("{n}").as_bytes(), false), Pushed::Kept);
    }
    assert_eq!(streams.resume("0-1"), Err(Unknown));
    let get = streams.open_get().unwrap();
    let (found, _) = read(&mut streams, &get);
    assert_eq!(texts(&found), ["4", "5", "6"]);
    assert!(!ids(&found).iter().any(|id| id.starts_with("0-")), "{found:?}");
}

#[test]
fn a_message_that_can_never_be_kept_takes_no_other_with_it() {
    let mut streams = small(4000, ALL);
    let large = vec![b'1'; 4000];
    assert_eq!(streams.push(None, &large, false), Pushed::Dropped);
    assert_eq!(streams.push(None, b"0", false), Pushed::Kept);
    assert_eq!(streams.push(None, &large, false), Pushed::Dropped);
    let (a, reader_a) = streams.open_post();
    streams.prime(&reader_a, None, &mut Vec::new());
    streams.detach(reader_a);
    streams.push(Some(a), b"1", false);
    // Not sent: its stream is lost.
    let (b, reader_b) = streams.open_post();
    streams.prime(&reader_b, None, &mut Vec::new());
    streams.detach(reader_b);
    assert_eq!(streams.push(Some(b), &large, true), Pushed::Dropped);
    assert_eq!(streams.resume(&format!("{}-0", b.0)), Err(Unknown));
    // Sent: a client that has it goes on from there.
    let (c, reader_c) = streams.open_post();
    for message in [b"1", &large[..], b"3"] {
        assert_eq!(streams.push(Some(c), message, false), Pushed::Ready(c), "a reader gets everything");
    }
    assert_eq!(read(&mut streams, &reader_c).0.len(), 3);
    assert_eq!(streams.resume(&format!("{}-1", c.0)), Err(Unknown));
    let reader_c = streams.resume(&format!("{}-2", c.0)).unwrap();
    assert_eq!(texts(&read(&mut streams, &reader_c).0), ["3"]);
    let reader_a = streams.resume(&format!("{}-0", a.0)).unwrap();
    assert_eq!(texts(&read(&mut streams, &reader_a).0), ["1"]);
    let get = streams.open_get().unwrap();
    assert_eq!(texts(&read(&mut streams, &get).0), ["0"]);
}

#[test]
fn a_reader_that_never_reads_is_cut_off() {
    let limits = Limits { output_high_water: 10_000, max_message: 20_000, ..Limits::default() };
    let mut streams = Streams::new(ProtocolVersion::V2025_11_25, &limits);
    let message = [b'1'; 1000];
    let get = streams.open_get().unwrap();
    streams.prime(&get, None, &mut Vec::new());
    let (post, reader) = streams.open_post();
    streams.prime(&reader, None, &mut Vec::new());
    for n in 0..30 {
        let full = |bound: usize| n * cost(&message) > bound;
        let pushed = streams.push(None, &message, false);
        assert_eq!(pushed == Pushed::Kept, full(10_000), "{n}: {pushed:?}");
        let pushed = streams.push(Some(post), &message, false);
        assert_eq!(pushed == Pushed::Kept, full(20_000), "{n}: {pushed:?}");
    }
    for reader in [&get, &reader] {
        assert_eq!(streams.write(reader, ALL, &mut Vec::new()), Progress::Stale);
    }
    for id in ["0-0", "1-0"] {
        let reader = streams.resume(id).unwrap();
        assert_eq!(read(&mut streams, &reader).0.len(), 30, "nothing was lost");
    }
}

#[test]
fn a_million_messages_that_nobody_reads_stay_within_the_bounds() {
    let limits = Limits { output_high_water: 64 << 10, max_message: 64 << 10, ..Limits::default() };
    let mut streams = Streams::new(ProtocolVersion::V2025_06_18, &limits);
    let (first, reader) = streams.open_post();
    streams.push(Some(first), b"1", false);
    read(&mut streams, &reader);
    let message = *b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}";
    let bound = limits.event_log_bytes + limits.output_high_water + limits.max_message + (1 << 10);
    for n in 0..1_000_000_u32 {
        match n % 1000 {
            // Readers come and go, and read little or nothing.
            0 => {
                if let Ok(get) = streams.open_get() {
                    if n % 3 == 0 {
                        streams.write(&get, 0, &mut Vec::new());
                    }
                    if n % 2000 == 0 {
                        streams.detach(get);
                    }
                }
            }
            // A request that is dropped right away, another one whose client waits for ever.
            1 => {
                let (id, reader) = streams.open_post();
                streams.push(Some(id), &message, false);
                streams.write(&reader, 0, &mut Vec::new());
                streams.detach(reader);
                streams.end(id);
            }
            n if n % 2 == 0 => {
                streams.push(Some(first), &message, false);
            }
            _ => {
                streams.push(None, &message, false);
            }
        }
        assert!(streams.bytes() <= bound, "{n}: {}", streams.bytes());
    }
    let table = streams.table.as_ref().unwrap();
    let capacity: usize = table.streams.values().map(|stream| stream.events.capacity()).sum();
    assert!(capacity < 8 * (limits.event_log_events + 1000), "{capacity}");
    assert!(table.streams.len() <= limits.event_log_events + 2);
}

#[test]
fn cancelled_streams_without_messages_do_not_pile_up() {
    let mut streams = small(10_000, ALL);
    for _ in 0..10_000 {
        let (id, reader) = streams.open_post();
        streams.prime(&reader, None, &mut Vec::new());
        streams.detach(reader);
        streams.end(id);
        assert!(streams.bytes() <= 10_000);
    }
    let reader = streams.resume("9999-0").unwrap();
    assert_eq!(read(&mut streams, &reader), (vec![], Progress::Finished));
    assert_eq!(streams.resume("0-0"), Err(Unknown));
}

/// What the streams are to do, told in the plainest way: every message ever pushed, and where it went.
mod model {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Op {
        OpenPost,
        OpenGet,
        Push { to: Option<usize>, last: bool, long: bool },
        End(usize),
        Write { reader: usize, room: usize },
        Detach(usize),
        Resume(usize),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            2 => Just(Op::OpenPost),
            2 => Just(Op::OpenGet),
            12 => (proptest::option::of(0_usize..64), proptest::bool::weighted(0.1), proptest::bool::weighted(0.1))
                .prop_map(|(to, last, long)| Op::Push { to, last, long }),
            1 => (0_usize..64).prop_map(Op::End),
            10 => (0_usize..64, 0_usize..400).prop_map(|(reader, room)| Op::Write { reader, room }),
            4 => (0_usize..64).prop_map(Op::Detach),
            6 => (0_usize..256).prop_map(Op::Resume),
        ]
    }

    /// A response: what was attached, and what its client saw.
    #[derive(Debug)]
    struct Response {
        reader: Option<Reader>,
        stream: StreamId,
        /// The last id and the number of messages that its client has seen of the stream.
        seen: usize,
    }

    #[derive(Debug, Default)]
    struct Model {
        /// What was seen on each stream, by position. What is on a stream never changes.
        streams: BTreeMap<StreamId, Vec<String>>,
        posts: Vec<(StreamId, Vec<String>)>,
        responses: Vec<Response>,
        /// Each id that was sent, with how many messages were seen up to it.
        ids: Vec<(String, StreamId, usize)>,
        unrelated: Vec<String>,
        count: usize,
    }

    impl Model {
        fn write(
            &mut self,
            streams: &mut Streams,
            at: usize,
            room: usize,
        ) -> Result<Progress, TestCaseError> {
            let response = &mut self.responses[at];
            let Some(reader) = &response.reader else { return Ok(Progress::Stale) };
            let pending = streams.pending(reader);
            let mut out = Vec::new();
            let progress = streams.write(reader, room, &mut out);
            let found = events(&out);
            prop_assert_eq!(found.is_empty(), pending == 0, "at least one if there is one");
            prop_assert!(found.len() < 2 || out.len() <= room);
            let known = self.streams.entry(response.stream).or_default();
            for (id, text) in found {
                let expected = format!("{}-{}", response.stream.0, response.seen + 1);
                prop_assert_eq!(&id, &expected, "each position once, none left out");
                if let Some(before) = known.get(response.seen) {
                    prop_assert_eq!(before, &text, "a position has one message");
                } else {
                    prop_assert_eq!(known.len(), response.seen);
                    known.push(text);
                    self.ids.push((id, response.stream, response.seen + 1));
                }
                response.seen += 1;
            }
            if matches!(progress, Progress::Stale | Progress::Finished) {
                response.reader = None;
            }
            Ok(progress)
        }

        fn attached(&self, streams: &Streams, id: StreamId) -> bool {
            streams.stream(id).is_some_and(|stream| stream.attached.is_some())
        }
    }

    fn run(ops: Vec<Op>, bytes: usize, event_bound: usize) -> Result<(), TestCaseError> {
        let mut streams = small(bytes, event_bound);
        let unbounded = bytes == ALL;
        let mut model = Model::default();
        for op in ops {
            match op {
                Op::OpenPost => {
                    let (id, reader) = streams.open_post();
                    model.posts.push((id, Vec::new()));
                    model.respond(&mut streams, reader, 0);
                }
                Op::OpenGet => {
                    let get = streams.table.as_ref().and_then(|table| table.get);
                    let open = get.is_some_and(|id| model.attached(&streams, id));
                    match streams.open_get() {
                        Ok(reader) => {
                            prop_assert!(!open);
                            model.respond(&mut streams, reader, 0);
                        }
                        Err(AlreadyOpen) => prop_assert!(open),
                    }
                }
                Op::Push { to, last, long } => {
                    model.count += 1;
                    let text =
                        format!("{}{}", model.count, if long { " ".repeat(300) } else { String::new() });
                    let count = model.posts.len();
                    let post = to.filter(|_| count > 0).map(|at| &mut model.posts[at % count]);
                    let pushed = streams.push(post.as_ref().map(|(id, _)| *id), text.as_bytes(), last);
                    match post {
                        Some((id, _)) if pushed == Pushed::Dropped => {
                            let gone = streams.stream(*id).is_none_or(|stream| stream.ended);
                            prop_assert!(gone, "nothing is left out silently");
                        }
                        Some((_, messages)) => messages.push(text),
                        None if pushed == Pushed::Dropped => prop_assert!(!unbounded),
                        None => model.unrelated.push(text),
                    }
                }
                Op::End(at) if !model.posts.is_empty() => streams.end(model.posts[at % model.posts.len()].0),
                Op::Write { reader, room } if !model.responses.is_empty() => {
                    let at = reader % model.responses.len();
                    model.write(&mut streams, at, room)?;
                }
                Op::Detach(at) if !model.responses.is_empty() => {
                    let at = at % model.responses.len();
                    if let Some(reader) = model.responses[at].reader.take() {
                        streams.detach(reader);
                    }
                }
                Op::Resume(at) if !model.ids.is_empty() => {
                    let (id, _, seen) = model.ids[at % model.ids.len()].clone();
                    match streams.resume(&id) {
                        Ok(reader) => model.respond(&mut streams, reader, seen),
                        Err(Unknown) => prop_assert!(!unbounded, "{} is still known", id),
                    }
                }
                Op::End(_) | Op::Write { .. } | Op::Detach(_) | Op::Resume(_) => {}
            }
            check(&streams)?;
        }
        // All that is left is read.
        for at in 0..model.responses.len() {
            while model.write(&mut streams, at, 1000)? == Progress::More {}
        }
        let post = |id: &StreamId| model.posts.iter().find(|(post, _)| post == id);
        for (id, seen) in &model.streams {
            if let Some((_, messages)) = post(id) {
                prop_assert!(messages.starts_with(seen), "the messages of this POST, in order");
            }
        }
        let unrelated: Vec<_> = model.streams.iter().filter(|(id, _)| post(id).is_none()).collect();
        let unrelated: Vec<_> = unrelated.into_iter().flat_map(|(_, seen)| seen).collect();
        let mut all = model.unrelated.iter();
        for text in &unrelated {
            prop_assert!(all.any(|pushed| pushed == *text), "each at most once, in order");
        }
        if unbounded {
            // One more GET, and nothing was lost.
            let mut seen = unrelated.len();
            if let Ok(get) = streams.open_get() {
                seen += read(&mut streams, &get).0.len();
            }
            prop_assert_eq!(seen, model.unrelated.len());
            for (id, stream, cut) in &model.ids {
                let reader = streams.resume(id).unwrap();
                let rest = read(&mut streams, &reader).0;
                let whole = model.streams.get(stream).map_or(&[][..], Vec::as_slice);
                prop_assert_eq!(&texts(&rest)[..whole.len() - cut], &whole[*cut..]);
            }
        }
        Ok(())
    }

    impl Model {
        fn respond(&mut self, streams: &mut Streams, reader: Reader, seen: usize) {
            let stream = reader.stream();
            let mark = if reader.number == 0 { String::new() } else { format!("-{}", reader.number) };
            let id = format!("{}-{seen}{mark}", stream.0);
            let mut out = Vec::new();
            streams.prime(&reader, None, &mut out);
            assert_eq!(out, format!("id: {id}\ndata: \n\n").as_bytes());
            assert!(!self.ids.iter().any(|(known, ..)| *known == id), "{id} was sent before");
            self.ids.push((id, stream, seen));
            self.responses.push(Response { reader: Some(reader), stream, seen });
        }
    }

    /// The sums are those of the streams, and what may go is within the bounds.
    fn check(streams: &Streams) -> Result<(), TestCaseError> {
        let Some(table) = &streams.table else { return Ok(()) };
        let (mut bytes, mut events, mut owed, mut victims) = (0, 0, 0, BTreeSet::new());
        for (id, stream) in &table.streams {
            let held: usize = stream.events.iter().map(|event| cost(&event.data)).sum();
            prop_assert_eq!(held, stream.bytes);
            let unread = stream.attached.as_ref().map_or(0, |attached| {
                let from = usize::try_from(attached.cursor - stream.forgotten).unwrap();
                owed += stream.events.range(from..).map(|event| cost(&event.data)).sum::<usize>();
                stream.events.len() - from
            });
            events += stream.events.len() - unread;
            bytes += STREAM_COST + held;
            victims.extend(stream.share().victim.map(|(class, age)| (class, age, *id)));
        }
        prop_assert_eq!((table.sums.bytes, table.sums.owed, table.sums.events), (bytes - owed, owed, events));
        prop_assert_eq!(&table.sums.victims, &victims);
        prop_assert_eq!(streams.bytes(), bytes);
        prop_assert!(events <= streams.bounds.events || victims.is_empty());
        prop_assert!(bytes - owed <= streams.bounds.bytes || victims.is_empty());
        Ok(())
    }

    proptest! {
        #[test]
        fn unbounded_nothing_is_lost_and_nothing_comes_twice(ops in proptest::collection::vec(op(), 0..120)) {
            run(ops, ALL, ALL)?;
        }

        #[test]
        fn bounded_it_is_complete_or_unknown(
            ops in proptest::collection::vec(op(), 0..120), bytes in 0_usize..4000, events in 0_usize..20,
        ) {
            run(ops, bytes, events)?;
        }
    }
}
