//! The server program that a client over stdio starts: it carries bytes between its pipes and the suite.
//!
//! To the suite go the bytes of the input as they are; the end of the input is the end of that direction. From
//! the suite come frames of a kind, a length of four bytes, and so many bytes.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;

/// Bytes for the standard output.
pub(super) const OUTPUT: u8 = b'o';
/// Bytes for the standard error.
pub(super) const DIAGNOSTIC: u8 = b'e';
/// The exit code, one byte.
pub(super) const EXIT: u8 = b'x';

/// Carries bytes until the suite says how to exit. The exit code.
///
/// # Errors
///
/// The suite cannot be reached.
pub fn relay(address: SocketAddr) -> io::Result<u8> {
    let mut suite = TcpStream::connect(address)?;
    suite.set_nodelay(true)?;
    let mut up = suite.try_clone()?;
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        let mut buffer = vec![0; 64 << 10];
        while let Ok(read) = input.read(&mut buffer) {
            if read == 0 || up.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        let _ = up.shutdown(Shutdown::Write);
    });
    loop {
        let mut head = [0; 5];
        if suite.read_exact(&mut head).is_err() {
            return Ok(0);
        }
        let [kind, length @ ..] = head;
        let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
        if suite.read_exact(&mut bytes).is_err() {
            return Ok(0);
        }
        let written = match kind {
            OUTPUT => {
                let mut output = io::stdout().lock();
                output.write_all(&bytes).and_then(|()| output.flush())
            }
            DIAGNOSTIC => io::stderr().lock().write_all(&bytes),
            _ => return Ok(bytes.first().copied().unwrap_or(0)),
        };
        // The client may have gone; the suite sees that the input has ended.
        if written.is_err() {
            return Ok(0);
        }
    }
}
