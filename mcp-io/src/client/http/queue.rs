//! Those who wait for a connection, in the order in which they get one.

use std::collections::BTreeMap;
use std::task::Waker;

/// A queue in which each can be found, and can leave, without a look at all the others.
#[derive(Debug, Default)]
pub(super) struct Queue {
    wakers: BTreeMap<Place, Waker>,
    /// The places that were given last, at either end. None is given twice.
    first: i64,
    last: i64,
}

/// Where somebody waits, or has waited until woken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place(i64);

impl Queue {
    /// A place before all others.
    pub(super) fn push_front(&mut self, waker: Waker) -> Place {
        self.first -= 1;
        self.insert(self.first, waker)
    }

    /// A place behind all others.
    pub(super) fn push_back(&mut self, waker: Waker) -> Place {
        self.last += 1;
        self.insert(self.last, waker)
    }

    fn insert(&mut self, place: i64, waker: Waker) -> Place {
        self.wakers.insert(Place(place), waker);
        Place(place)
    }

    /// The waker of one who waits still.
    pub(super) fn waker(&mut self, place: Place) -> Option<&mut Waker> {
        self.wakers.get_mut(&place)
    }

    /// Leaves. Whether it waited still.
    pub(super) fn leave(&mut self, place: Place) -> bool {
        self.wakers.remove(&place).is_some()
    }

    /// How many wait, the one at `place` left out.
    pub(super) fn others(&self, place: Option<Place>) -> usize {
        self.wakers.len() - usize::from(place.is_some_and(|place| self.wakers.contains_key(&place)))
    }

    pub(super) fn wake_one(&mut self) {
        if let Some((_, waker)) = self.wakers.pop_first() {
            waker.wake();
        }
    }

    pub(super) fn wake_all(&mut self) {
        std::mem::take(&mut self.wakers).into_values().for_each(Waker::wake);
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        #[cfg(test)]
        tests::COMPARISONS.set(tests::COMPARISONS.get() + 1);
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Place {}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::{Arc, Mutex};
    use std::task::{Wake, Waker};

    use super::{Place, Queue};

    thread_local! {
        pub(super) static COMPARISONS: Cell<usize> = const { Cell::new(0) };
    }

    /// Writes down whom it wakes.
    struct Bell(u32, Arc<Mutex<Vec<u32>>>);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.1.lock().unwrap().push(self.0);
        }
    }

    #[test]
    fn whoever_is_pushed_to_the_front_is_woken_first_and_whoever_left_never() {
        let woken = Arc::default();
        let bell = |number| Waker::from(Arc::new(Bell(number, Arc::clone(&woken))));
        let mut queue = Queue::default();
        let places: Vec<_> = (0..3).map(|number| queue.push_back(bell(number))).collect();
        let front = queue.push_front(bell(3));
        queue.push_front(bell(4));
        assert!(queue.leave(places[1]) && !queue.leave(places[1]));
        queue.waker(places[2]).unwrap().clone_from(&bell(5));
        assert_eq!((queue.others(None), queue.others(Some(front)), queue.others(Some(places[1]))), (4, 3, 4));
        queue.wake_one();
        queue.wake_one();
        assert!(queue.waker(front).is_none());
        queue.wake_all();
        assert_eq!(*woken.lock().unwrap(), [4, 3, 0, 5]);
        assert_eq!(queue.others(None), 0);
    }

    #[test]
    fn a_turn_of_one_among_many_who_wait_is_no_more_work_than_a_logarithm() {
        /// What all of them cause, each of whom asks twice; then half leave and the others are woken.
        fn comparisons(waiting: u32) -> usize {
            let mut queue = Queue::default();
            let places: Vec<Place> = (0..waiting).map(|_| queue.push_back(Waker::noop().clone())).collect();
            COMPARISONS.set(0);
            for place in &places {
                assert!(queue.waker(*place).is_some() && queue.others(Some(*place)) > 0);
            }
            for place in places.iter().rev().take(places.len() / 2) {
                assert!(queue.leave(*place));
                queue.wake_one();
            }
            COMPARISONS.get()
        }
        let (few, many) = (comparisons(100), comparisons(10_000));
        assert!(few > 0 && many < few * 400, "{few} comparisons with 100 who wait, {many} with 10,000");
    }
}
