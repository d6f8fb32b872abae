//! Recorded exchanges, the replayer, the fixture.
