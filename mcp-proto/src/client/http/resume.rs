//! When to come back to a stream that broke: not before the server wants it, and not for ever.
//! [spec: 2025-11-25 basic/transports#resumability-and-redelivery]

use alloc::boxed::Box;
use core::time::Duration;

use crate::time::Instant;

/// How a client comes back to streams of legacy servers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reconnect {
    /// How often in a row, as long as nothing new comes. 5; 0 = never.
    pub max_tries: u32,
    /// How long to wait the first time where the server does not say; it doubles with each try. 1 second.
    pub wait: Duration,
    /// The longest of these waits; one that the server asks for may be longer. 30 seconds.
    pub max_wait: Duration,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self { max_tries: 5, wait: Duration::from_secs(1), max_wait: Duration::from_secs(30) }
    }
}

/// The shortest wait: a server that says `retry: 0` is not asked in a loop.
const LEAST: Duration = Duration::from_millis(20);
/// A stream that lasted so long was one, whatever it brought.
const LASTED: Duration = Duration::from_secs(30);

/// What is known of one stream over all the responses that carried it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Resume {
    last_event_id: Option<Box<str>>,
    retry: Option<Duration>,
    /// Since something new came.
    tries: u32,
    opened: Option<Instant>,
    /// Whether a response ever began.
    has_begun: bool,
}

impl Resume {
    /// A response began.
    pub(crate) const fn opened(&mut self, now: Instant) {
        self.opened = Some(now);
        self.has_begun = true;
    }

    /// Whether there was a stream at all.
    pub(crate) const fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// The id to go on from.
    pub(crate) fn last_event_id(&self) -> Option<&str> {
        self.last_event_id.as_deref()
    }

    /// The response ended, or there was none. When to ask again; `None` = no more.
    ///
    /// `last_event_id` is what the response ended with, empty if it had none. LC-HTTP-01, LC-HTTP-02
    pub(crate) fn broke(
        &mut self,
        last_event_id: &str,
        retry: Option<Duration>,
        settings: &Reconnect,
        now: Instant,
    ) -> Option<Instant> {
        let is_new = !last_event_id.is_empty() && self.last_event_id.as_deref() != Some(last_event_id);
        if is_new {
            self.last_event_id = Some(last_event_id.into());
        }
        self.retry = retry.or(self.retry);
        if is_new || self.opened.take().is_some_and(|opened| now - opened >= LASTED) {
            self.tries = 0;
        }
        if self.tries >= settings.max_tries {
            return None;
        }
        let doubled = 1_u32.checked_shl(self.tries).and_then(|times| settings.wait.checked_mul(times));
        let own = doubled.unwrap_or(Duration::MAX).min(settings.max_wait);
        let wait = match self.retry {
            Some(retry) if self.tries == 0 => retry,
            Some(retry) => retry.max(own),
            None => own,
        };
        self.tries += 1;
        Some(now + wait.max(LEAST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(millis))
    }

    fn millis(count: u64) -> Option<Duration> {
        Some(Duration::from_millis(count))
    }

    /// LC-HTTP-02, H12
    #[test]
    fn the_wait_is_what_the_server_says() {
        let settings = Reconnect::default();
        let mut resume = Resume::default();
        assert_eq!(resume.last_event_id(), None);
        assert_eq!(resume.broke("a-1", millis(500), &settings, at(0)), Some(at(500)));
        assert_eq!(resume.last_event_id(), Some("a-1"));
        // It is kept, and what is new makes it count from the beginning.
        assert_eq!(resume.broke("a-2", None, &settings, at(1000)), Some(at(1500)));
        assert_eq!(resume.broke("a-3", millis(0), &settings, at(2000)), Some(at(2020)));
        // Longer than ours, if it is meant so.
        assert_eq!(resume.broke("a-4", millis(90_000), &settings, at(0)), Some(at(90_000)));
    }

    /// H05
    #[test]
    fn without_anything_new_it_ends() {
        let settings = Reconnect::default();
        let mut resume = Resume::default();
        let waits: alloc::vec::Vec<_> = (0..7)
            .map(|_| resume.broke("", millis(100), &settings, at(0)).map(|at| at - Instant::ZERO))
            .collect();
        let expected = [millis(100), millis(2000), millis(4000), millis(8000), millis(16_000), None, None];
        assert_eq!(waits[..], expected);
        // An id that is new makes it go on; the same one again does not.
        assert!(resume.broke("a", None, &settings, at(0)).is_some());
        for _ in 0..4 {
            assert!(resume.broke("a", None, &settings, at(0)).is_some());
        }
        assert_eq!(resume.broke("a", None, &settings, at(0)), None);
        // So does a stream that lasted.
        resume.opened(at(0));
        assert_eq!(resume.broke("", None, &settings, at(29_999)), None);
        resume.opened(at(0));
        assert!(resume.broke("", None, &settings, at(30_000)).is_some());
    }

    #[test]
    fn waits_are_bounded() {
        let settings = Reconnect { max_tries: 100, ..Reconnect::default() };
        let mut resume = Resume::default();
        for _ in 0..100 {
            let until = resume.broke("", None, &settings, at(0)).unwrap();
            assert!(until <= at(30_000) && until >= at(1000));
        }
        let never = Reconnect { max_tries: 0, ..Reconnect::default() };
        assert_eq!(Resume::default().broke("a", millis(1), &never, at(0)), None);
    }
}
