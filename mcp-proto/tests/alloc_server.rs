//! How often one request through the machine allocates, once its buffers have grown.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../benches/common/mod.rs"]
mod common;

use allocation_counter::measure;
use common::{Machine, large_call, legacy_call, list, modern_call, modern_call_reordered};

/// How many allocations one more request makes, from the frame to the answer.
fn count(tools: usize, modern: bool, frame: &[u8], part: &str) -> u64 {
    let mut machine = Machine::new(tools, modern);
    for _ in 0..3 {
        machine.handle(frame);
        machine.assert_answered(part);
    }
    measure(|| machine.handle(frame)).count_total
}

#[test]
fn the_counter_counts() {
    assert!(measure(|| drop(Vec::<u8>::with_capacity(10))).count_total > 0);
}

/// Nothing is copied out of a frame, whatever the order of its members and however many tools there are.
#[test]
fn a_call_allocates_nothing_and_a_legacy_call_twice() {
    for tools in [2, 5000] {
        for frame in [modern_call(), modern_call_reordered(), large_call(256 << 10)] {
            assert_eq!(count(tools, true, &frame, "brown fox"), 0, "{tools} tools, {} bytes", frame.len());
        }
        // A call that may be parked behind questions to a legacy client keeps its params: a place and a text.
        assert_eq!(count(tools, false, &legacy_call(), "brown fox"), 2, "{tools} tools, legacy");
    }
}

/// Nesting is walked without a stack of its own.
#[test]
fn nested_arguments_allocate_nothing() {
    let deep = format!("{}1{}", "[{\"a\":".repeat(20), "}]".repeat(20));
    let frame =
        String::from_utf8(modern_call()).unwrap().replace("\"count\":3", &format!("\"count\":{deep}"));
    assert!(frame.contains(&deep));
    assert_eq!(count(2, true, frame.as_bytes(), "brown fox"), 0);
}

#[test]
fn a_list_of_a_hundred_tools_allocates_nothing() {
    assert_eq!(count(100, true, &list(true), "tool-99"), 0);
    assert_eq!(count(100, false, &list(false), "tool-99"), 0);
}
