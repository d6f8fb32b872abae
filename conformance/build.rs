//! Puts the exchanges into the binary: one table of names and texts, sorted by name.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or(io::ErrorKind::NotFound)?).join("exchanges");
    println!("cargo::rerun-if-changed=exchanges");
    let mut files = Vec::new();
    for area in folders(&root)? {
        println!("cargo::rerun-if-changed={}", area.display());
        for entry in fs::read_dir(&area)? {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == "jsonl") {
                println!("cargo::rerun-if-changed={}", path.display());
                files.push((name(&root, &path), path));
            }
        }
    }
    files.sort();
    let mut table = String::from("static FILES: &[(&str, &str)] = &[\n");
    for (name, path) in files {
        table.push_str(&format!("    ({name:?}, include_str!({:?})),\n", path.display().to_string()));
    }
    table.push_str("];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    fs::write(out.join("corpus.rs"), table)
}

fn folders(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        if path.is_dir() {
            folders.push(path);
        }
    }
    Ok(folders)
}

/// `area/what-it-shows`, with `/` on every system.
fn name(root: &Path, path: &Path) -> String {
    let relative = path.strip_prefix(root).unwrap_or(path).with_extension("");
    relative.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}
