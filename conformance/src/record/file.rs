//! The file of a recording: whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Where a recording goes.
#[derive(Debug)]
pub(super) struct Target {
    path: PathBuf,
    name: String,
    /// One at a time, so that the latest text stays.
    turn: Mutex<()>,
}

impl Target {
    /// The file at this path, which need not be there.
    ///
    /// # Errors
    ///
    /// No file can be written there.
    pub(super) fn at(path: &Path) -> Result<Self, String> {
        let problem = |why: &str| format!("`--out {}`: cannot be written: {why}", path.display());
        if path.is_dir() {
            return Err(problem("it is a folder"));
        }
        let stem = path.file_stem().ok_or_else(|| problem("expected the name of a file"))?;
        let folder = path.parent().and_then(Path::file_name);
        let folder = folder.map_or_else(|| "recordings".into(), |folder| folder.to_string_lossy());
        let name = format!("{folder}/{}", stem.to_string_lossy());
        let target = Self { path: path.to_owned(), name, turn: Mutex::default() };
        let trial = target.beside();
        File::create_new(&trial).map_err(|error| problem(&error.to_string()))?;
        fs::remove_file(&trial).map_err(|error| problem(&error.to_string()))?;
        Ok(target)
    }

    /// Puts a text in place of what is there. It is made when it is written, of the name of the recording: `FOLDER/FILE`
    /// without its ending.
    ///
    /// # Errors
    ///
    /// It cannot be written any more.
    pub(super) fn write(&self, text: impl FnOnce(&str) -> String) -> Result<(), String> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let text = text(&self.name);
        let new = self.beside();
        let done = File::create(&new)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&new, &self.path));
        done.map_err(|error| {
            let _ = fs::remove_file(&new);
            format!("{}: cannot be written: {error}", self.path.display())
        })
    }

    /// A file beside it that nobody else uses.
    fn beside(&self) -> PathBuf {
        let mut name = OsString::from(".");
        name.push(self.path.file_name().unwrap_or_default());
        name.push(format!(".{}", std::process::id()));
        self.path.with_file_name(name)
    }
}
