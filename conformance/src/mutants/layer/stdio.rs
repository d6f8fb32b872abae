//! The layer over the pipes of the fixture: a message a line.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::message::{is_request, key};
use super::{Memory, Passage, Plant, Turn};

/// Longer than anyone waits for a server to end.
const STAYS: Duration = Duration::from_secs(60);

/// What happens at the end of the input.
#[derive(Clone, Copy)]
pub(super) enum Ending {
    /// The fixture is killed at once, whatever it owes.
    Abrupt,
    /// The process stays.
    Stays,
    /// It ends as it should, with another exit code.
    Code(i32),
}

struct Layer {
    plant: Plant,
    memory: Mutex<Memory>,
    /// What the fixture reads; gone once its input has ended.
    input: Mutex<Option<ChildStdin>>,
}

/// Serves until the fixture ends, then ends as it did.
pub(super) fn serve(plant: Plant, fixture: &mut Command) -> Result<(), String> {
    let mut child = fixture.spawn().map_err(|error| format!("cannot start the fixture: {error}"))?;
    let output = child.stdout.take().ok_or("the fixture has no output")?;
    let layer = Arc::new(Layer { plant, memory: Mutex::default(), input: Mutex::new(child.stdin.take()) });
    let child = Arc::new(Mutex::new(child));
    let (reading, killing) = (Arc::clone(&layer), Arc::clone(&child));
    thread::spawn(move || reading.up(&killing));
    layer.down(BufReader::new(output));
    let code = lock(&child).wait().map_err(|error| error.to_string())?.code().unwrap_or(0);
    match plant {
        Plant::End(Ending::Stays) => thread::sleep(STAYS),
        Plant::End(Ending::Code(code)) => std::process::exit(code),
        _ => {}
    }
    if code == 0 { Ok(()) } else { std::process::exit(code) }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Layer {
    /// What the client writes, to its end.
    fn up(&self, child: &Mutex<Child>) {
        let mut input = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            match input.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => break,
                Ok(_) => self.heard(line),
            }
        }
        if matches!(self.plant, Plant::End(Ending::Abrupt)) {
            let _ = lock(child).kill();
        }
        *lock(&self.input) = None;
    }

    fn heard(&self, mut line: Vec<u8>) {
        let mut memory = lock(&self.memory);
        if let Plant::Line(fault) = self.plant {
            match fault(&mut memory, &mut line) {
                Passage::Passes => {}
                Passage::Lost => return,
                Passage::Fatal(code) => std::process::exit(code),
            }
        }
        let Ok(message) = serde_json::from_slice::<Value>(&line) else {
            drop(memory);
            return self.write_up(&line);
        };
        if is_request(&message) {
            memory.pending.insert(key(&message), message.clone());
        }
        let (Plant::Up(fault) | Plant::Both(fault, _)) = self.plant else {
            drop(memory);
            return self.write_up(&line);
        };
        let mut turn = Turn::new(&mut memory, Value::Null);
        fault(&mut turn, message.clone());
        let (onward, back) = (turn.onward, turn.back);
        // Under the lock, so that nothing overtakes it.
        if onward == [message] {
            self.write_up(&line);
        } else {
            onward.iter().for_each(|message| self.write_up(&line_of(message)));
        }
        back.iter().for_each(|message| write_down(&line_of(message)));
        drop(memory);
    }

    /// What the fixture writes, to its end.
    fn down(&self, mut output: impl BufRead) {
        loop {
            let mut line = Vec::new();
            match output.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => self.said(line),
            }
        }
    }

    fn said(&self, mut line: Vec<u8>) {
        let mut memory = lock(&self.memory);
        if let Plant::Output(fault) = self.plant {
            fault(&mut memory, &mut line);
            return write_down(&line);
        }
        let (Plant::Down(fault) | Plant::Both(_, fault)) = self.plant else {
            drop(memory);
            return write_down(&line);
        };
        let Ok(message) = serde_json::from_slice::<Value>(&line) else { return write_down(&line) };
        let answers = message.get("method").is_none();
        let request = if answers { memory.pending.remove(&key(&message)) } else { None };
        let mut turn = Turn::new(&mut memory, request.unwrap_or_default());
        fault(&mut turn, message.clone());
        let (onward, back) = (turn.onward, turn.back);
        if onward == [message] {
            write_down(&line);
        } else {
            onward.iter().for_each(|message| write_down(&line_of(message)));
        }
        back.iter().for_each(|message| self.write_up(&line_of(message)));
        drop(memory);
    }

    fn write_up(&self, line: &[u8]) {
        let mut input = lock(&self.input);
        // A fixture that has ended is noticed by the end of its output.
        if let Some(input) = input.as_mut() {
            let _ = input.write_all(line).and_then(|()| input.flush());
        }
    }
}

fn write_down(line: &[u8]) {
    let mut output = io::stdout().lock();
    let _ = output.write_all(line).and_then(|()| output.flush());
}

fn line_of(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}
