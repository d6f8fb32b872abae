//! Bytes to frames: lines and server-sent events, in reads of 8 KiB.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{large_call, modern_call};
use divan::{Bencher, counter::BytesCount};
use mcp_proto::codec::{Frame, LineBuffer, SseDecoder, SseFrame};

fn main() {
    divan::main();
}

const READ: usize = 8 << 10;
const MANY: usize = 200;

fn stream(frame: &[u8], times: usize, before: &[u8], after: &[u8]) -> Vec<u8> {
    [before, frame, after].concat().repeat(times)
}

fn lines(bencher: Bencher<'_, '_>, bytes: &[u8], frames: usize) {
    let mut buffer = LineBuffer::new(16 << 20);
    bencher.counter(BytesCount::of_slice(bytes)).bench_local(|| {
        let mut seen = 0;
        for read in bytes.chunks(READ) {
            buffer.spare(read.len())[..read.len()].copy_from_slice(read);
            buffer.commit(read.len());
            while let Some(Frame::Line(_)) = buffer.next_frame() {
                seen += 1;
            }
        }
        assert_eq!(seen, frames);
    });
}

fn events(bencher: Bencher<'_, '_>, bytes: &[u8], frames: usize) {
    let mut decoder = SseDecoder::new(16 << 20);
    bencher.counter(BytesCount::of_slice(bytes)).bench_local(|| {
        let mut seen = 0;
        for mut read in bytes.chunks(READ) {
            while let Some(SseFrame::Event(_)) = decoder.next_frame(&mut read) {
                seen += 1;
            }
        }
        assert_eq!(seen, frames);
    });
}

#[divan::bench(max_time = 1)]
fn lines_of_472_bytes(bencher: Bencher<'_, '_>) {
    lines(bencher, &stream(&modern_call(), MANY, b"", b"\n"), MANY);
}

#[divan::bench(max_time = 1)]
fn line_of_256_kib(bencher: Bencher<'_, '_>) {
    lines(bencher, &stream(&large_call(256 << 10), 1, b"", b"\n"), 1);
}

#[divan::bench(max_time = 1)]
fn events_of_472_bytes(bencher: Bencher<'_, '_>) {
    events(bencher, &stream(&modern_call(), MANY, b"data: ", b"\n\n"), MANY);
}

#[divan::bench(max_time = 1)]
fn event_of_256_kib(bencher: Bencher<'_, '_>) {
    events(bencher, &stream(&large_call(256 << 10), 1, b"data: ", b"\n\n"), 1);
}
