//! Lists, page by page. [spec: server/utilities/pagination]

use alloc::vec::Vec;

use super::request::PageRequest;
use crate::model::Str;

/// Every page of a list, one after the other, whatever the server does: the number of pages is bounded and a
/// cursor that came before ends the walk.
///
/// ```
/// # use mcp_proto::client::{Pages, request::ListTools};
/// # use mcp_proto::model::ListToolsResult;
/// # let answers = [ListToolsResult::new([]).next_cursor(""), ListToolsResult::new([])];
/// # let mut answers = answers.into_iter();
/// # let mut call = |_: &ListTools| answers.next().unwrap();
/// let mut pages = Pages::new(ListTools::new(), 1000);
/// while let Some(request) = pages.next() {
///     let page = call(&request);
///     pages.turn(&page)?;
/// }
/// # assert_eq!(pages.walked(), 2);
/// # Ok::<(), mcp_proto::client::PageError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Pages<R> {
    request: R,
    at: Option<Option<Str>>,
    seen: Vec<Str>,
    walked: usize,
    max: usize,
}

/// A list that does not end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PageError {
    /// The server named a cursor that it had named before.
    RepeatedCursor(Str),
    /// There is another page after the last one allowed.
    TooMany(usize),
}

impl<R: PageRequest> Pages<R> {
    /// The pages of this list, at most `max` of them.
    #[must_use]
    pub const fn new(request: R, max: usize) -> Self {
        Self { request, at: Some(None), seen: Vec::new(), walked: 0, max }
    }

    /// The request for the page that is due; `None` at the end. It stays due until it is
    /// [turned](Self::turn), so it can be sent again.
    #[allow(clippy::should_implement_trait)] // an iterator would not wait for the answer
    pub fn next(&mut self) -> Option<R> {
        self.at.as_ref().map(|cursor| self.request.at(cursor.clone()))
    }

    /// Takes the answer for the page that was due. An empty cursor is a cursor.
    ///
    /// # Errors
    ///
    /// The list has no end. The page itself is good.
    pub fn turn(&mut self, page: &R::Result) -> Result<(), PageError> {
        self.walked += 1;
        let Some(cursor) = R::next_cursor(page) else {
            self.at = None;
            return Ok(());
        };
        self.at = None;
        if self.walked >= self.max {
            return Err(PageError::TooMany(self.max));
        }
        match self.seen.binary_search(cursor) {
            Ok(_) => return Err(PageError::RepeatedCursor(cursor.clone())),
            Err(place) => self.seen.insert(place, cursor.clone()),
        }
        self.at = Some(Some(cursor.clone()));
        Ok(())
    }

    /// Starts again at the first page, as after the server refused a cursor.
    pub fn restart(&mut self) {
        self.at = Some(None);
        self.seen.clear();
    }

    /// How many pages there were so far, those before a restart included.
    #[must_use]
    pub const fn walked(&self) -> usize {
        self.walked
    }
}

impl core::fmt::Display for PageError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::RepeatedCursor(cursor) => {
                write!(f, "the list has no end: the cursor {:?} came before", crate::rpc::Short(cursor).0)
            }
            Self::TooMany(max) => write!(f, "the list has more than {max} pages"),
        }
    }
}

impl core::error::Error for PageError {}
