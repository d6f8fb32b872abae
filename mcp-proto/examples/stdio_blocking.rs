//! The smallest driver: one thread that reads, handles and writes, over stdin and stdout.
//!
//! ```sh
//! cargo run -p mcp-proto --example stdio_blocking
//! ```
//!
//! One request after the other. A cancellation is read only when the request before it is answered, and
//! then it means nothing: that is correct, but useless for long work. `std_threads` shows the next step.
#![allow(clippy::disallowed_methods, clippy::print_stderr)] // a driver owns the clock and the terminal

mod tools;

use std::io::{self, Read, Write};
use std::time;

use mcp_proto::codec::{Frame, LineBuffer};
use mcp_proto::model::CallToolResult;
use mcp_proto::server::{Call, Channel, Connection, Delivery, Event, Incoming, Progress};
use mcp_proto::time::Instant;

fn main() -> io::Result<()> {
    serve(io::stdin().lock(), io::stdout().lock())
}

/// Serves one stream until its end.
pub(crate) fn serve(mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    let start = time::Instant::now();
    let config = tools::config();
    let mut lines = LineBuffer::new(config.limits.max_message);
    let mut server = Connection::new(config);
    let mut out = Vec::new();
    loop {
        // Read straight into the line buffer. An interrupted read is no end.
        let read = match input.read(lines.spare(8 << 10)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        lines.commit(read);
        let ended = read == 0;
        while let Some(frame) = if ended { lines.finish() } else { lines.next_frame() } {
            let now = Instant::from_origin(start.elapsed());
            let event = match frame {
                Frame::Line(line) => server.handle(line, now, &mut out),
                Frame::TooLong { .. } => Some(server.refuse_oversized(&mut out)),
            };
            match event {
                // Only 2025-03-26 has these; the answers leave as one array when the last is there.
                Some(Event::Batch(members)) => {
                    for member in members {
                        if let Some(event) = server.handle_member(member, now, &mut out) {
                            handle(&mut server, event, &mut out, &mut output)?;
                        }
                    }
                }
                Some(event) => handle(&mut server, event, &mut out, &mut output)?,
                None => {}
            }
            // The write blocks while the client does not read, and so nothing more is read from it: that
            // is all the backpressure this driver needs.
            flush(&mut out, &mut output)?;
        }
        if ended {
            // All that was accepted is answered already. Subscriptions would get their result here.
            server.end_of_input(&mut out);
            return flush(&mut out, &mut output);
        }
    }
}

fn flush(out: &mut Vec<u8>, output: &mut impl Write) -> io::Result<()> {
    output.write_all(out)?;
    out.clear();
    output.flush()
}

fn handle(
    server: &mut Connection,
    event: Event<'_>,
    out: &mut Vec<u8>,
    output: &mut impl Write,
) -> io::Result<()> {
    match event {
        Event::Request(incoming) => request(server, incoming, out, output),
        // stdout belongs to the protocol; stderr is free.
        Event::Rejected(violation) => {
            eprintln!("refused: {}", violation.error);
            Ok(())
        }
        // This server asks nothing and lets nothing wait, so the rest is for those who do.
        _ => Ok(()),
    }
}

fn request(
    server: &mut Connection,
    incoming: Incoming<'_>,
    out: &mut Vec<u8>,
    output: &mut impl Write,
) -> io::Result<()> {
    let version = incoming.version;
    // Whether an answer was written or came too late makes no difference here.
    let _: Delivery = match incoming.typed() {
        Ok(Call::ListTools(pending, params)) => match tools::list(params.cursor.as_deref()) {
            Ok(result) => server.respond(pending, &result, out),
            Err(error) => server.fail(pending, &error, out),
        },
        Ok(Call::CallTool(pending, params)) => match tools::call(version, &params) {
            Ok(tools::Work::Done(result)) => server.respond(pending, &result, out),
            Ok(tools::Work::Slow { steps }) => {
                for step in 1..=steps {
                    std::thread::sleep(tools::STEP);
                    // Discarded unless the client asked for progress.
                    let progress = Progress::new(step.into()).of(steps.into());
                    if server.progress(&pending, progress, out).is_written() {
                        flush(out, output)?;
                    }
                }
                server.respond(pending, &CallToolResult::text(format!("{steps} steps")), out)
            }
            Err(error) => server.fail(pending, &error, out),
        },
        // Nothing that changes is offered, so nothing is honored; the subscription is open all the same.
        Ok(Call::Listen(pending, _)) => server.acknowledge(pending, &Default::default(), out),
        Ok(Call::Other(incoming)) => server.refuse(incoming.not_found(), out),
        // The params did not fit the method.
        Err(refusal) => server.refuse(refusal, out),
        // Methods that need a capability this server lacks are refused before they get here. Should one
        // arrive, its right to answer is dropped with it: a driver that keeps keys would `abandon` it.
        Ok(_) => Delivery::Discarded,
    };
    Ok(())
}
