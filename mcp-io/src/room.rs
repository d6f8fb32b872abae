//! Room to read into, for those who hand on what they read at once.
//!
//! A thread has one, not a connection: most connections wait, and room of its own would be most of what such a
//! connection costs.

use std::cell::Cell;

/// Most bytes of one read.
const MOST: usize = 64 << 10;

thread_local! {
    static ROOM: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Lets `read` use the room of this thread. What is in it is of whoever read before.
pub(crate) fn with<T>(read: impl FnOnce(&mut [u8]) -> T) -> T {
    // It is taken out, so one who reads while another does gets room of its own; so does a thread at its end.
    let mut room = ROOM.try_with(Cell::take).unwrap_or_default();
    room.resize(MOST, 0);
    let result = read(&mut room);
    _ = ROOM.try_with(|kept| kept.set(room));
    result
}

#[cfg(test)]
mod tests {
    use super::{MOST, with};

    #[test]
    fn one_within_another_has_room_of_its_own() {
        with(|outer| {
            outer[0] = 1;
            with(|inner| inner.fill(2));
            assert_eq!((outer.len(), outer[0]), (MOST, 1));
        });
    }
}
