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
