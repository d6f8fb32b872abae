//! What an operation needs of the caller's token, known before anything is done.

use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::{BuildError, Service};
use crate::model::method::{
    CallTool, Complete, GetPrompt, GetTask, Listen, Method, ReadResource, ServerMethod, Subscribe, UpdateTask,
};
use crate::model::{ProtocolVersion, Str};
use crate::registry::{Access, Terms};
use crate::rpc::{Error, Params, code};
use crate::server::{Principal, Scopes};

/// Whether a granted scope stands for a needed one.
pub(crate) type Implies = Arc<dyn Fn(&str, &str) -> bool + Send + Sync>;

/// The caller's token does not allow the operation: over HTTP
/// [`403`](crate::http::ProtectedResource::challenge_insufficient_scope).
/// [spec: basic/authorization#runtime-insufficient-scope-errors]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InsufficientScope {
    /// All that the operation needs, also what the token has.
    pub scopes: Scopes,
}

impl InsufficientScope {
    /// What a JSON-RPC peer is told: `-32600` with `error` and `scope` in its data, as RFC 6750 calls them.
    #[must_use]
    pub fn to_error(&self) -> Error {
        #[derive(serde::Serialize)]
        struct Data {
            error: &'static str,
            scope: alloc::string::String,
        }
        Error::new(code::INVALID_REQUEST, "Insufficient scope")
            .with_data(&Data { error: "insufficient_scope", scope: self.scopes.to_string() })
    }
}

impl fmt::Display for InsufficientScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the operation needs the scopes {}", self.scopes)
    }
}

impl core::error::Error for InsufficientScope {}

impl Service {
    /// The scopes that a request needs: those of the tool, prompt or resource that it uses, completes or
    /// subscribes to; for a task those of its tool; for a `subscriptions/listen` those of all URIs and tasks together. None if it needs none, if its
    /// params cannot be read, or if what it names does not exist for this caller: then the answer is an
    /// error that tells nothing.
    ///
    /// Nothing runs for this but what decides who [sees](super::ToolDef::visible_to) an item.
    #[must_use]
    pub fn required_scopes(
        &self,
        method: &str,
        params: &Params<'_>,
        principal: Option<&Principal>,
    ) -> Scopes {
        self.needed(method, params, principal).unwrap_or_default()
    }

    /// Whether the caller's token allows a request: to be asked before each request of HTTP is dispatched,
    /// of a batch for each member. A caller without a principal has no scopes here.
    ///
    /// # Errors
    ///
    /// [All scopes](Self::required_scopes) that the request needs.
    pub fn check_scopes(
        &self,
        method: &str,
        params: &Params<'_>,
        principal: Option<&Principal>,
    ) -> Result<(), InsufficientScope> {
        let scopes = self.required_scopes(method, params, principal);
        let granted = principal.map_or(&Scopes::NONE, Principal::scopes);
        if self.covers(granted, &scopes) { Ok(()) } else { Err(InsufficientScope { scopes }) }
    }

    /// Whether anything of this service needs scopes. Over HTTP, without an
    /// [`Authorizer`](super::Authorizer) and without a principal of the host's, that is refused to everyone.
    #[must_use]
    pub fn declares_scopes(&self) -> bool {
        let registry = self.registry();
        registry.tools().iter().any(|entry| !entry.scopes().is_empty())
            || registry.prompts().iter().any(|entry| !entry.scopes().is_empty())
            || registry.resources().iter().any(|entry| !entry.scopes().is_empty())
            || registry.templates().iter().any(|entry| !entry.scopes().is_empty())
    }

    fn needed(&self, method: &str, params: &Params<'_>, principal: Option<&Principal>) -> Option<Scopes> {
        // What an item needs does not depend on the revision.
        let version = ProtocolVersion::LATEST;
        let registry = self.registry();
        params.check().ok()?;
        let scopes = match ServerMethod::parse(method)? {
            ServerMethod::CallTool => {
                registry.tool(version, principal, &CallTool::decode(params).ok()?.name).ok()?.scopes()
            }
            ServerMethod::GetPrompt => {
                registry.prompt(version, principal, &GetPrompt::decode(params).ok()?.name).ok()?.scopes()
            }
            ServerMethod::Complete => registry
                .completion(version, principal, &Complete::decode(params).ok()?.reference)
                .ok()?
                .scopes(),
            ServerMethod::ReadResource => {
                return self.needed_to_read(&ReadResource::decode(params).ok()?.uri, principal);
            }
            ServerMethod::Subscribe => {
                return self.needed_to_read(&Subscribe::decode(params).ok()?.uri, principal);
            }
            ServerMethod::Listen => {
                let filter = Listen::decode(params).ok()?.notifications;
                let most = self.config().limits.max_subscribed_uris;
                let uris = filter.resource_subscriptions.iter().take(most);
                let tasks = filter.task_ids.iter().take(most);
                let each = uris
                    .filter_map(|uri| self.needed_to_read(uri, principal))
                    .chain(tasks.filter_map(|id| self.needed_for_task(id, principal)));
                // Many URIs, few kinds of scopes: equal sets are not put together again and again.
                return Some(each.fold(Scopes::NONE, |all, scopes| {
                    if all.covers(&scopes) { all } else { all.union(&scopes) }
                }));
            }
            ServerMethod::GetTask | ServerMethod::CancelTask | ServerMethod::TaskResult => {
                return self.needed_for_task(&GetTask::decode(params).ok()?.task_id, principal);
            }
            ServerMethod::UpdateTask => {
                return self.needed_for_task(&UpdateTask::decode(params).ok()?.task_id, principal);
            }
            _ => return None,
        };
        Some(scopes.clone())
    }

    fn needed_to_read(&self, uri: &str, principal: Option<&Principal>) -> Option<Scopes> {
        if uri.len() > self.config().limits.max_uri {
            return None;
        }
        let found = self.registry().resource(ProtocolVersion::LATEST, principal, uri).ok()?;
        Some(found.scopes().clone())
    }

    /// What a task's tool needs is needed for its result, too.
    fn needed_for_task(&self, id: &str, principal: Option<&Principal>) -> Option<Scopes> {
        self.tasks().scopes(id, principal).cloned()
    }

    fn covers(&self, granted: &Scopes, needed: &Scopes) -> bool {
        match &self.0.implies {
            Some(implies) => granted.covers_with(needed, &**implies),
            None => granted.covers(needed),
        }
    }

    /// The same once more where the work begins, for callers that a token speaks for.
    pub(crate) fn enforce(&self, needed: &Scopes, principal: Option<&Principal>) -> Result<(), Error> {
        match principal {
            Some(principal) if !self.covers(principal.scopes(), needed) => {
                Err(InsufficientScope { scopes: needed.clone() }.to_error())
            }
            _ => Ok(()),
        }
    }

    /// Whether this caller can read what the URI leads to.
    pub(crate) fn may_read(
        &self,
        uri: &str,
        version: ProtocolVersion,
        principal: Option<&Principal>,
    ) -> bool {
        self.registry()
            .resource(version, principal, uri)
            .is_ok_and(|found| self.enforce(found.scopes(), principal).is_ok())
    }
}

/// What was said of an item's scopes, not yet checked.
#[derive(Default)]
pub(crate) struct Scoped {
    pub(crate) scopes: Vec<Str>,
    pub(crate) hide: bool,
}

impl Scoped {
    /// Puts it into the terms of the item.
    pub(crate) fn apply(
        self,
        mut terms: Terms,
        item: &Str,
        implies: Option<&Implies>,
    ) -> Result<Terms, BuildError> {
        let invalid = |scope: Str| BuildError::Scope { item: item.clone(), scope };
        if self.scopes.iter().any(|scope| scope == "offline_access") {
            return Err(invalid("offline_access".into()));
        }
        terms.scopes = Scopes::of(self.scopes).map_err(|scope| invalid(scope.0.into()))?;
        if self.hide && !terms.scopes.is_empty() {
            let (access, needed, implies) = (terms.access, terms.scopes.clone(), implies.cloned());
            terms.access = Access::when(move |principal| {
                access.allows(principal)
                    && principal.is_none_or(|p| match &implies {
                        Some(implies) => p.scopes().covers_with(&needed, &**implies),
                        None => p.scopes().covers(&needed),
                    })
            });
        }
        Ok(terms)
    }
}
