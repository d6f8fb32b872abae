//! The clocks of this process in the core's own terms.
//!
//! One origin for all: the sessions of one service share deadlines, whatever runtime each runs on.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use mcp_proto::time::{Instant, UnixTime};

/// A moment of the system's monotonic clock.
#[must_use]
pub fn from_std(moment: std::time::Instant) -> Instant {
    Instant::from_origin(moment.saturating_duration_since(origin()))
}

/// The reverse of [`from_std`]. A moment beyond the range of the system's clock is thirty years away.
#[must_use]
pub fn to_std(moment: Instant) -> std::time::Instant {
    const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);
    let origin = origin();
    origin.checked_add(moment.since_origin()).unwrap_or_else(|| origin + FAR)
}

/// The wall clock. A clock that stands before 1970 counts as 1970.
#[must_use]
pub fn unix_now() -> UnixTime {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    UnixTime::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn origin() -> std::time::Instant {
    static ORIGIN: OnceLock<std::time::Instant> = OnceLock::new();
    *ORIGIN.get_or_init(std::time::Instant::now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_survive_the_round_trip_and_the_end_of_the_range() {
        let now = std::time::Instant::now();
        let origin = origin();
        assert_eq!(to_std(from_std(now.max(origin))), now.max(origin));
        assert!(to_std(Instant::from_origin(Duration::MAX)) > now + Duration::from_secs(86_400));
    }
}
