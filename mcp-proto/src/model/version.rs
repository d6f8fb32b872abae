//! What each revision has. This is the only file that compares revisions: everything else asks one of
//! the questions below.

use core::fmt;

use super::method::ServerMethod;
use crate::rpc::code;

/// A revision of the protocol that this crate speaks, oldest first.
///
/// The enum is ordered: a later revision is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ProtocolVersion {
    /// `2024-11-05`
    V2024_11_05,
    /// `2025-03-26`
    V2025_03_26,
    /// `2025-06-18`
    V2025_06_18,
    /// `2025-11-25`
    V2025_11_25,
    /// `2026-07-28`
    V2026_07_28,
}

/// How a revision talks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums)] // a third era would break every match on purpose
pub enum Era {
    /// Handshake, sessions, requests from both sides: 2024-11-05 to 2025-11-25.
    Legacy,
    /// Stateless, metadata on every request: 2026-07-28.
    Modern,
}

impl ProtocolVersion {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];
    /// The newest revision.
    pub const LATEST: Self = Self::V2026_07_28;
    /// The newest revision that has a handshake.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;

    /// What a request over HTTP speaks that does not say it: the revision before `MCP-Protocol-Version`.
    /// [spec: 2025-11-25 basic/transports#protocol-version-header]
    pub(crate) const WITHOUT_HEADER: Self = Self::V2025_03_26;

    /// The name on the wire. Anything else, also with other white space, is no revision.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|v| v.as_str() == name)
    }

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era of this revision.
    #[must_use]
    pub const fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// Whether this revision is stateless, with metadata on every request.
    #[must_use]
    pub const fn is_modern(self) -> bool {
        matches!(self.era(), Era::Modern)
    }

    /// The requests of a session over HTTP name its version in `MCP-Protocol-Version`.
    /// [spec: 2025-06-18 basic/transports#protocol-version-header]
    #[must_use]
    pub const fn has_version_header(self) -> bool {
        !matches!(self, Self::V2024_11_05 | Self::V2025_03_26)
    }

    /// JSON-RPC batch arrays must be received. [spec: 2025-03-26 basic#batching]
    #[must_use]
    pub const fn has_batches(self) -> bool {
        matches!(self, Self::V2025_03_26)
    }

    /// An event stream begins with an event that has an id and empty data, and the server may close the
    /// connection and have the client come back later. [spec: 2025-11-25 basic/transports]
    #[must_use]
    pub const fn has_priming_events(self) -> bool {
        matches!(self, Self::V2025_11_25)
    }

    /// An error response may lack its `id`; before that, unreadable input is dropped instead of answered.
    #[must_use]
    pub fn allows_error_without_id(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Arguments that do not fit a tool's schema are an `isError` result; before that, `-32602`.
    /// [spec: server/tools#error-handling]
    #[must_use]
    pub fn reports_bad_arguments_as_result(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// `completion/complete` is gated by a capability of its own.
    #[must_use]
    pub fn has_completions_capability(self) -> bool {
        self >= Self::V2025_03_26
    }

    /// `notifications/progress` has a `message`.
    #[must_use]
    pub fn has_progress_message(self) -> bool {
        self >= Self::V2025_03_26
    }

    /// The server may ask with `elicitation/create`.
    #[must_use]
    pub fn has_elicitation(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Elicitation has modes (`form`, `url`), and the `mode` member is written.
    #[must_use]
    pub fn has_elicitation_modes(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// URL elicitation carries an `elicitationId` and ends with `notifications/elicitation/complete`.
    #[must_use]
    pub const fn has_elicitation_ids(self) -> bool {
        matches!(self, Self::V2025_11_25)
    }

    /// Tasks are part of the core: `params.task`, `tasks/result`, `tasks/list`.
    #[must_use]
    pub const fn has_core_tasks(self) -> bool {
        matches!(self, Self::V2025_11_25)
    }

    /// Tasks are the extension `io.modelcontextprotocol/tasks`.
    #[must_use]
    pub const fn has_tasks_extension(self) -> bool {
        self.is_modern()
    }

    /// Whether a client of this revision may call `method`.
    #[must_use]
    pub fn has_method(self, method: ServerMethod) -> bool {
        use ServerMethod as M;
        match method {
            M::Initialize | M::Ping | M::SetLevel | M::Subscribe | M::Unsubscribe => !self.is_modern(),
            M::Discover | M::Listen | M::UpdateTask => self.is_modern(),
            M::GetTask | M::CancelTask => self.has_core_tasks() || self.has_tasks_extension(),
            M::TaskResult | M::ListTasks => self.has_core_tasks(),
            M::ListTools
            | M::CallTool
            | M::ListResources
            | M::ListResourceTemplates
            | M::ReadResource
            | M::ListPrompts
            | M::GetPrompt
            | M::Complete => true,
        }
    }

    /// The code of "this resource does not exist". [spec: server/resources#error-handling]
    #[must_use]
    pub const fn resource_not_found_code(self) -> i32 {
        if self.is_modern() { code::INVALID_PARAMS } else { code::RESOURCE_NOT_FOUND }
    }

    /// The code of "this version is not served" in an answer to a client that speaks this revision.
    #[must_use]
    pub const fn unsupported_version_code(self) -> i32 {
        if self.is_modern() { code::UNSUPPORTED_PROTOCOL_VERSION } else { code::INVALID_PARAMS }
    }

    /// The code of "the client did not declare what this needs".
    #[must_use]
    pub const fn missing_capability_code(self) -> i32 {
        if self.is_modern() { code::MISSING_REQUIRED_CLIENT_CAPABILITY } else { code::INVALID_REQUEST }
    }

    /// Sampling messages may hold several blocks, tool uses and tool results.
    #[must_use]
    pub fn has_sampling_tools(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Content may be audio.
    #[must_use]
    pub fn has_audio(self) -> bool {
        self >= Self::V2025_03_26
    }

    /// Content may be a link to a resource.
    #[must_use]
    pub fn has_resource_links(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// `structuredContent` may be any JSON, and an output schema any schema; before that, both are
    /// objects: a JSON object, and a schema whose root says `"type":"object"`.
    #[must_use]
    pub const fn has_any_structured_content(self) -> bool {
        self.is_modern()
    }

    /// A property of an input or output schema may be `true` or `false`; before that, it is an object.
    #[must_use]
    pub const fn has_boolean_subschemas(self) -> bool {
        self.is_modern()
    }

    /// Elicitation forms know titled and multiple choices; before that, only `enum` with `enumNames`.
    #[must_use]
    pub fn has_elicitation_choices(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Whether the objects called `object` (by their name in the official schema) have `member`.
    ///
    /// Only for names that this crate writes: an unknown object or member is taken to exist everywhere.
    #[must_use]
    pub fn has_member(self, object: &str, member: &str) -> bool {
        rows(object).iter().all(|row| row.member != member || row.span.contains(self))
    }
}

/// A member that not every revision has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) member: &'static str,
    pub(crate) span: Span,
}

/// Revisions from `first` to `last`, both included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    first: ProtocolVersion,
    last: ProtocolVersion,
}

impl Span {
    pub(crate) fn contains(self, version: ProtocolVersion) -> bool {
        self.first <= version && version <= self.last
    }
}

const fn since_2025_03(member: &'static str) -> Row {
    Row { member, span: Span { first: ProtocolVersion::V2025_03_26, last: ProtocolVersion::LATEST } }
}

const fn since_2025_06(member: &'static str) -> Row {
    Row { member, span: Span { first: ProtocolVersion::V2025_06_18, last: ProtocolVersion::LATEST } }
}

const fn since_2025_11(member: &'static str) -> Row {
    Row { member, span: Span { first: ProtocolVersion::V2025_11_25, last: ProtocolVersion::LATEST } }
}

const fn since_2026_07(member: &'static str) -> Row {
    Row { member, span: Span { first: ProtocolVersion::V2026_07_28, last: ProtocolVersion::LATEST } }
}

const fn only_2025_11(member: &'static str) -> Row {
    Row { member, span: Span { first: ProtocolVersion::V2025_11_25, last: ProtocolVersion::V2025_11_25 } }
}

const fn until_2025_11(member: &'static str) -> Row {
    Row { member, span: Span { first: ProtocolVersion::V2024_11_05, last: ProtocolVersion::V2025_11_25 } }
}

/// The members of an object that not every revision has which has the object at all.
///
/// The names are those of the official schema. A whole object that older revisions lack needs no rows:
/// what leads to it is left out, or its value is changed, before it is written. `_meta` of results is
/// not here, for it is written with the envelope.
pub(crate) fn rows(object: &str) -> &'static [Row] {
    const META: Row = since_2025_06("_meta");
    const TITLE: Row = since_2025_06("title");
    const ICONS: Row = since_2025_11("icons");
    const CACHE: &[Row] = &[since_2026_07("ttlMs"), since_2026_07("cacheScope")];
    match object {
        "Implementation" => {
            const { &[TITLE, ICONS, since_2025_11("description"), since_2025_11("websiteUrl")] }
        }
        "ClientCapabilities" => {
            const { &[since_2025_06("elicitation"), only_2025_11("tasks"), since_2025_11("extensions")] }
        }
        "ServerCapabilities" => {
            const { &[since_2025_03("completions"), only_2025_11("tasks"), since_2025_11("extensions")] }
        }
        "Annotations" => const { &[since_2025_06("lastModified")] },
        "TextContent"
        | "ImageContent"
        | "AudioContent"
        | "EmbeddedResource"
        | "TextResourceContents"
        | "BlobResourceContents"
        | "Root" => const { &[META] },
        "ResourceLink" => const { &[ICONS] },
        "Tool" => {
            const {
                &[
                    since_2025_03("annotations"),
                    TITLE,
                    since_2025_06("outputSchema"),
                    META,
                    ICONS,
                    only_2025_11("execution"),
                ]
            }
        }
        "Resource" | "ResourceTemplate" | "Prompt" => const { &[TITLE, META, ICONS] },
        "PromptArgument" | "PromptReference" => const { &[TITLE] },
        "CallToolResult" => const { &[since_2025_06("structuredContent")] },
        "ListToolsResult"
        | "ListResourcesResult"
        | "ListResourceTemplatesResult"
        | "ListPromptsResult"
        | "ReadResourceResult" => CACHE,
        "CompleteRequestParams" => const { &[since_2025_06("context")] },
        "SamplingMessage" => const { &[since_2025_11("_meta")] },
        "CreateMessageRequestParams" => const { &[since_2025_11("tools"), since_2025_11("toolChoice")] },
        "ElicitRequestFormParams" => const { &[since_2025_11("mode")] },
        "ElicitRequestURLParams" => const { &[only_2025_11("elicitationId")] },
        "ElicitResult" | "ListRootsResult" => const { &[until_2025_11("_meta")] },
        "StringSchema" | "NumberSchema" | "LegacyTitledEnumSchema" => const { &[since_2025_11("default")] },
        "ProgressNotificationParams" => const { &[since_2025_03("message")] },
        _ => &[],
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_order_by_date() {
        for pair in ProtocolVersion::ALL.windows(2) {
            assert!(pair[0] < pair[1] && pair[0].as_str() < pair[1].as_str());
        }
        for v in ProtocolVersion::ALL {
            assert_eq!(ProtocolVersion::parse(v.as_str()), Some(v));
        }
        for other in ["", "2026-07-28 ", "2025-06-19", "draft"] {
            assert_eq!(ProtocolVersion::parse(other), None);
        }
    }
}
