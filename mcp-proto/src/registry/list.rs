//! One list: its items in order, their bytes for each revision, its pages.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;
use core::ops::Range;

use super::cursor::Cursors;
use super::entry::{Definition, Entry};
use super::error::{BuildError, Problem, invalid_cursor};
use crate::model::view::WriteError;
use crate::model::{CacheScope, ProtocolVersion};
use crate::rpc::{Error, write_str};
use crate::server::Principal;

pub(crate) struct List<D: Definition, H> {
    /// In the order of registration, which is that of the list.
    entries: Vec<Entry<D, H>>,
    order: Order,
    forms: Forms,
    cursors: Cursors,
    page_size: usize,
    /// `,"ttlMs":…,"cacheScope":"…"`
    hints: Box<[u8]>,
}

/// How pages are cut, and what clients are told of keeping them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paging<'a> {
    pub(crate) page_size: usize,
    pub(crate) cursor_secret: &'a [u8],
    pub(crate) ttl_ms: u64,
    pub(crate) scope: CacheScope,
}

impl<D: Definition, H> List<D, H> {
    pub(crate) fn new(entries: Vec<Entry<D, H>>, paging: &Paging<'_>) -> Result<Self, BuildError> {
        let fail = |at: usize, problem| BuildError { kind: D::KIND, name: entries[at].key().into(), problem };
        let order = Order::new(entries.len(), |a, b| entries[a].key().cmp(entries[b].key()))
            .map_err(|twice| fail(twice, Problem::Duplicate))?;
        let forms =
            Forms::new(entries.len(), |at, version, out| entries[at].definition().write(version, out))
                .map_err(|(at, reason)| fail(at, Problem::Unwritable(reason)))?;
        let cursors = if paging.page_size < entries.len() {
            Cursors::new(paging.cursor_secret, D::MEMBER, entries.iter().map(Entry::key))
        } else {
            Cursors::default()
        };
        // What is not for everyone makes every page of the list private. [spec: server/utilities/caching]
        let private = entries.iter().any(|entry| !entry.access().is_everyone());
        let scope = if private { CacheScope::Private } else { paging.scope };
        let hints = alloc::format!(r#","ttlMs":{},"cacheScope":"{}""#, paging.ttl_ms, scope.as_str());
        let hints = hints.into_bytes().into();
        Ok(Self { entries, order, forms, cursors, page_size: paging.page_size, hints })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn entries(&self) -> &[Entry<D, H>] {
        &self.entries
    }

    /// The item called so, seen by everyone or not.
    pub(crate) fn get(&self, key: &str) -> Option<&Entry<D, H>> {
        self.order.find(|at| self.entries[at].key().cmp(key)).map(|at| &self.entries[at])
    }

    /// The item called so, if it exists for this caller.
    pub(crate) fn visible(&self, principal: Option<&Principal>, key: &str) -> Option<&Entry<D, H>> {
        self.get(key).filter(|entry| entry.is_visible(principal))
    }

    /// Appends one page. On an error nothing is appended.
    ///
    /// The place of a page is that of an item in the whole list, so switching items on or off between two
    /// pages repeats nothing and skips nothing.
    pub(crate) fn write_page(
        &self,
        version: ProtocolVersion,
        principal: Option<&Principal>,
        cursor: Option<&str>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let start = match cursor {
            None => 0,
            Some(cursor) => self.cursors.position(cursor).ok_or_else(invalid_cursor)?,
        };
        let form = self.forms.of(version);
        out.extend_from_slice(b"{\"");
        out.extend_from_slice(D::MEMBER.as_bytes());
        out.extend_from_slice(b"\":[");
        let mut left = self.page_size;
        let mut next = None;
        // Neighbours are copied at once.
        let mut run = start..start;
        let mut any = false;
        for (at, entry) in self.entries.iter().enumerate().skip(start) {
            if !entry.is_visible(principal) {
                continue;
            }
            if left == 0 {
                next = self.cursors.text(run.end);
                break;
            }
            left -= 1;
            if at != run.end {
                any |= form.write(run, any, out);
                run = at..at;
            }
            run.end = at + 1;
        }
        form.write(run, any, out);
        out.push(b']');
        if let Some(next) = next {
            out.extend_from_slice(b",\"nextCursor\":");
            write_str(out, next);
        }
        if version.has_member(D::RESULT, "ttlMs") {
            out.extend_from_slice(&self.hints);
        }
        out.push(b'}');
        Ok(())
    }
}

impl<D: Definition + fmt::Debug, H> fmt::Debug for List<D, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.entries).finish()
    }
}

/// Positions ordered by key, for look-ups by bisection.
struct Order(Box<[u32]>);

impl Order {
    /// `Err` is the position of an item whose key an earlier one has.
    fn new(count: usize, compare: impl Fn(usize, usize) -> Ordering) -> Result<Self, usize> {
        let mut order: Box<[u32]> = (0..).take(count).collect();
        order.sort_by(|a, b| compare(*a as usize, *b as usize));
        for pair in order.windows(2) {
            if compare(pair[0] as usize, pair[1] as usize) == Ordering::Equal {
                return Err(pair[1] as usize);
            }
        }
        Ok(Self(order))
    }

    /// `compare` says where an item stands, seen from the one that is looked for.
    fn find(&self, compare: impl Fn(usize) -> Ordering) -> Option<usize> {
        let at = self.0.binary_search_by(|at| compare(*at as usize)).ok()?;
        Some(self.0[at] as usize)
    }
}

/// The bytes of a list's items for each revision. Revisions that agree share them.
struct Forms {
    distinct: Vec<Form>,
    of: [u8; ProtocolVersion::ALL.len()],
}

/// The items of a list, joined by commas.
#[derive(PartialEq)]
struct Form {
    bytes: Vec<u8>,
    /// Where each item ends.
    ends: Vec<usize>,
}

impl Forms {
    fn new(
        count: usize,
        write: impl Fn(usize, ProtocolVersion, &mut Vec<u8>) -> Result<(), WriteError>,
    ) -> Result<Self, (usize, WriteError)> {
        let mut forms = Self { distinct: Vec::new(), of: [0; ProtocolVersion::ALL.len()] };
        for (version, index) in ProtocolVersion::ALL.into_iter().zip(&mut forms.of) {
            let mut form = Form { bytes: Vec::new(), ends: Vec::with_capacity(count) };
            for at in 0..count {
                if at > 0 {
                    form.bytes.push(b',');
                }
                write(at, version, &mut form.bytes).map_err(|reason| (at, reason))?;
                form.ends.push(form.bytes.len());
            }
            let known = forms.distinct.iter().position(|known| *known == form);
            let known = known.unwrap_or_else(|| {
                form.bytes.shrink_to_fit();
                forms.distinct.push(form);
                forms.distinct.len() - 1
            });
            *index = u8::try_from(known).unwrap_or(0); // there are as many forms as revisions, at most
        }
        Ok(forms)
    }

    fn of(&self, version: ProtocolVersion) -> &Form {
        // `ALL` is in the order of the declaration; a test holds it to that.
        &self.distinct[usize::from(self.of[version as usize])]
    }
}

impl Form {
    /// Appends items that are neighbours, after a comma if asked; whether there were any.
    fn write(&self, run: Range<usize>, comma: bool, out: &mut Vec<u8>) -> bool {
        let Some(last) = run.end.checked_sub(1).filter(|_| !run.is_empty()) else { return false };
        let start = run.start.checked_sub(1).map_or(0, |before| self.ends[before] + 1);
        if comma {
            out.push(b',');
        }
        out.extend_from_slice(&self.bytes[start..self.ends[last]]);
        true
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use core::cell::Cell;

    use super::*;

    #[test]
    fn revisions_are_listed_as_they_are_declared() {
        for (at, version) in ProtocolVersion::ALL.into_iter().enumerate() {
            assert_eq!(version as usize, at);
        }
    }

    /// The cost of a call does not depend on the number of tools: a look-up bisects.
    #[test]
    fn a_look_up_compares_few_names() {
        let names: Vec<String> = (0..5_000).map(|n| alloc::format!("tool-{n}")).collect();
        let order = Order::new(names.len(), |a, b| names[a].cmp(&names[b])).unwrap();
        let count = Cell::new(0);
        let find = |name: &str| {
            count.set(0);
            order.find(|at| {
                count.set(count.get() + 1);
                names[at].as_str().cmp(name)
            })
        };
        for (at, name) in names.iter().enumerate() {
            assert_eq!(find(name), Some(at));
            assert!(count.get() <= 14, "{} comparisons", count.get());
        }
        for unknown in ["", "tool-5000", "zzz", "tool"] {
            assert_eq!(find(unknown), None);
            assert!(count.get() <= 14);
        }
    }

    #[test]
    fn the_later_of_two_equal_keys_is_named() {
        let names = ["b", "a", "c", "a"];
        assert_eq!(Order::new(4, |a, b| names[a].cmp(names[b])).err(), Some(3));
    }

    #[test]
    fn equal_forms_are_kept_once() {
        let forms = Forms::new(2, |at, version, out| {
            out.extend_from_slice(if version.is_modern() { b"new" } else { b"old" });
            out.push(b'0' + u8::try_from(at).unwrap());
            Ok(())
        })
        .unwrap();
        assert_eq!(forms.distinct.len(), 2);
        assert_eq!(forms.of(ProtocolVersion::V2024_11_05).bytes, b"old0,old1");
        assert_eq!(forms.of(ProtocolVersion::LATEST).bytes, b"new0,new1");
    }
}
