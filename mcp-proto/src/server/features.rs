//! What a client can be asked for.

use core::fmt;

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

    /// What a client must declare to be given a task.
    pub(crate) const TASKS: Self = Self { tasks_extension: true, ..Self::NONE };

    const NONE: Self = Self {
        elicitation_form: false,
        elicitation_url: false,
        sampling: false,
        sampling_tools: false,
        sampling_context: false,
        roots: false,
        tasks_extension: false,
    };

    /// All that a client must declare to be asked this.
    #[must_use]
    pub fn needed(request: &InputRequest) -> Self {
        match request {
            InputRequest::ElicitForm(_) => Self { elicitation_form: true, ..Self::NONE },
            InputRequest::ElicitUrl(_) => Self { elicitation_url: true, ..Self::NONE },
            InputRequest::CreateMessage(message) => Self {
                sampling: true,
                sampling_tools: message.uses_tools(),
                sampling_context: message.wants_context(),
                ..Self::NONE
            },
            InputRequest::ListRoots => Self { roots: true, ..Self::NONE },
        }
    }

    /// All that the client would have to declare besides to be asked these; `None` if it can be asked.
    #[must_use]
    pub fn missing<'q>(&self, requests: impl IntoIterator<Item = &'q InputRequest>) -> Option<Self> {
        let mut missing = Self::NONE;
        for request in requests {
            let needed = Self::needed(request);
            missing.elicitation_form |= needed.elicitation_form && !self.elicitation_form;
            missing.elicitation_url |= needed.elicitation_url && !self.elicitation_url;
            missing.sampling |= needed.sampling && !self.sampling;
            missing.sampling_tools |= needed.sampling_tools && !self.sampling_tools;
            missing.sampling_context |= needed.sampling_context && !self.sampling_context;
            missing.roots |= needed.roots && !self.roots;
        }
        (missing != Self::NONE).then_some(missing)
    }
}

/// The JSON text of a `ClientCapabilities` object with just these.
impl fmt::Display for ClientFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sampling = self.sampling || self.sampling_tools || self.sampling_context;
        let capabilities = [
            ("elicitation", false, [("form", self.elicitation_form), ("url", self.elicitation_url)]),
            ("sampling", sampling, [("tools", self.sampling_tools), ("context", self.sampling_context)]),
            ("roots", self.roots, [("", false); 2]),
            ("extensions", false, [(TASKS_EXTENSION, self.tasks_extension), ("", false)]),
        ];
        f.write_str("{")?;
        let mut comma = "";
        for (name, there, parts) in capabilities {
            if !there && !parts.iter().any(|(_, there)| *there) {
                continue;
            }
            write!(f, "{}\"{name}\":{{", core::mem::replace(&mut comma, ","))?;
            let mut comma = "";
            for (part, _) in parts.iter().filter(|(_, there)| *there) {
                write!(f, "{}\"{part}\":{{}}", core::mem::replace(&mut comma, ","))?;
            }
            f.write_str("}")?;
        }
        f.write_str("}")
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
