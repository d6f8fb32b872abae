//! Results that are used again for as long as their server says. [spec: server/utilities/caching]

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use core::time::Duration;

use serde_json::value::RawValue;

use super::event::Change;
use crate::limits::Limits;
use crate::model::CacheScope;
use crate::model::method::ServerMethod;
use crate::time::Instant;

/// Method and params, which together tell one result from another.
type Key = (ServerMethod, Box<str>);

/// The results that are fresh. Bounded: the oldest make room.
#[derive(Debug)]
pub(crate) struct Cache {
    entries: BTreeMap<Key, Entry>,
    /// In the order in which they came; names of entries that are gone are skipped.
    order: VecDeque<(Key, u64)>,
    bytes: usize,
    /// Grows with each change: what was asked before it is not kept when it comes after it.
    epoch: u64,
    number: u64,
    max: usize,
    max_bytes: usize,
}

#[derive(Debug)]
struct Entry {
    json: Box<RawValue>,
    until: Instant,
    scope: CacheScope,
    number: u64,
    bytes: usize,
}

impl Cache {
    pub(crate) const fn new(limits: &Limits) -> Self {
        Self {
            entries: BTreeMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            epoch: 0,
            number: 0,
            max: limits.max_cached,
            max_bytes: limits.max_cached_bytes,
        }
    }

    pub(crate) const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// A result that is still fresh.
    pub(crate) fn get(&self, method: ServerMethod, params: &str, now: Instant) -> Option<&RawValue> {
        let entry = self.entries.get(&(method, params.into()))?;
        (entry.until > now).then_some(&*entry.json)
    }

    /// Keeps a result that was asked for in `epoch`.
    #[allow(clippy::too_many_arguments)] // each is one fact
    pub(crate) fn put(
        &mut self,
        method: ServerMethod,
        params: &str,
        json: &RawValue,
        ttl: Duration,
        scope: CacheScope,
        epoch: u64,
        now: Instant,
    ) {
        let key = (method, Box::from(params));
        self.remove(&key);
        let bytes = 128 + 2 * params.len() + json.get().len();
        if ttl.is_zero() || epoch != self.epoch || bytes > self.max_bytes || self.max == 0 {
            return;
        }
        while self.entries.len() >= self.max || self.bytes + bytes > self.max_bytes {
            let Some((oldest, number)) = self.order.pop_front() else { break };
            if self.entries.get(&oldest).is_some_and(|entry| entry.number == number) {
                self.remove(&oldest);
            }
        }
        self.number += 1;
        self.order.push_back((key.clone(), self.number));
        self.bytes += bytes;
        self.entries.insert(
            key,
            Entry { json: json.to_owned(), until: now + ttl, scope, number: self.number, bytes },
        );
        // Names of what was replaced do not pile up.
        if self.order.len() > 2 * self.max + 16 {
            let entries = &self.entries;
            self.order.retain(|(key, number)| entries.get(key).is_some_and(|entry| entry.number == *number));
        }
    }

    /// Forgets what a change makes stale.
    pub(crate) fn invalidate(&mut self, change: &Change) {
        self.epoch += 1;
        self.retain(|method, params, _| match change {
            Change::Tools => method != ServerMethod::ListTools,
            Change::Prompts => method != ServerMethod::ListPrompts,
            Change::Resources => {
                !matches!(method, ServerMethod::ListResources | ServerMethod::ListResourceTemplates)
            }
            // It may be a part of what was read, or the whole of it.
            Change::Resource(uri) => method != ServerMethod::ReadResource || !related(params, uri),
        });
    }

    /// Someone else calls now: what only the one before may see is forgotten.
    pub(crate) fn change_context(&mut self) {
        self.epoch += 1;
        self.retain(|_, _, scope| scope == CacheScope::Public);
    }

    /// Another process may answer from now on, and nobody told what changed meanwhile.
    pub(crate) fn clear(&mut self) {
        self.epoch += 1;
        self.retain(|_, _, _| false);
    }

    fn retain(&mut self, keep: impl Fn(ServerMethod, &str, CacheScope) -> bool) {
        let bytes = &mut self.bytes;
        self.entries.retain(|(method, params), entry| {
            let keep = keep(*method, params, entry.scope);
            if !keep {
                *bytes -= entry.bytes;
            }
            keep
        });
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
        }
    }
}

/// Whether one of two URIs is the beginning of the other.
fn related(params: &str, uri: &str) -> bool {
    let read = crate::rpc::Members::from_json(params).and_then(|members| members.text("uri").ok().flatten());
    read.is_none_or(|read: alloc::borrow::Cow<'_, str>| read.starts_with(uri) || uri.starts_with(&*read))
}

/// Whether results of this method say how long they are fresh.
pub(crate) const fn is_cacheable(method: ServerMethod) -> bool {
    matches!(
        method,
        ServerMethod::Discover
            | ServerMethod::ListTools
            | ServerMethod::ListPrompts
            | ServerMethod::ListResources
            | ServerMethod::ListResourceTemplates
            | ServerMethod::ReadResource
    )
}

/// What a result says of its freshness.
pub(crate) fn hints(json: &str) -> (Duration, CacheScope) {
    let members = crate::rpc::Members::from_json(json).unwrap_or_default();
    let ttl = members.get("ttlMs").and_then(|raw| serde_json::from_str::<f64>(raw.get()).ok()).unwrap_or(0.0);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // the cast saturates
    let ttl = Duration::from_millis(ttl as u64);
    let scope = members.text("cacheScope").ok().flatten();
    let scope = scope.and_then(|name| CacheScope::parse(&name)).unwrap_or_default();
    (ttl, scope)
}
