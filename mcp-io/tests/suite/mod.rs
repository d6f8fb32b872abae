//! What every adapter has to prove. Included by the tests of each, which bring `crate::rt`:
//!
//! - `RUNTIME`: the runtime for [`mcp_io::ByteStream::new`];
//! - `PROGRAMS`: how the names of the adapter's example programs begin;
//! - `run(future)`: runs it to its end on the runtime, and panics if it hangs;
//! - `spawn(future)`: runs it beside; what comes back is its result;
//! - `unblock(function)`: calls it where blocking is allowed;
//! - `pause()`: lets others run; `eventually(condition)`: until it holds;
//! - `unix(path)`, `tcp()`: a listening socket as a transport, the latter with its address;
//! - `Http`, `http()`: HTTP as a transport, at a free port of this machine.

mod by_hand;
mod child;
pub(crate) mod client;
mod connect;
mod faults;
mod host;
#[cfg(feature = "http")]
mod http;
mod listen;
mod programs;
mod restart;
#[allow(dead_code, clippy::print_stdout)] // dead is the programs' side of it
pub(crate) mod service;
mod streams;
