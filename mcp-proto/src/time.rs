//! Time as an argument: the core owns no clock.
//!
//! [`Instant`] is monotonic time from any origin the driver likes (process start is a good one);
//! [`UnixTime`] is wall-clock time, needed only where a moment leaves the process: expiry of input
//! state and the time stamps of tasks.

use alloc::string::String;
use core::fmt;
use core::ops::{Add, Sub};
use core::time::Duration;

/// A moment on a monotonic clock, counted from an origin the driver chose.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(Duration);

impl Instant {
    /// The origin itself.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// The moment that lies `elapsed` after the origin.
    #[must_use]
    pub const fn from_origin(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// The time since the origin.
    #[must_use]
    pub const fn since_origin(self) -> Duration {
        self.0
    }

    /// The time from `earlier` to `self`, zero if `earlier` is the later one.
    #[must_use]
    pub const fn saturating_duration_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    /// Saturates: a deadline beyond the clock's range is a deadline that never comes.
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(rhs))
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, rhs: Self) -> Duration {
        self.saturating_duration_since(rhs)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Instant(+{:?})", self.0)
    }
}

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UnixTime(u64);

impl UnixTime {
    /// From milliseconds since the epoch.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The moment `by` later, saturating.
    #[must_use]
    pub fn saturating_add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX)))
    }

    /// RFC 3339 in UTC with milliseconds, `2026-07-28T09:30:00.000Z`: the form task time stamps have
    /// on the wire. Years beyond 9999 are written as the last moment of 9999.
    #[must_use]
    pub fn to_rfc3339(self) -> String {
        const LAST: u64 = 253_402_300_799_999;
        let millis = self.0.min(LAST);
        let (days, of_day) = (millis / 86_400_000, millis % 86_400_000);
        let (year, month, day) = civil_from_days(days);
        let (h, m, s, ms) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1000 % 60, of_day % 1000);
        alloc::format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{ms:03}Z")
    }
}

/// The proleptic Gregorian date of a day count since 1970-01-01, by 400-year cycles that start on
/// 1 March, so that the leap day is the last day of a year.
const fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let era = z / 146_097;
    let day_of_era = z % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc3339_of_known_moments() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_785_231_000_123, "2026-07-28T09:30:00.123Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (u64::MAX, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(UnixTime::from_millis(millis).to_rfc3339(), text);
        }
    }

    #[test]
    fn instants_saturate() {
        let t = Instant::from_origin(Duration::from_secs(1));
        assert_eq!(Instant::ZERO - t, Duration::ZERO);
        assert_eq!((t + Duration::MAX).since_origin(), Duration::MAX);
    }
}
