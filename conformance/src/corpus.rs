//! The exchanges that are part of the binary, or those of a folder in their place.

use std::path::Path;
use std::sync::OnceLock;

use crate::exchange::{Exchange, ParseError, parse};
use crate::record;

include!(concat!(env!("OUT_DIR"), "/corpus.rs"));

type File = (&'static str, &'static str);

/// What stands in place of the embedded exchanges.
static OWN: OnceLock<Vec<File>> = OnceLock::new();

/// Takes the exchanges of a folder in place of those that are part of the binary, once and for all. A recording among
/// them is two: see [`record::halves`].
///
/// # Errors
///
/// Names the folder or file that cannot be read, or says that there is none.
pub fn take_folder(root: &Path) -> Result<(), String> {
    let problem = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let mut files: Vec<File> = Vec::new();
    for area in std::fs::read_dir(root).map_err(|error| problem(root, error))? {
        let area = area.map_err(|error| problem(root, error))?.path();
        if !area.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(&area).map_err(|error| problem(&area, error))? {
            let path = file.map_err(|error| problem(&area, error))?.path();
            let name = path.strip_prefix(root).unwrap_or(&path).with_extension("");
            let parts: Vec<_> = name.components().map(|part| part.as_os_str().to_string_lossy()).collect();
            if path.extension().is_some_and(|ending| ending == "jsonl") {
                let text = std::fs::read_to_string(&path).map_err(|error| problem(&path, error))?;
                let halves = record::halves(&text);
                match halves.map_err(|problem| format!("{}: {problem}", path.display()))? {
                    None => files.push(kept(parts.join("/"), text)),
                    Some(halves) => {
                        for (name, text) in [halves.server, halves.client] {
                            files.push(kept(name, text));
                        }
                    }
                }
            }
        }
    }
    if files.is_empty() {
        return Err(format!("{}: expected AREA/NAME.jsonl in it, got none", root.display()));
    }
    files.sort_unstable();
    OWN.set(files).map_err(|_| "a folder of exchanges was taken already".to_owned())
}

/// They are needed to the end of the program.
fn kept(name: String, text: String) -> File {
    (Box::leak(name.into_boxed_str()), Box::leak(text.into_boxed_str()))
}

fn files() -> &'static [File] {
    OWN.get().map_or(FILES, Vec::as_slice)
}

/// The names of all exchanges, sorted.
pub fn names() -> impl Iterator<Item = &'static str> {
    files().iter().map(|(name, _)| *name)
}

/// Parses the exchange with this name.
///
/// # Errors
///
/// Names the file, the line and what was expected. The tests hold the committed exchanges to parsing.
pub fn load(name: &str) -> Option<Result<Exchange, ParseError>> {
    let index = files().binary_search_by_key(&name, |(name, _)| name).ok()?;
    let (name, text) = files()[index];
    Some(parse(&format!("exchanges/{name}.jsonl"), text))
}

/// The text of the exchange with this name.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    let index = files().binary_search_by_key(&name, |(name, _)| name).ok()?;
    Some(files()[index].1)
}
