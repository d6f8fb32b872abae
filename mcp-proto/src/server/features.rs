//! What a client can be asked for.

use serde_json::value::RawValue;

use crate::model::TASKS_EXTENSION;
use crate::model::{InputRequest, ProtocolVersion};
use crate::rpc::Members;

/// The client capabilities that decide what a server may send, read from the JSON without copying it.
///
/// In 2026-07-28 they belong to one request and say nothing about the next one.
/// [spec: basic#statelessness]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ClientFeatures {
    /// `elicitation` with forms; `{}` means forms.
    pub elicitation_form: bool,
    /// `elicitation.url`
    pub elicitation_url: bool,
    /// `sampling`
    pub sampling: bool,
    /// `sampling.tools`
    pub sampling_tools: bool,
    /// `sampling.context`
    pub sampling_context: bool,
    /// `roots`
    pub roots: bool,
    /// The tasks extension.
    pub tasks_extension: bool,
}

impl ClientFeatures {
    /// Reads a `ClientCapabilities` object. `None` if it is none, or repeats a member.
    #[must_use]
    pub fn from_json(json: &str) -> Option<Self> {
        if json == "{}" {
            return Some(Self::default());
        }
        let all = Members::from_json(json)?;
        let mut seen = Self { roots: is_object(all.get("roots")), ..Self::default() };
        if let Some(elicitation) = inner(&all, "elicitation") {
            seen.elicitation_url = is_object(elicitation.get("url"));
            seen.elicitation_form = is_object(elicitation.get("form")) || !seen.elicitation_url;
        }
        if let Some(sampling) = inner(&all, "sampling") {
            seen.sampling = true;
            seen.sampling_tools = is_object(sampling.get("tools"));
            seen.sampling_context = is_object(sampling.get("context"));
        }
        if let Some(extensions) = inner(&all, "extensions") {
            seen.tasks_extension = is_object(extensions.get(TASKS_EXTENSION));
        }
        Some(seen)
    }

    /// What of the declaration counts in a revision: only what the revision has.
    #[must_use]
    pub fn of(mut self, version: ProtocolVersion) -> Self {
        if !version.has_elicitation_modes() {
            self.elicitation_form |= self.elicitation_url;
            self.elicitation_url = false;
        }
        self.elicitation_form &= version.has_elicitation();
        self.sampling_tools &= version.has_sampling_tools();
        self.sampling_context |= self.sampling && !version.has_sampling_tools();
        self.tasks_extension &= version.has_tasks_extension();
        self
    }

    /// What the client would have to declare to be asked this, as the JSON of a `ClientCapabilities`
    /// object; `None` if it declared it.
    #[must_use]
    pub fn missing(&self, request: &InputRequest) -> Option<&'static str> {
        match request {
            InputRequest::ElicitForm(_) if !self.elicitation_form => Some(r#"{"elicitation":{"form":{}}}"#),
            InputRequest::ElicitUrl(_) if !self.elicitation_url => Some(r#"{"elicitation":{"url":{}}}"#),
            InputRequest::CreateMessage(_) if !self.sampling => Some(r#"{"sampling":{}}"#),
            InputRequest::CreateMessage(m) if m.uses_tools() && !self.sampling_tools => {
                Some(r#"{"sampling":{"tools":{}}}"#)
            }
            InputRequest::CreateMessage(m) if m.wants_context() && !self.sampling_context => {
                Some(r#"{"sampling":{"context":{}}}"#)
            }
            InputRequest::ListRoots if !self.roots => Some(r#"{"roots":{}}"#),
            _ => None,
        }
    }
}

fn is_object(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| raw.get().starts_with('{'))
}

fn inner<'b>(members: &Members<'b>, name: &str) -> Option<Members<'b>> {
    Members::from_json(members.get(name)?.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M06: `{}` is form only; each part counts on its own.
    #[test]
    fn what_a_declaration_allows() {
        let read = |json: &str| {
            let f = ClientFeatures::from_json(json).unwrap();
            (f.elicitation_form, f.elicitation_url, f.sampling, f.sampling_tools, f.roots, f.tasks_extension)
        };
        assert_eq!(read("{}"), (false, false, false, false, false, false));
        assert_eq!(read(r#"{"elicitation":{}}"#), (true, false, false, false, false, false));
        assert_eq!(read(r#"{"elicitation":{"url":{}}}"#), (false, true, false, false, false, false));
        assert_eq!(read(r#"{"elicitation":{"form":{},"url":{}}}"#), (true, true, false, false, false, false));
        assert_eq!(read(r#"{"sampling":{"tools":{}},"roots":{}}"#), (false, false, true, true, true, false));
        assert_eq!(
            read(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}},"other":[1]}"#),
            (false, false, false, false, false, true)
        );
        assert_eq!(read(r#"{"roots":null,"sampling":true}"#), (false, false, false, false, false, false));
        for bad in ["null", "[]", "1", r#"{"roots":{},"roots":{}}"#] {
            assert_eq!(ClientFeatures::from_json(bad), None, "{bad}");
        }
    }
}
