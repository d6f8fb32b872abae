//! The right to answer a request, and the names of requests.

use core::marker::PhantomData;

/// Names one open request: for maps, logs and cancellation. It grants nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey {
    pub(crate) connection: u32,
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// Names one request of ours towards a legacy client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskKey {
    pub(crate) connection: u32,
    pub(crate) number: i64,
}

/// The right to answer one request of method `M`.
///
/// It can be sent to another thread and is consumed by the answer, so a request is answered at most
/// once and nothing is sent for it afterwards. Dropping it answers nothing: the driver then has
/// [`abandon`](super::Connection::abandon).
#[must_use = "a request must be answered"]
#[derive(Debug)]
pub struct Pending<M = Untyped> {
    pub(crate) key: RequestKey,
    method: PhantomData<fn() -> M>,
}

/// A request whose method is not known to the types.
#[derive(Debug)]
#[allow(clippy::exhaustive_enums)] // a name at the type level: it has no values
pub enum Untyped {}

impl<M> Pending<M> {
    pub(crate) const fn new(key: RequestKey) -> Self {
        Self { key, method: PhantomData }
    }

    /// The name of the request.
    #[must_use]
    pub const fn key(&self) -> RequestKey {
        self.key
    }

    pub(crate) fn cast<N>(self) -> Pending<N> {
        Pending::new(self.key)
    }
}

/// What became of something that was written for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
#[allow(clippy::exhaustive_enums)] // there is no third way
pub enum Delivery {
    /// The bytes are in `out`.
    Written,
    /// Nothing was written: the request is over (answered, cancelled, timed out, of another connection),
    /// or the client did not ask for this kind of message.
    Discarded,
}

impl Delivery {
    /// Whether bytes were written.
    #[must_use]
    pub const fn is_written(self) -> bool {
        matches!(self, Self::Written)
    }
}
