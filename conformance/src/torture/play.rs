//! Playing the text of scripts: one after the other on a connection, or one on an instance of its own.

use std::time::Duration;

use crate::exchange::{Exchange, parse};
use crate::http::Mirrors;
use crate::replay::{Entry, Finding, Replay, Session, drive, drive_through};
use crate::revision::Revision;
use crate::schema::Schemas;
use crate::subject::{Connection, Declared, Subject};

/// Plays scripts against one subject in one revision.
#[derive(Debug)]
pub(super) struct Player<'p> {
    pub(super) subject: &'p dyn Subject,
    pub(super) revision: Revision,
    mirrors: Mirrors,
    startup: Duration,
    patience: Option<Duration>,
    schemas: Option<&'p Schemas>,
}

/// What came of a script on an instance of its own.
#[derive(Debug, Default)]
pub(super) struct Played {
    /// The gravest first.
    pub(super) findings: Vec<Finding>,
    pub(super) transcript: Vec<Entry>,
}

/// How far a chain came.
#[derive(Debug)]
pub(super) struct Chained {
    /// So many scripts were played, the last of which found something if there is a finding.
    pub(super) played: usize,
    pub(super) findings: Vec<Finding>,
    /// Whether the instance cannot be played on, though nothing was found.
    pub(super) spent: bool,
}

impl<'p> Player<'p> {
    pub(super) fn new(
        subject: &'p dyn Subject,
        revision: Revision,
        declared: &Declared,
        patience: Option<Duration>,
        schemas: Option<&'p Schemas>,
    ) -> Self {
        // The start that was seen, with room for a machine that has more to do now.
        let startup = (declared.startup * 5 + Duration::from_secs(5)).min(Duration::from_secs(120));
        Self { subject, revision, mirrors: declared.mirrors(), startup, patience, schemas }
    }

    /// Plays one text on an instance that nothing was played on before.
    pub(super) fn alone(&self, text: &str, patience: Option<Duration>) -> Result<Played, String> {
        let exchange = read(text)?;
        let replay = Replay::new(&exchange, self.revision, self.subject.transport(), self.schemas)?;
        let replay = self.prepare(replay, patience.or(self.patience));
        let link = self.subject.start(self.revision).map_err(|error| error.to_string())?;
        let (mut findings, transcript) = drive(replay, link);
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
        Ok(Played { findings, transcript })
    }

    /// Plays texts one after the other on one instance, as long as nothing is found and there is time.
    pub(super) fn chain(
        &self,
        texts: &[String],
        patience: Option<Duration>,
        more: impl Fn() -> bool,
    ) -> Result<Chained, String> {
        let link = self.subject.start(self.revision).map_err(|error| error.to_string())?;
        let mut connection = Connection::open(link);
        let mut session: Option<Session> = None;
        for (index, text) in texts.iter().enumerate() {
            if index > 0 && !more() {
                return Ok(Chained { played: index, findings: Vec::new(), spent: false });
            }
            let exchange = read(text)?;
            let (revision, transport) = (self.revision, self.subject.transport());
            let replay = match session.take() {
                None => Replay::new(&exchange, revision, transport, self.schemas)?,
                Some(session) => Replay::resume(&exchange, revision, transport, self.schemas, session)?,
            };
            let replay = self.prepare(replay, patience.or(self.patience));
            let (next, findings) = drive_through(replay, &mut connection, index + 1 == texts.len());
            if next.is_none() || !findings.is_empty() {
                return Ok(Chained { played: index + 1, spent: findings.is_empty(), findings });
            }
            session = next;
        }
        Ok(Chained { played: texts.len(), findings: Vec::new(), spent: false })
    }

    fn prepare<'e>(&self, replay: Replay<'e>, patience: Option<Duration>) -> Replay<'e> {
        let replay = match patience {
            Some(patience) => replay.with_patience(patience),
            None => replay,
        };
        replay.with_startup(self.startup).with_mirrors(self.mirrors.clone())
    }
}

pub(super) fn read(text: &str) -> Result<Exchange, String> {
    parse("torture", text).map_err(|error| error.to_string())
}
