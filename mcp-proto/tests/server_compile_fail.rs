//! What the types forbid. Each file in `compile_fail/` is one wrong program; beside it stands what the
//! compiler says, so that the reason is the one meant.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test says no by panicking, and why it is skipped

/// The messages are those of one compiler: with another one their words may differ.
const COMPILER: &str = "rustc 1.95.";

#[test]
fn wrong_programs_do_not_compile() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = std::process::Command::new(rustc).arg("--version").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    if !version.starts_with(COMPILER) {
        println!("skipped: expected {COMPILER}, found {version}");
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
