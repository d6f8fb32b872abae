//! One request through the machine, from the frame to the answer, beside a bare scan of the same bytes.
//!
//! `cargo bench -p mcp-proto --bench server_machine`; compare the lines of one run with each other.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{Machine, large_call, legacy_call, list, modern_call, modern_call_reordered, scan};
use divan::{Bencher, counter::BytesCount};

fn main() {
    divan::main();
}

fn run(bencher: Bencher<'_, '_>, mut machine: Machine, frame: &[u8], part: &str) {
    machine.handle(frame);
    machine.assert_answered(part);
    bencher.counter(BytesCount::of_slice(frame)).bench_local(|| machine.handle(frame));
}

fn bare(bencher: Bencher<'_, '_>, frame: &[u8]) {
    bencher.counter(BytesCount::of_slice(frame)).bench_local(|| scan(frame));
}

const FOX: &str = "brown fox";

#[divan::bench_group(name = "call", max_time = 1)]
mod call {
    use super::*;

    #[divan::bench]
    fn bare_scan(bencher: Bencher<'_, '_>) {
        bare(bencher, &modern_call());
    }

    #[divan::bench]
    fn modern_alone(bencher: Bencher<'_, '_>) {
        let (mut machine, frame) = (Machine::new(2, true), modern_call());
        machine.handle_alone(&frame);
        machine.assert_answered(FOX);
        bencher.counter(BytesCount::of_slice(&frame)).bench_local(|| machine.handle_alone(&frame));
    }

    #[divan::bench(args = [2, 5000])]
    fn modern(bencher: Bencher<'_, '_>, tools: usize) {
        run(bencher, Machine::new(tools, true), &modern_call(), FOX);
    }

    #[divan::bench]
    fn modern_reordered(bencher: Bencher<'_, '_>) {
        run(bencher, Machine::new(2, true), &modern_call_reordered(), FOX);
    }

    #[divan::bench]
    fn legacy_bare_scan(bencher: Bencher<'_, '_>) {
        bare(bencher, &legacy_call());
    }

    #[divan::bench(args = [2, 5000])]
    fn legacy(bencher: Bencher<'_, '_>, tools: usize) {
        run(bencher, Machine::new(tools, false), &legacy_call(), FOX);
    }
}

#[divan::bench_group(name = "call_of_256_KiB", max_time = 2)]
mod large {
    use super::*;

    #[divan::bench]
    fn bare_scan(bencher: Bencher<'_, '_>) {
        bare(bencher, &large_call(256 << 10));
    }

    #[divan::bench]
    fn modern(bencher: Bencher<'_, '_>) {
        run(bencher, Machine::new(2, true), &large_call(256 << 10), FOX);
    }
}

#[divan::bench_group(name = "list_of_100", max_time = 1)]
mod lists {
    use super::*;

    #[divan::bench]
    fn modern(bencher: Bencher<'_, '_>) {
        run(bencher, Machine::new(100, true), &list(true), "tool-99");
    }

    #[divan::bench]
    fn legacy(bencher: Bencher<'_, '_>) {
        run(bencher, Machine::new(100, false), &list(false), "tool-99");
    }
}
