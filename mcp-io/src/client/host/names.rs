//! Names of tools that cannot collide.

use std::collections::HashSet;

/// Most characters of a name, as common models have it.
const MOST: usize = 64;
/// Most characters of it that stand for the server.
const MOST_ALIAS: usize = 24;

/// The part of an offered name that stands for a server.
pub(super) fn alias(name: &str, taken: &HashSet<&str>) -> String {
    let fitting = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let cut: String = name.chars().take(MOST_ALIAS).map(fitting).collect();
    let cut = if cut.is_empty() { "server".into() } else { cut };
    let numbered = (2..).map(|number: usize| format!("{cut}-{number}"));
    std::iter::once(cut.clone()).chain(numbered).find(|alias| !taken.contains(&**alias)).unwrap_or_default()
}

/// The part of an offered name that stands for a tool.
pub(super) fn within(alias: &str, tool: &str) -> String {
    let room = MOST.saturating_sub(alias.len() + 2).max(24);
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if tool.len() <= room && !tool.is_empty() && tool.chars().all(fits) {
        return tool.to_owned();
    }
    let kept = tool.chars().take(room - 17).map(|c| if fits(c) { c } else { '-' });
    format!("{}-{:016x}", kept.collect::<String>(), digest(tool))
}

/// FNV-1a. Names that a server makes to collide are that server's own.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_do_not_collide() {
        let mut taken = HashSet::new();
        let names = ["a_b", "a-b", "a.b", "", "server", &"x".repeat(100)];
        let aliases: Vec<_> = names
            .iter()
            .map(|name| {
                let alias = alias(name, &taken.iter().map(String::as_str).collect());
                taken.insert(alias.clone());
                alias
            })
            .collect();
        assert_eq!(aliases[..5], ["a-b", "a-b-2", "a-b-3", "server", "server-2"]);
        assert_eq!(aliases[5].len(), 24);
        assert_eq!(within("a-b", "read__file-2"), "read__file-2");
        let odd = ["a.b", "a/b", "", "é", &"t".repeat(100), &("t".repeat(100) + "u")];
        let mut seen = HashSet::new();
        for tool in odd {
            for alias in [&*aliases[0], &*aliases[5]] {
                let name = format!("{alias}__{}", within(alias, tool));
                assert!(name.len() <= MOST, "{name}");
                assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)), "{name}");
                assert_eq!(name.split_once("__").unwrap().0, alias);
                assert!(seen.insert(name));
            }
        }
    }
}
