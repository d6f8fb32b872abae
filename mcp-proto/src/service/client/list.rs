//! Whole lists.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::ops::Deref;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::call::Call;
use super::handle::Handle;
use super::slot::Outcome;
use crate::client::request::{ListPrompts, ListResourceTemplates, ListResources, ListTools, PageRequest};
use crate::client::{CallError, CallOptions, Completed, PageError, Pages};
use crate::model::{Prompt, Resource, ResourceTemplate, Tool};
use crate::rpc::code;
use crate::rpc::de::DecodeError;

/// Most times that a walk begins anew because the server refused a cursor.
const RESTARTS: u32 = 2;

/// A list that is fetched page by page when it is awaited. The number of pages is bounded.
#[must_use = "futures do nothing unless polled"]
pub struct List<R: Listing> {
    handle: Arc<Handle>,
    pages: Pages<R>,
    page: Option<Call<'static, R>>,
    options: CallOptions,
    /// Not at the first page.
    is_under_way: bool,
    restarts: u32,
    found: Listed<R::Item>,
}

/// What a list holds: a slice, and an iterator over its items.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Listed<T> {
    /// The items.
    pub items: Vec<T>,
    /// What is wrong with the list. The items are good all the same.
    pub faults: Vec<ListFault>,
}

/// What is wrong with a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListFault {
    /// An item that cannot be used was left out.
    Item(DecodeError),
    /// There is more, but the list has no end.
    Endless(PageError),
}

/// A request for a list that a [`Client`](super::Client) can fetch as a whole. There are four, and no more.
pub trait Listing: PageRequest + Send + 'static + sealed::Sealed {
    /// What it lists.
    type Item;

    /// Takes the items out of one page.
    #[doc(hidden)]
    fn items(page: &mut Self::Result) -> Vec<Self::Item>;

    /// Reads one page, and says what was left out.
    #[doc(hidden)]
    fn read(completed: &Completed<'_>) -> Result<(Self::Result, Vec<DecodeError>), DecodeError> {
        Ok((completed.decode::<Self>()?, Vec::new()))
    }
}

mod sealed {
    #[allow(unnameable_types)] // that is its purpose
    pub trait Sealed {}
}

macro_rules! listings {
    ($($request:ident: $item:ident in $field:ident $({ $($read:tt)* })?;)+) => {$(
        impl sealed::Sealed for $request {}
        impl Listing for $request {
            type Item = $item;

            fn items(page: &mut Self::Result) -> Vec<$item> {
                core::mem::take(&mut page.$field)
            }

            $($($read)*)?
        }
    )+};
}

listings! {
    ListTools: Tool in tools {
        fn read(completed: &Completed<'_>) -> Result<(Self::Result, Vec<DecodeError>), DecodeError> {
            completed.tools().map(|tools| (tools.page, tools.faults))
        }
    };
    ListResources: Resource in resources;
    ListResourceTemplates: ResourceTemplate in resource_templates;
    ListPrompts: Prompt in prompts;
}

/// Nothing in it is pinned.
impl<R: Listing> Unpin for List<R> {}

impl<R: Listing> List<R> {
    pub(super) fn new(handle: Arc<Handle>, request: R) -> Self {
        let options = handle.options.clone();
        let pages = Pages::new(request, handle.max_pages);
        let found = Listed { items: Vec::new(), faults: Vec::new() };
        Self { handle, pages, page: None, options, is_under_way: false, restarts: 0, found }
    }

    /// How each page is asked for.
    pub fn options(mut self, options: CallOptions) -> Self {
        self.options = options;
        self
    }

    /// Asks the server also for pages that are known and still fresh.
    pub const fn no_cache(mut self) -> Self {
        self.options.use_cache = false;
        self
    }

    fn turn(&mut self, completed: &Completed<'_>) -> Result<(), CallError> {
        let (mut page, faults) =
            R::read(completed).map_err(|fault| CallError::malformed(fault.within("/result")))?;
        if let Err(endless) = self.pages.turn(&page) {
            self.found.faults.push(ListFault::Endless(endless));
        }
        self.is_under_way = true;
        self.found.items.extend(R::items(&mut page));
        self.found.faults.extend(faults.into_iter().map(ListFault::Item));
        Ok(())
    }
}

impl<R: Listing> Future for List<R> {
    type Output = Result<Listed<R::Item>, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            let page = match &mut this.page {
                Some(page) => page,
                None => match this.pages.next() {
                    Some(request) => {
                        let call = Call::new(Arc::clone(&this.handle), Ok(request));
                        this.page.insert(call.options(this.options.clone()))
                    }
                    None => {
                        let none = Listed { items: Vec::new(), faults: Vec::new() };
                        return Poll::Ready(Ok(core::mem::replace(&mut this.found, none)));
                    }
                },
            };
            let outcome = core::task::ready!(page.poll_outcome(cx));
            page.take_slot();
            this.page = None;
            match outcome {
                Outcome::Complete(completed) => this.turn(&completed)?,
                // The list changed under the walk. [spec: server/utilities/pagination#error-handling]
                Outcome::Failed(CallError::Rpc(error))
                    if error.code == code::INVALID_PARAMS
                        && this.is_under_way
                        && this.restarts < RESTARTS =>
                {
                    this.restarts += 1;
                    this.is_under_way = false;
                    this.pages.restart();
                    this.found.items.clear();
                    this.found.faults.clear();
                }
                Outcome::Failed(error) => return Poll::Ready(Err(error)),
                Outcome::Input(_) | Outcome::Parked(_) => return Poll::Ready(Err(CallError::NoSuchCall)),
            }
        }
    }
}

impl<R: Listing> fmt::Debug for List<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List").field("method", &R::METHOD).finish_non_exhaustive()
    }
}

impl<T> Deref for Listed<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T> IntoIterator for Listed<T> {
    type Item = T;
    type IntoIter = alloc::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a Listed<T> {
    type Item = &'a T;
    type IntoIter = core::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

impl fmt::Display for ListFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Item(fault) => fault.fmt(f),
            Self::Endless(fault) => fault.fmt(f),
        }
    }
}
