//! What a child knows of the environment of this process.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::process::Command;

/// What programs need to find their way, and nothing that is likely to be a secret. The official clients pass
/// on the first line of each list; a locale, a time zone and a folder for temporary files do no harm.
#[cfg(not(windows))]
const SAFE: &[&str] = &[
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "USER",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_NUMERIC",
    "LC_TIME",
    "TMPDIR",
    "TZ",
];
#[cfg(windows)]
const SAFE: &[&str] = &[
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PROCESSOR_ARCHITECTURE",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
    "PROGRAMFILES",
    "COMSPEC",
    "PATHEXT",
    "PROGRAMDATA",
    "PROGRAMFILES(X86)",
    "TMP",
    "WINDIR",
];

/// The environment of a child: what it inherits, then what is changed.
#[derive(Clone, Default)]
pub(super) struct Environment {
    inherited: Inherited,
    /// `None`: the variable is not there.
    changes: BTreeMap<OsString, Option<OsString>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum Inherited {
    #[default]
    Safe,
    All,
    Nothing,
}

impl Environment {
    pub(super) fn inherit(&mut self, inherited: Inherited) {
        self.inherited = inherited;
    }

    pub(super) fn clear(&mut self) {
        self.inherited = Inherited::Nothing;
        self.changes.clear();
    }

    pub(super) fn change(&mut self, name: &OsStr, value: Option<&OsStr>) {
        self.changes.insert(name.into(), value.map(Into::into));
    }

    /// Gives `command` this environment, where `ours` is that of this process.
    pub(super) fn apply(&self, command: &mut Command, ours: impl Iterator<Item = (OsString, OsString)>) {
        command.env_clear();
        for (name, value) in ours {
            if self.passes(&name, &value) {
                command.env(name, value);
            }
        }
        for (name, value) in &self.changes {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
    }

    fn passes(&self, name: &OsStr, value: &OsStr) -> bool {
        match self.inherited {
            Inherited::Nothing => false,
            Inherited::All => true,
            Inherited::Safe => {
                let is_safe = |known: &&str| match cfg!(windows) {
                    true => name.eq_ignore_ascii_case(known),
                    false => name == *known,
                };
                // A function that a shell has exported: code, which no server needs.
                SAFE.iter().any(is_safe) && !value.as_encoded_bytes().starts_with(b"()")
            }
        }
    }
}

/// Names only: values may be secrets.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment")
            .field("inherited", &self.inherited)
            .field("changes", &self.changes.keys())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(environment: &Environment) -> Vec<(String, String)> {
        let ours = [
            ("PATH", "/bin"),
            ("HOME", "/root"),
            ("SECRET_TOKEN", "x"),
            ("SHELL", "() { :; }"),
            ("TZ", "UTC"),
        ];
        let mut command = Command::new("any");
        environment.apply(&mut command, ours.into_iter().map(|(name, value)| (name.into(), value.into())));
        let text = |text: &OsStr| text.to_str().unwrap().to_owned();
        command.get_envs().filter_map(|(name, value)| Some((text(name), text(value?)))).collect()
    }

    fn names(environment: &Environment) -> Vec<String> {
        given(environment).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    #[cfg(not(windows))]
    fn a_child_gets_what_is_safe_and_what_is_said() {
        let mut environment = Environment::default();
        assert_eq!(names(&environment), ["HOME", "PATH", "TZ"]);
        environment.change("SECRET_TOKEN".as_ref(), Some("mine".as_ref()));
        environment.change("HOME".as_ref(), None);
        assert_eq!(names(&environment), ["PATH", "SECRET_TOKEN", "TZ"]);
        assert_eq!(given(&environment)[1].1, "mine");
        assert!(!format!("{environment:?}").contains("mine"));
        environment.inherit(Inherited::All);
        assert_eq!(names(&environment), ["PATH", "SECRET_TOKEN", "SHELL", "TZ"]);
        environment.clear();
        assert_eq!(names(&environment), [""; 0]);
        environment.change("A".as_ref(), Some("b".as_ref()));
        assert_eq!(given(&environment), [("A".into(), "b".into())]);
    }
}
