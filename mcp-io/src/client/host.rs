//! Many servers, one client each.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::task::Poll;

use mcp_proto::client::CallError;
use mcp_proto::client::request::CallTool;
use mcp_proto::model::Tool;
use mcp_proto::service::client::{Call, Client};
use serde::Serialize;

/// Most characters of a name, as common models have it.
const MOST: usize = 64;
/// Most characters of it that stand for the server.
const MOST_ALIAS: usize = 24;

/// Many servers, one client each, and their tools under names that cannot collide.
///
/// A tool is offered as `server__tool`. In the part for the server everything but letters, digits and `-` becomes `-`,
/// and it is cut after 24 characters; a server that would get the name of another gets a number behind it. So the
/// first `__` ends that part. A tool keeps its name if that has letters, digits, `_` and `-` only and the whole is at
/// most 64 characters long; otherwise what does not fit is replaced and cut, and a digest of its name is behind it.
/// That is within the rules for names of tools and within those of common models.
#[derive(Debug, Default)]
pub struct Host {
    members: Vec<Member>,
    /// Which tool of which server a name stands for, where it does not say it itself.
    renamed: Mutex<HashMap<String, String>>,
}

#[derive(Debug)]
struct Member {
    name: String,
    alias: String,
    client: Client,
}

/// A tool of one of the servers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Offered {
    /// The name that it is offered under.
    pub name: String,
    /// The server that it is of.
    pub server: String,
    /// The tool as its server has it, with its own name.
    pub tool: Tool,
}

/// The tools of all servers.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Offer {
    /// Them, server by server.
    pub tools: Vec<Offered>,
    /// Servers that did not say what they have, and why.
    pub failures: Vec<(String, CallError)>,
}

/// No server has what was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownTool(String);

impl fmt::Display for UnknownTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected the name of a tool as it is offered, found {:?}", self.0)
    }
}

impl std::error::Error for UnknownTool {}

impl Host {
    /// Without servers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a server. One that is there under this name is replaced, and closed if nobody else has its client.
    pub fn add(&mut self, name: impl Into<String>, client: Client) {
        let name = name.into();
        if let Some(member) = self.members.iter_mut().find(|member| member.name == name) {
            member.client = client;
            return;
        }
        let taken: HashSet<&str> = self.members.iter().map(|member| &*member.alias).collect();
        let alias = alias(&name, &taken);
        self.members.push(Member { name, alias, client });
    }

    /// Takes a server out.
    pub fn remove(&mut self, name: &str) -> Option<Client> {
        let at = self.members.iter().position(|member| member.name == name)?;
        Some(self.members.remove(at).client)
    }

    /// The client of a server.
    #[must_use]
    pub fn client(&self, name: &str) -> Option<&Client> {
        self.members.iter().find(|member| member.name == name).map(|member| &member.client)
    }

    /// The names of the servers, in the order in which they were added.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|member| &*member.name)
    }

    /// Asks all servers for their tools, at once. One that fails, or does not answer within the time of its calls, does
    /// not harm the others.
    pub async fn tools(&self) -> Offer {
        let mut offer = Offer::default();
        let mut lists: Vec<_> = self.members.iter().map(|member| Box::pin(member.client.tools())).collect();
        let mut results: Vec<_> = self.members.iter().map(|_| None).collect();
        let mut all = pin!(poll_fn(|cx| {
            for (list, result) in lists.iter_mut().zip(&mut results) {
                if result.is_none()
                    && let Poll::Ready(listed) = list.as_mut().poll(cx)
                {
                    *result = Some(listed);
                }
            }
            if results.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
        }));
        all.as_mut().await;
        let mut renamed = HashMap::new();
        for (member, result) in self.members.iter().zip(results) {
            match result {
                Some(Ok(listed)) => {
                    let mut used = HashSet::new();
                    for tool in listed {
                        let name = format!("{}__{}", member.alias, within(&member.alias, &tool.name));
                        // Of two that a server calls the same, the first.
                        if !used.insert(name.clone()) {
                            continue;
                        }
                        if !name.ends_with(&*tool.name)
                            || name.len() != member.alias.len() + 2 + tool.name.len()
                        {
                            renamed.insert(name.clone(), tool.name.clone().into_owned());
                        }
                        offer.tools.push(Offered { name, server: member.name.clone(), tool });
                    }
                }
                Some(Err(error)) => offer.failures.push((member.name.clone(), error)),
                None => {}
            }
        }
        self.renamed.lock().unwrap_or_else(PoisonError::into_inner).extend(renamed);
        offer
    }

    /// Calls a tool by the name that it is offered under, on the server that it is of.
    ///
    /// # Errors
    /// [`UnknownTool`] if no server has a name that this begins with.
    pub fn call_tool(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> Result<Call<'static, CallTool>, UnknownTool> {
        let unknown = || UnknownTool(name.into());
        let (alias, tool) = name.split_once("__").ok_or_else(unknown)?;
        let member = self.members.iter().find(|member| member.alias == alias).ok_or_else(unknown)?;
        let renamed = self.renamed.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        Ok(member.client.call_tool(renamed.unwrap_or_else(|| tool.to_owned()), arguments))
    }
}

fn alias(name: &str, taken: &HashSet<&str>) -> String {
    let fitting = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let cut: String = name.chars().take(MOST_ALIAS).map(fitting).collect();
    let cut = if cut.is_empty() { "server".into() } else { cut };
    let numbered = (2..).map(|number: usize| format!("{cut}-{number}"));
    std::iter::once(cut.clone()).chain(numbered).find(|alias| !taken.contains(&**alias)).unwrap_or_default()
}

/// The part of an offered name that stands for a tool.
fn within(alias: &str, tool: &str) -> String {
    let room = MOST.saturating_sub(alias.len() + 2).max(24);
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if tool.len() <= room && !tool.is_empty() && tool.chars().all(fits) {
        return tool.to_owned();
    }
    let kept = tool.chars().take(room - 17).map(|c| if fits(c) { c } else { '-' });
    format!("{}-{:016x}", kept.collect::<String>(), digest(tool))
}

/// FNV-1a. Names that a server makes to collide are that server's own.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_do_not_collide() {
        let mut taken = HashSet::new();
        let names = ["a_b", "a-b", "a.b", "", "server", &"x".repeat(100)];
        let aliases: Vec<_> = names
            .iter()
            .map(|name| {
                let alias = alias(name, &taken.iter().map(String::as_str).collect());
                taken.insert(alias.clone());
                alias
            })
            .collect();
        assert_eq!(aliases[..5], ["a-b", "a-b-2", "a-b-3", "server", "server-2"]);
        assert_eq!(aliases[5].len(), 24);
        assert_eq!(within("a-b", "read__file-2"), "read__file-2");
        let odd = ["a.b", "a/b", "", "é", &"t".repeat(100), &("t".repeat(100) + "u")];
        let mut seen = HashSet::new();
        for tool in odd {
            for alias in [&*aliases[0], &*aliases[5]] {
                let name = format!("{alias}__{}", within(alias, tool));
                assert!(name.len() <= MOST, "{name}");
                assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)), "{name}");
                assert_eq!(name.split_once("__").unwrap().0, alias);
                assert!(seen.insert(name));
            }
        }
    }
}
