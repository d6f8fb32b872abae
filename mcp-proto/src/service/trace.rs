//! A span for each call, in which its handler runs.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use tracing::Span;
use tracing::field::Empty;

use super::call::{BoxFuture, Call};
use super::error::Reply;
use crate::model::Meta;
use crate::model::meta::key;
use crate::model::method::ServerMethod;
use crate::rpc::str_from_json;

/// Longest `tracestate` and `baggage`; each says how it is cut, but a cut one says nothing.
const MOST: usize = 8 << 10;

/// Runs the handler in a span named `mcp`. What the client sent is in its fields: `mcp.method.name`,
/// `mcp.target` (the tool, prompt or URI), `mcp.protocol.version`, and the trace that the call belongs to as
/// `traceparent`, `tracestate` and `baggage`. Arguments are left out. [spec: basic#meta]
pub(super) fn within(
    call: &Arc<Call>,
    method: Option<ServerMethod>,
    target: &str,
    future: BoxFuture<Reply>,
) -> BoxFuture<Reply> {
    // Of a method of one's own it is the name.
    let (method, target) = method.map_or((target, ""), |method| (method.as_str(), target));
    let span = tracing::info_span!(
        target: "mcp_proto",
        "mcp",
        otel.kind = "server",
        otel.name = Empty,
        mcp.method.name = method,
        mcp.target = target,
        mcp.protocol.version = call.version.as_str(),
        traceparent = Empty,
        tracestate = Empty,
        baggage = Empty,
    );
    if span.is_disabled() {
        return future;
    }
    if target.is_empty() {
        span.record("otel.name", method);
    } else {
        span.record("otel.name", tracing::field::display(format_args!("{method} {target}")));
    }
    if let Some(parent) = text(&call.meta, key::TRACEPARENT).filter(|parent| is_parent(parent)) {
        span.record("traceparent", &*parent);
        // Without a parent it has no meaning. [W3C Trace Context, section 3.3]
        if let Some(state) = text(&call.meta, key::TRACESTATE) {
            span.record("tracestate", &*state);
        }
    }
    if let Some(baggage) = text(&call.meta, key::BAGGAGE) {
        span.record("baggage", &*baggage);
    }
    Box::pin(Spanned { span, future })
}

fn text<'m>(meta: &'m Meta, key: &str) -> Option<Cow<'m, str>> {
    let text = str_from_json(meta.get(key)?.get())?;
    // What goes into logs splits no line.
    (text.len() <= MOST && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))).then_some(text)
}

/// `version-trace-parent-flags`; a version after `00` may say more. [W3C Trace Context, section 3.2]
fn is_parent(text: &str) -> bool {
    let hex = |part: &str, len: usize| {
        part.len() == len && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let named = |part: &str, len: usize| hex(part, len) && part.bytes().any(|byte| byte != b'0');
    let mut parts = text.splitn(5, '-');
    let mut next = || parts.next().unwrap_or_default();
    let (version, trace, parent, flags) = (next(), next(), next(), next());
    hex(version, 2)
        && version != "ff"
        && named(trace, 32)
        && named(parent, 16)
        && hex(flags, 2)
        && (version != "00" || parts.next().is_none())
}

struct Spanned {
    span: Span,
    future: BoxFuture<Reply>,
}

impl Future for Spanned {
    type Output = Reply;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Reply> {
        let this = self.get_mut();
        let _entered = this.span.enter();
        this.future.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_one_as_w3c_has_it() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert!(is_parent(good));
        assert!(is_parent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"));
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        ] {
            assert!(!is_parent(bad), "{bad}");
        }
    }
}
