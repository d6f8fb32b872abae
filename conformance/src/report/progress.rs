//! Lines that are told one by one, below them how many there are still to come.

use std::io::{self, IsTerminal, Write};

use indicatif::{ProgressBar, ProgressStyle};

/// Tells lines as they come: with a bar where a person looks.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    /// For so many lines on standard output.
    #[must_use]
    pub fn new(lines: usize) -> Self {
        let person = io::stdout().is_terminal() && io::stderr().is_terminal();
        let bar = person.then(|| {
            let bar = ProgressBar::new(lines as u64);
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self { bar }
    }

    /// Tells one.
    pub fn line(&mut self, line: &str) {
        match &self.bar {
            Some(bar) => {
                bar.inc(1);
                bar.suspend(|| print(line));
            }
            None => print(line),
        }
    }

    /// Tells the last.
    pub fn finish(self, line: &str) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        print(line);
    }
}

/// A reader such as `head` may have seen enough.
fn print(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}
