//! Tools and what they return. [spec: server/tools]

use alloc::{borrow::Cow, format, string::String, vec::Vec};
use core::fmt;

use serde::{Deserialize, Serialize};

use super::{
    CacheScope, ContentBlock, Icon, InvalidJson, Json, JsonSchema, Members, Meta, ProtocolVersion,
    ResultBody, Str, json, number,
    view::{self, WriteError},
};
use crate::rpc::{
    de::{self, DecodeError},
    write_str,
};

/// A tool, as listed. [spec: server/tools#tool]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Tool {
    /// Unique name; see [`ToolName`].
    pub name: Str,
    /// Name for people. Since 2025-06-18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Str>,
    /// What it does; a hint to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Str>,
    /// Schema of the arguments. Its root says `"type":"object"`.
    pub input_schema: JsonSchema,
    /// Schema of `structuredContent`. Since 2025-06-18; before 2026-07-28 only with an object root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<JsonSchema>,
    /// What the tool does to the world. Since 2025-03-26.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Icons in several sizes. Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Whether a call may become a task. Only 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ToolExecution>,
    /// Metadata. Since 2025-06-18.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl Tool {
    /// A tool with this name, whose arguments follow this schema.
    #[must_use]
    pub fn new(name: impl Into<Str>, input_schema: JsonSchema) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            input_schema,
            output_schema: None,
            annotations: None,
            icons: None,
            execution: None,
            meta: None,
        }
    }

    setters! {
        title: Str, description: Str, output_schema: JsonSchema, annotations: ToolAnnotations, icons: Vec<Icon>,
        execution: ToolExecution, meta: Meta,
    }

    /// The name to show to people: the title, else the title in the annotations, else the name.
    #[must_use]
    pub fn display_name(&self) -> &str {
        let annotated = || self.annotations.as_ref().and_then(|a| a.title.as_deref());
        self.title.as_deref().or_else(annotated).unwrap_or(&self.name)
    }

    /// The tool with schemas that `version` allows, and with the title where it looks for one; `None` if
    /// all is well as it is.
    pub(crate) fn fitted(&self, version: ProtocolVersion) -> Option<Self> {
        let moved_title = self.title.as_ref().filter(|_| {
            let annotated = self.annotations.as_ref().is_some_and(|annotations| annotations.title.is_some());
            !annotated && version.has_member("Tool", "annotations") && !version.has_member("Tool", "title")
        });
        let drop_output = self.output_schema.as_ref().is_some_and(|schema| {
            !version.has_any_structured_content()
                && version.has_member("Tool", "outputSchema")
                && !schema.root_is_object_type()
        });
        let narrow =
            |schema: &JsonSchema| if version.has_boolean_subschemas() { None } else { narrowed(schema) };
        let input = narrow(&self.input_schema);
        let output = if drop_output { None } else { self.output_schema.as_ref().and_then(narrow) };
        if !drop_output && input.is_none() && output.is_none() && moved_title.is_none() {
            return None;
        }
        let mut tool = self.clone();
        if let Some(title) = moved_title {
            tool.annotations.get_or_insert_default().title = Some(title.clone());
        }
        if let Some(schema) = input {
            tool.input_schema = schema;
        }
        if drop_output {
            tool.output_schema = None;
        } else if output.is_some() {
            tool.output_schema = output;
        }
        Some(tool)
    }
}

/// The schema with `true` and `false` properties of its root as objects, or `None` if it has none.
fn narrowed(schema: &JsonSchema) -> Option<JsonSchema> {
    if !["true", "false"]
        .iter()
        .any(|word| memchr::memmem::find(schema.get().as_bytes(), word.as_bytes()).is_some())
    {
        return None; // most schemas: not worth reading
    }
    let mut root: Members<Json> = schema.as_json().decode().ok()?;
    let mut properties: Members<Json> = root.get("properties")?.decode().ok()?;
    let mut changed = false;
    properties.retain(|_, property| {
        let Some(allowed) = property.as_bool() else { return true };
        changed = true;
        *property = if allowed { Json::empty_object() } else { Json::nothing_schema() };
        true
    });
    if !changed {
        return None;
    }
    root.insert("properties", Json::from_serialize(&properties).ok()?);
    JsonSchema::from_serialize(&root).ok()
}

/// What a tool does to the world. Hints only: a client must not trust those of a server it does not
/// trust. [spec: server/tools#tool]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// Name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Str>,
    /// It changes nothing. Taken as false if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// It may destroy, not only add. Taken as true if absent; means nothing for a read-only tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// A second call with the same arguments changes nothing more. Taken as false if absent; means
    /// nothing for a read-only tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It reaches an open world, such as the web. Taken as true if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl ToolAnnotations {
    /// No hints.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    setters! { title: Str }
    plain_setters! {
        read_only_hint: bool, destructive_hint: bool, idempotent_hint: bool, open_world_hint: bool,
    }
}

/// How a tool is run. Only 2025-11-25.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolExecution {
    /// Whether a call may become a task. Taken as forbidden if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_support: Option<TaskSupport>,
}

impl ToolExecution {
    /// With this support of tasks.
    #[must_use]
    pub const fn new(task_support: TaskSupport) -> Self {
        Self { task_support: Some(task_support) }
    }
}

names! {
    /// Whether a call of a tool may become a task. Only 2025-11-25.
    #[derive(Default)]
    pub enum TaskSupport {
        /// It must not.
        #[default]
        Forbidden = "forbidden",
        /// The client decides.
        Optional = "optional",
        /// It must.
        Required = "required",
    }
}

/// A tool name that every client accepts: 1 to 128 letters, digits, `_`, `-` and `.`, all ASCII.
/// [spec: server/tools#tool-names]
///
/// Lists from a peer may hold other names, so [`Tool::name`] is a plain text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName(Str);

/// A text is no [`ToolName`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidToolName {
    /// It has no characters.
    Empty,
    /// It is longer than 128 characters.
    TooLong,
    /// It has a character that is no ASCII letter or digit, `_`, `-` or `.`.
    Character(char),
}

impl ToolName {
    /// The most characters of a name.
    pub const MAX_LEN: usize = 128;

    /// Checks a name.
    pub fn parse(name: impl Into<Str>) -> Result<Self, InvalidToolName> {
        let name = name.into();
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if let Some(c) = name.chars().take(Self::MAX_LEN).find(|c| !allowed(*c)) {
            return Err(InvalidToolName::Character(c));
        }
        match name.len() {
            0 => Err(InvalidToolName::Empty),
            1..=Self::MAX_LEN => Ok(Self(name)),
            _ => Err(InvalidToolName::TooLong),
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<ToolName> for Str {
    fn from(name: ToolName) -> Self {
        name.0
    }
}

impl AsRef<str> for ToolName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for InvalidToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a tool name must not be empty"),
            Self::TooLong => write!(f, "a tool name has at most {} characters", ToolName::MAX_LEN),
            Self::Character(c) => {
                write!(f, "a tool name holds only ASCII letters, digits, `_`, `-` and `.`, not {c:?}")
            }
        }
    }
}

impl core::error::Error for InvalidToolName {}

list_result! {
    /// Answer to `tools/list`.
    ListToolsResult {
        /// One page of tools.
        tools: Tool
    }
    fitted by fitted_tools
}

fn fitted_tools(list: &ListToolsResult, version: ProtocolVersion) -> Cow<'_, ListToolsResult> {
    let Some(first) = list.tools.iter().position(|tool| tool.fitted(version).is_some()) else {
        return Cow::Borrowed(list);
    };
    let mut result = list.clone();
    for tool in &mut result.tools[first..] {
        if let Some(fitted) = tool.fitted(version) {
            *tool = fitted;
        }
    }
    Cow::Owned(result)
}

impl ListToolsResult {
    /// Reads a list tool by tool: one that cannot be read, or whose input schema is not that of an
    /// object, is left out and reported, and does not cost the others.
    ///
    /// # Errors
    ///
    /// What is no list of tools at all.
    pub fn decode_each(json: &str) -> Result<(Self, Vec<DecodeError>), DecodeError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", expecting = "a list of tools")]
        struct Page {
            tools: Vec<Json>,
            next_cursor: Option<Str>,
            #[serde(default, deserialize_with = "number::millis")]
            ttl_ms: u64,
            #[serde(default, deserialize_with = "super::result::scope")]
            cache_scope: CacheScope,
            #[serde(rename = "_meta")]
            meta: Option<Meta>,
        }

        let Page { tools: raw, next_cursor, ttl_ms, cache_scope, meta } = de::from_str(json)?;
        let (mut tools, mut faults) = (Vec::with_capacity(raw.len()), Vec::new());
        for (at, json) in raw.iter().enumerate() {
            match json.decode::<Listed>() {
                Ok(Listed(tool)) => tools.push(tool),
                Err(fault) => faults.push(fault.within(&format!("/tools/{at}"))),
            }
        }
        Ok((Self { tools, next_cursor, ttl_ms, cache_scope, meta }, faults))
    }
}

/// A tool that can be called.
struct Listed(Tool);

impl<'de> Deserialize<'de> for Listed {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let tool = Tool::deserialize(deserializer)?;
        if tool.input_schema.root_is_object_type() {
            return Ok(Self(tool));
        }
        Err(serde::de::Error::custom("expected an `inputSchema` of type `object`"))
    }
}

/// Answer to `tools/call`. [spec: server/tools#tool-result]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolResult {
    /// What the model reads.
    pub content: Vec<ContentBlock>,
    /// What programs read; `null` is a value. Since 2025-06-18; before 2026-07-28 only an object.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub structured_content: Option<Json>,
    /// The tool failed, and `content` tells the model why. Taken as false if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Metadata, written with the envelope.
    #[serde(rename = "_meta", default, skip_serializing)]
    pub meta: Option<Meta>,
    /// Of a result that a client was given: whether it is what the tool promises. Not on the wire.
    #[serde(skip)]
    pub output: OutputCheck,
}

/// Whether a result of a tool was held against the output schema with which the tool was listed.
///
/// One that does not fit is an error in place of a result. [spec: server/tools#output-schema]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputCheck {
    /// Nobody did: without the feature `validate` and the client of `service` nobody does.
    #[default]
    None,
    /// There is nothing to hold it against: the tool has no schema, was never listed, or says that it failed.
    Unpromised,
    /// It fits.
    Fits,
    /// It could not be held against the schema, and why: it is none, or refers to another document. Nothing is
    /// ever fetched, so take such a result for what it is worth. [spec: basic#ref-resolution]
    Unchecked(String),
}

impl CallToolResult {
    /// Success with this content.
    #[must_use]
    pub fn new(content: impl Into<Vec<ContentBlock>>) -> Self {
        Self { content: content.into(), ..Self::default() }
    }

    /// Success with one text.
    #[must_use]
    pub fn text(text: impl Into<Str>) -> Self {
        Self::new([ContentBlock::text(text)])
    }

    /// A failure that the model shall read and may correct.
    #[must_use]
    pub fn error(text: impl Into<Str>) -> Self {
        Self { is_error: Some(true), ..Self::text(text) }
    }

    /// Success with a value for programs, and its JSON as text for the model and for older clients.
    pub fn structured<T: Serialize + ?Sized>(value: &T) -> Result<Self, InvalidJson> {
        let json = Json::from_serialize(value)?;
        Ok(Self { structured_content: Some(json.clone()), ..Self::text(String::from(json.get())) })
    }

    /// Adds a block at the end.
    #[must_use]
    pub fn with(mut self, block: impl Into<ContentBlock>) -> Self {
        self.content.push(block.into());
        self
    }

    setters! { structured_content: Json, meta: Meta }
    plain_setters! { is_error: bool }

    /// Whether the tool failed.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.is_error == Some(true)
    }
}

impl ResultBody for CallToolResult {
    fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()
    }

    /// Blocks of an unknown kind become text. A `structuredContent` that the revision cannot carry goes,
    /// and if there is no other content its JSON becomes text, so that nothing is lost.
    fn fitted(&self, version: ProtocolVersion) -> Cow<'_, Self> {
        let carried = version.has_member("CallToolResult", "structuredContent");
        let lost = self
            .structured_content
            .as_ref()
            .filter(|json| !carried || (!version.has_any_structured_content() && !json.is_object()));
        let said = lost.filter(|_| self.content.is_empty());
        let dropped = lost.filter(|_| carried);
        let content = ContentBlock::fit_all(&self.content, version);
        if let (Cow::Borrowed(_), None, None) = (&content, said, dropped) {
            return Cow::Borrowed(self);
        }
        let mut content = content.into_owned();
        content.extend(said.map(|json| ContentBlock::text(String::from(json.get()))));
        let structured_content = if lost.is_some() { None } else { self.structured_content.clone() };
        Cow::Owned(Self {
            content,
            structured_content,
            is_error: self.is_error,
            meta: self.meta.clone(),
            output: self.output.clone(),
        })
    }

    /// Plain text is what most calls answer, it is the same in every revision, and it can be long: it is
    /// written without a serializer.
    fn write(&self, version: ProtocolVersion, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let plain = |block: &ContentBlock| matches!(block, ContentBlock::Text(text) if text.is_plain());
        if self.structured_content.is_some() || !self.content.iter().all(plain) {
            return view::write(out, version, &*self.fitted(version));
        }
        out.extend_from_slice(b"{\"content\":[");
        let texts = self.content.iter().filter_map(|block| match block {
            ContentBlock::Text(text) => Some(&text.text),
            _ => None,
        });
        for (at, text) in texts.enumerate() {
            out.extend_from_slice(if at > 0 {
                b",{\"type\":\"text\",\"text\":"
            } else {
                b"{\"type\":\"text\",\"text\":"
            });
            write_str(out, text);
            out.push(b'}');
        }
        out.push(b']');
        if let Some(is_error) = self.is_error {
            out.extend_from_slice(if is_error { b",\"isError\":true" } else { b",\"isError\":false" });
        }
        out.push(b'}');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ProtocolVersion as V;

    use super::*;

    fn text<T: ResultBody + Clone>(version: V, result: &T) -> String {
        let mut out = Vec::new();
        result.write(version, &mut out).unwrap();
        // However it is written, it is what the serializer writes.
        let mut same = Vec::new();
        view::write(&mut same, version, &*result.fitted(version)).unwrap();
        assert_eq!(out, same);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn plain_text_is_written_like_everything_else() {
        for result in [
            CallToolResult::new([]),
            CallToolResult::text("a \"b\"\n"),
            CallToolResult::error("x").with(ContentBlock::text("y")),
            CallToolResult::text("x").is_error(false),
        ] {
            for version in V::ALL {
                text(version, &result);
            }
        }
    }

    #[test]
    fn names_are_short_and_plain() {
        // S-TOOL-07, S-TOOL-08, S-TOOL-09
        for good in ["a", "getUser", "DATA_EXPORT_v2", "admin.tools-list", &"x".repeat(128)] {
            assert_eq!(ToolName::parse(String::from(good)).unwrap().as_str(), good);
        }
        assert_eq!(ToolName::parse(""), Err(InvalidToolName::Empty));
        assert_eq!(ToolName::parse("x".repeat(129)), Err(InvalidToolName::TooLong));
        for (bad, c) in [("a b", ' '), ("a,b", ','), ("a/b", '/'), ("é", 'é'), ("a\n", '\n')] {
            assert_eq!(ToolName::parse(bad), Err(InvalidToolName::Character(c)));
        }
    }

    #[test]
    fn null_structured_content_is_a_value() {
        let result: CallToolResult =
            serde_json::from_str(r#"{"content":[],"structuredContent":null}"#).unwrap();
        assert_eq!(result.structured_content, Some(Json::null()));
        assert_eq!(text(V::V2026_07_28, &result), r#"{"content":[],"structuredContent":null}"#);
        let absent: CallToolResult = serde_json::from_str(r#"{"content":[],"isError":null}"#).unwrap();
        assert_eq!(absent, CallToolResult::new([]));
        assert_eq!(text(V::V2026_07_28, &absent), r#"{"content":[]}"#); // E09
    }

    #[test]
    fn structured_content_goes_where_it_cannot_be_carried() {
        // LS-TOOL-01, LS-TOOL-02
        let array = CallToolResult::structured(&[1, 2]).unwrap();
        let said = r#"{"content":[{"type":"text","text":"[1,2]"}]"#;
        assert_eq!(text(V::V2026_07_28, &array), alloc::format!("{said},\"structuredContent\":[1,2]}}"));
        for version in [V::V2024_11_05, V::V2025_03_26, V::V2025_06_18, V::V2025_11_25] {
            assert_eq!(text(version, &array), alloc::format!("{said}}}"), "{version}");
        }
        let bare = CallToolResult::new([]).structured_content(Json::from(7));
        assert_eq!(text(V::V2025_11_25, &bare), r#"{"content":[{"type":"text","text":"7"}]}"#);
        let object = CallToolResult::new([]).structured_content(Json::empty_object());
        assert_eq!(text(V::V2025_06_18, &object), r#"{"content":[],"structuredContent":{}}"#);
        assert_eq!(text(V::V2025_03_26, &object), r#"{"content":[{"type":"text","text":"{}"}]}"#);
    }

    #[test]
    fn nothing_to_change_is_borrowed() {
        let result = CallToolResult::text("a").with(ContentBlock::image(b"", "image/png"));
        let structured = CallToolResult::structured(&Members::from_iter([("a", 1)])).unwrap();
        let list = ListToolsResult::new([Tool::new("a", JsonSchema::any_object())]);
        for version in V::ALL {
            assert!(matches!(result.fitted(version), Cow::Borrowed(_)));
            assert!(matches!(structured.fitted(version), Cow::Borrowed(_)), "{version}");
            assert!(matches!(list.fitted(version), Cow::Borrowed(_)));
        }
    }

    #[test]
    fn schemas_are_narrowed_for_older_revisions() {
        // LS-TOOL-01: before 2026-07-28 an output schema has an object root, and properties are objects.
        let schema = |t: &str| JsonSchema::parse(t).unwrap();
        let open =
            schema(r#"{"type":"object","properties":{"z":true,"a":{"type":"string"},"n":false},"x-k":1.0}"#);
        let list = ListToolsResult::new([
            Tool::new("plain", JsonSchema::any_object()).output_schema(JsonSchema::any_object()),
            Tool::new("open", open).output_schema(schema(r#"{"type":"array"}"#)),
        ]);
        let old = list.fitted(V::V2025_11_25);
        assert_eq!(old.tools[0], list.tools[0]);
        assert_eq!(
            old.tools[1].input_schema.get(),
            r#"{"type":"object","properties":{"z":{},"a":{"type":"string"},"n":{"not":{}}},"x-k":1.0}"#
        );
        assert_eq!(old.tools[1].output_schema, None);
        assert!(matches!(list.fitted(V::V2026_07_28), Cow::Borrowed(_)));
    }

    #[test]
    fn one_bad_tool_does_not_cost_the_list() {
        // T05
        let good = r#"{"name":"good","inputSchema":{"type":"object"}}"#;
        let old = r#"{"name":"old","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{}}}"#;
        let bad = [
            r#"{"name":"a","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#"}}"#,
            r#"{"name":"b","inputSchema":null}"#,
            r#"{"name":"c","inputSchema":{"type":"string"}}"#,
            "null",
            r#"{"inputSchema":{"type":"object"}}"#,
        ];
        let all = alloc::format!(
            r#"{{"tools":[{good},{},{old}],"nextCursor":null,"cacheScope":"odd"}}"#,
            bad.join(",")
        );
        let (list, faults) = ListToolsResult::decode_each(&all).unwrap();
        let names: Vec<&str> = list.tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(
            (names, list.next_cursor, list.cache_scope),
            (alloc::vec!["good", "old"], None, CacheScope::Private)
        );
        assert_eq!(faults.len(), bad.len());
        for (at, fault) in faults.iter().enumerate() {
            assert!(fault.pointer.starts_with(&alloc::format!("/tools/{}", at + 1)), "{fault}");
        }
        for none in [r#"{"tools":null}"#, r#"{"tools":{}}"#, "{}", "[]"] {
            assert!(ListToolsResult::decode_each(none).is_err(), "{none}");
        }
    }

    #[test]
    fn a_title_goes_where_the_revision_looks_for_it() {
        let list = ListToolsResult::new([Tool::new("t", JsonSchema::any_object()).title("T")]);
        let bare = r#"{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}"#;
        assert_eq!(text(V::V2024_11_05, &list), bare);
        let annotated =
            r#"{"tools":[{"name":"t","inputSchema":{"type":"object"},"annotations":{"title":"T"}}]}"#;
        assert_eq!(text(V::V2025_03_26, &list), annotated);
        assert!(matches!(list.fitted(V::V2025_06_18), Cow::Borrowed(_)));
    }

    #[test]
    fn a_tool_is_written_with_what_its_revision_has() {
        let tool = Tool::new("t", JsonSchema::any_object())
            .title("T")
            .annotations(ToolAnnotations::new().title("A").read_only_hint(true))
            .icons([Icon::new("data:,")])
            .execution(ToolExecution::new(TaskSupport::Optional))
            .meta(Meta::new().with("k", true));
        assert_eq!(tool.display_name(), "T");
        let list = ListToolsResult::new([tool]).cache(5, CacheScope::Public);
        let a = r#"{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}"#;
        let b = r#"{"tools":[{"name":"t","inputSchema":{"type":"object"},"annotations":{"title":"A","readOnlyHint":true}}]}"#;
        let c = r#"{"tools":[{"name":"t","title":"T","inputSchema":{"type":"object"},"annotations":{"title":"A","readOnlyHint":true},"_meta":{"k":true}}]}"#;
        let d = r#"{"tools":[{"name":"t","title":"T","inputSchema":{"type":"object"},"annotations":{"title":"A","readOnlyHint":true},"icons":[{"src":"data:,"}],"execution":{"taskSupport":"optional"},"_meta":{"k":true}}]}"#;
        let e = r#"{"tools":[{"name":"t","title":"T","inputSchema":{"type":"object"},"annotations":{"title":"A","readOnlyHint":true},"icons":[{"src":"data:,"}],"_meta":{"k":true}}],"ttlMs":5,"cacheScope":"public"}"#;
        for (version, expected) in V::ALL.into_iter().zip([a, b, c, d, e]) {
            assert_eq!(text(version, &list), expected, "{version}");
        }
    }
}
