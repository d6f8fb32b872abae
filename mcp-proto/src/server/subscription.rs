//! Change notifications: level-triggered marks, so that memory is bounded whatever the peer does.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::model::SubscriptionFilter;
use crate::rpc::{RequestId, write_notification, write_str};

/// Something changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change<'a> {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources or templates.
    Resources,
    /// One resource, by URI.
    Resource(&'a str),
    /// News may have been lost: whatever is watched may have changed, but for tasks.
    Gap,
    /// A task: its id, and the JSON text of its detailed form.
    Task {
        /// The task.
        id: &'a str,
        /// The params of `notifications/tasks`: an object.
        body: &'a str,
    },
}

/// Marks of what changed since the last flush.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lists {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
}

impl Lists {
    fn each(self) -> impl Iterator<Item = &'static str> {
        [
            (self.tools, "notifications/tools/list_changed"),
            (self.prompts, "notifications/prompts/list_changed"),
            (self.resources, "notifications/resources/list_changed"),
        ]
        .into_iter()
        .filter_map(|(on, method)| on.then_some(method))
    }
}

/// What one subscriber asked for, and what is due.
#[derive(Debug, Default)]
pub(crate) struct Listen {
    wanted: Lists,
    due: Lists,
    /// URIs in order, each with its mark. Sorted, so that a change is found by bisection.
    uris: Vec<(Box<str>, bool)>,
    /// Tasks, each with the newest body that was not sent yet.
    tasks: BTreeMap<Box<str>, Option<Box<str>>>,
    any_due: bool,
}

impl Listen {
    pub(crate) fn new(filter: &SubscriptionFilter) -> Self {
        let mut uris: Vec<(Box<str>, bool)> =
            filter.resource_subscriptions.iter().map(|uri| (Box::from(&**uri), false)).collect();
        uris.sort_unstable();
        uris.dedup();
        Self {
            wanted: Lists {
                tools: filter.tools_list_changed,
                prompts: filter.prompts_list_changed,
                resources: filter.resources_list_changed,
            },
            due: Lists::default(),
            uris,
            tasks: filter.task_ids.iter().map(|id| (Box::from(&**id), None)).collect(),
            any_due: false,
        }
    }

    /// The subscriber of a legacy session: the lists whose `listChanged` is declared, URIs as they come.
    pub(crate) fn legacy(wanted: Lists) -> Self {
        Self { wanted, ..Self::default() }
    }

    pub(crate) fn uri_count(&self) -> usize {
        self.uris.len()
    }

    pub(crate) fn subscribes_to(&self, uri: &str) -> bool {
        self.position(uri).is_ok()
    }

    pub(crate) fn subscribe(&mut self, uri: &str) {
        if let Err(at) = self.position(uri) {
            self.uris.insert(at, (uri.into(), false));
        }
    }

    pub(crate) fn unsubscribe(&mut self, uri: &str) {
        if let Ok(at) = self.position(uri) {
            self.uris.remove(at);
        }
    }

    fn position(&self, uri: &str) -> Result<usize, usize> {
        self.uris.binary_search_by(|(known, _)| (**known).cmp(uri))
    }

    /// Marks what this subscriber wanted. Whether something is now due that was not before.
    pub(crate) fn mark(&mut self, change: &Change<'_>) -> bool {
        let marked = match change {
            Change::Tools => self.wanted.tools && !core::mem::replace(&mut self.due.tools, true),
            Change::Prompts => self.wanted.prompts && !core::mem::replace(&mut self.due.prompts, true),
            Change::Resources => self.wanted.resources && !core::mem::replace(&mut self.due.resources, true),
            Change::Resource(uri) => match self.position(uri) {
                Ok(at) => !core::mem::replace(&mut self.uris[at].1, true),
                Err(_) => false,
            },
            Change::Gap => {
                let news = Lists {
                    tools: self.wanted.tools && !self.due.tools,
                    prompts: self.wanted.prompts && !self.due.prompts,
                    resources: self.wanted.resources && !self.due.resources,
                };
                self.due = self.wanted;
                let uris =
                    self.uris.iter_mut().fold(false, |any, (_, due)| any | !core::mem::replace(due, true));
                news != Lists::default() || uris
            }
            Change::Task { id, body } => match self.tasks.get_mut(*id) {
                Some(newest) => {
                    *newest = Some(Box::from(*body));
                    true
                }
                None => false,
            },
        };
        self.any_due |= marked;
        marked
    }

    /// Appends what is due through `frame`, which wraps one message. `tag` is the id of the listen request.
    pub(crate) fn flush(
        &mut self,
        tag: Option<&RequestId>,
        mut frame: impl FnMut(&mut dyn FnMut(&mut Vec<u8>)),
    ) {
        if !core::mem::take(&mut self.any_due) {
            return;
        }
        for method in core::mem::take(&mut self.due).each() {
            frame(&mut |out| {
                write_notification(out, method, |out| {
                    if let Some(tag) = tag {
                        out.push(b'{');
                        write_tag(out, tag);
                        out.push(b'}');
                    }
                });
            });
        }
        for (uri, due) in &mut self.uris {
            if core::mem::take(due) {
                frame(&mut |out| {
                    write_notification(out, "notifications/resources/updated", |out| {
                        out.push(b'{');
                        if let Some(tag) = tag {
                            write_tag(out, tag);
                            out.push(b',');
                        }
                        out.extend_from_slice(b"\"uri\":");
                        write_str(out, uri);
                        out.push(b'}');
                    });
                });
            }
        }
        for body in self.tasks.values_mut().filter_map(Option::take) {
            frame(&mut |out| {
                write_notification(out, "notifications/tasks", |out| {
                    out.push(b'{');
                    if let Some(tag) = tag {
                        write_tag(out, tag);
                    }
                    // `body` is an object; its opening brace is ours already.
                    let members = body.strip_prefix('{').unwrap_or("}");
                    if tag.is_some() && members.trim_start() != "}" {
                        out.push(b',');
                    }
                    out.extend_from_slice(members.as_bytes());
                });
            });
        }
    }
}

/// `"_meta":{"io.modelcontextprotocol/subscriptionId":ID}`
pub(crate) fn write_tag(out: &mut Vec<u8>, id: &RequestId) {
    out.extend_from_slice(b"\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":");
    id.write(out);
    out.push(b'}');
}
