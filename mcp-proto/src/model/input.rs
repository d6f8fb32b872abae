//! What a server needs from the client before it can answer. [spec: basic/patterns/mrtr]

use alloc::{boxed::Box, vec::Vec};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error, ser::SerializeStruct};

use super::{
    ClientCapabilities, CreateMessage, CreateMessageResult, ElicitForm, ElicitResult, ElicitUrl, Json,
    ListRootsResult, Members, Meta, ProtocolVersion, ResultBody, Str,
    elicitation::Elicit,
    view::{self, WriteError},
};
use crate::rpc::de::{self, DecodeError};

/// One thing that a server asks of the client. In 2026-07-28 it stands in an [`InputRequired`]; before,
/// it is a request of its own.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum InputRequest {
    /// `elicitation/create`: ask the user by form.
    ElicitForm(Box<ElicitForm>),
    /// `elicitation/create`: ask the user to visit a URL.
    ElicitUrl(Box<ElicitUrl>),
    /// `sampling/createMessage`: ask a model.
    CreateMessage(Box<CreateMessage>),
    /// `roots/list`: ask for the files and folders to work on.
    ListRoots,
}

names! {
    /// The method of an [`InputRequest`], which tells what its answer looks like.
    pub enum InputKind {
        /// Answered by an [`ElicitResult`].
        Elicit = "elicitation/create",
        /// Answered by a [`CreateMessageResult`].
        CreateMessage = "sampling/createMessage",
        /// Answered by a [`ListRootsResult`].
        ListRoots = "roots/list",
    }
}

/// The answer to an [`InputRequest`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum InputResponse {
    /// What the user did with a question.
    Elicit(ElicitResult),
    /// What a model said.
    CreateMessage(CreateMessageResult),
    /// The files and folders.
    ListRoots(ListRootsResult),
}

impl InputRequest {
    /// The kind of request.
    #[must_use]
    pub const fn kind(&self) -> InputKind {
        match self {
            Self::ElicitForm(_) | Self::ElicitUrl(_) => InputKind::Elicit,
            Self::CreateMessage(_) => InputKind::CreateMessage,
            Self::ListRoots => InputKind::ListRoots,
        }
    }

    /// The name of the method.
    #[must_use]
    pub const fn method(&self) -> &'static str {
        self.kind().as_str()
    }

    /// What the client must have declared for this to be asked. [spec: basic/patterns/mrtr]
    #[must_use]
    pub fn needs(&self) -> ClientCapabilities {
        let none = ClientCapabilities::new();
        match self {
            Self::ElicitForm(_) => none.form_elicitation(),
            Self::ElicitUrl(_) => none.url_elicitation(),
            Self::CreateMessage(request) => {
                let mut needs = none.sampling();
                if request.uses_tools() {
                    needs = needs.sampling_tools();
                }
                if request.wants_context() {
                    needs = needs.sampling_context();
                }
                needs
            }
            Self::ListRoots => none.roots(),
        }
    }

    /// Appends the params as `version` has them; `{}` for a request without any. On an error, when the
    /// revision cannot express the request, `out` is as it was.
    pub fn write_params(&self, out: &mut Vec<u8>, version: ProtocolVersion) -> Result<(), WriteError> {
        match self {
            Self::ElicitForm(params) => view::write(out, version, &*params.fitted(version)?),
            Self::ElicitUrl(params) => {
                params.check(version).and_then(|()| view::write(out, version, &**params))
            }
            Self::CreateMessage(params) => view::write(out, version, &*params.fitted(version)?),
            Self::ListRoots => {
                out.extend_from_slice(b"{}");
                Ok(())
            }
        }
    }

    /// Reads the params of a request of this method.
    pub fn decode(kind: InputKind, params: &str) -> Result<Self, DecodeError> {
        Ok(match kind {
            InputKind::Elicit => match de::from_str(params)? {
                Elicit::Form(params) => params.into(),
                Elicit::Url(params) => params.into(),
            },
            InputKind::CreateMessage => Self::CreateMessage(Box::new(de::from_str(params)?)),
            InputKind::ListRoots => Self::ListRoots,
        })
    }
}

impl InputResponse {
    /// Reads the answer to this request.
    pub fn decode(request: &InputRequest, json: &str) -> Result<Self, DecodeError> {
        Self::decode_as(request.kind(), json)
    }

    /// Reads the answer to a request of this kind.
    pub fn decode_as(kind: InputKind, json: &str) -> Result<Self, DecodeError> {
        Ok(match kind {
            InputKind::Elicit => Self::Elicit(de::from_str(json)?),
            InputKind::CreateMessage => Self::CreateMessage(de::from_str(json)?),
            InputKind::ListRoots => Self::ListRoots(de::from_str(json)?),
        })
    }

    /// Appends the answer as `version` has it. On an error, when it has no JSON form, `out` is as it was.
    pub fn write(&self, out: &mut Vec<u8>, version: ProtocolVersion) -> Result<(), WriteError> {
        match self {
            Self::Elicit(answer) => answer.write(version, out),
            Self::CreateMessage(answer) => answer.write(version, out),
            Self::ListRoots(answer) => answer.write(version, out),
        }
    }

    /// The kind of request that this answers.
    #[must_use]
    pub const fn kind(&self) -> InputKind {
        match self {
            Self::Elicit(_) => InputKind::Elicit,
            Self::CreateMessage(_) => InputKind::CreateMessage,
            Self::ListRoots(_) => InputKind::ListRoots,
        }
    }
}

impl From<ElicitForm> for InputRequest {
    fn from(params: ElicitForm) -> Self {
        Self::ElicitForm(Box::new(params))
    }
}

impl From<ElicitUrl> for InputRequest {
    fn from(params: ElicitUrl) -> Self {
        Self::ElicitUrl(Box::new(params))
    }
}

impl From<CreateMessage> for InputRequest {
    fn from(params: CreateMessage) -> Self {
        Self::CreateMessage(Box::new(params))
    }
}

impl From<ElicitResult> for InputResponse {
    fn from(answer: ElicitResult) -> Self {
        Self::Elicit(answer)
    }
}

impl From<CreateMessageResult> for InputResponse {
    fn from(answer: CreateMessageResult) -> Self {
        Self::CreateMessage(answer)
    }
}

impl From<ListRootsResult> for InputResponse {
    fn from(answer: ListRootsResult) -> Self {
        Self::ListRoots(answer)
    }
}

/// As 2026-07-28 has it: `{"method":…,"params":…}`, without `jsonrpc` and `id`.
impl Serialize for InputRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("InputRequest", 2)?;
        object.serialize_field("method", self.method())?;
        match self {
            Self::ElicitForm(params) => object.serialize_field("params", params)?,
            Self::ElicitUrl(params) => object.serialize_field("params", params)?,
            Self::CreateMessage(params) => object.serialize_field("params", params)?,
            Self::ListRoots => object.skip_field("params")?,
        }
        object.end()
    }
}

impl<'de> Deserialize<'de> for InputRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// `params` may come first, so it is read when the method is known.
        #[derive(Deserialize)]
        #[serde(expecting = "an input request")]
        struct Request {
            method: InputKind,
            params: Option<Json>,
        }

        let Request { method, params } = Request::deserialize(deserializer)?;
        match (method, params) {
            (InputKind::ListRoots, _) => Ok(Self::ListRoots),
            (kind, Some(params)) => {
                Self::decode(kind, params.get()).map_err(|error| D::Error::custom(error.within("/params")))
            }
            (_, None) => Err(D::Error::missing_field("params")),
        }
    }
}

impl Serialize for InputResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Elicit(answer) => answer.serialize(serializer),
            Self::CreateMessage(answer) => answer.serialize(serializer),
            Self::ListRoots(answer) => answer.serialize(serializer),
        }
    }
}

/// Input requests by key. Keys are the server's choice and unique.
pub type InputRequests = Members<InputRequest>;

impl Members<InputRequest> {
    /// What the client must have declared for all of these to be asked.
    #[must_use]
    pub fn needs(&self) -> ClientCapabilities {
        self.iter().fold(ClientCapabilities::new(), |needs, (_, request)| needs.and(&request.needs()))
    }
}

/// Answers by the key of their request, as received: an answer is read when its request is known, and
/// what nobody asked for is never read. [spec: basic/patterns/mrtr]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InputResponses(Members<Json>);

impl InputResponses {
    /// No answers.
    #[must_use]
    pub const fn new() -> Self {
        Self(Members::new())
    }

    /// Reads the answer to the request of this key and kind; `None` if there is none.
    #[must_use]
    pub fn get(&self, key: &str, kind: InputKind) -> Option<Result<InputResponse, DecodeError>> {
        self.0.get(key).map(|json| InputResponse::decode_as(kind, json.get()))
    }

    /// Adds the answer to the question of this key, or replaces it.
    ///
    /// # Errors
    ///
    /// The answer has no JSON form.
    pub fn answer(
        mut self,
        key: impl Into<Str>,
        answer: impl Into<InputResponse>,
    ) -> Result<Self, super::InvalidJson> {
        self.0.insert(key, Json::from_serialize(&answer.into())?);
        Ok(self)
    }

    /// All answers as received.
    #[must_use]
    pub const fn members(&self) -> &Members<Json> {
        &self.0
    }
}

impl<N: Into<Str>> FromIterator<(N, Json)> for InputResponses {
    fn from_iter<I: IntoIterator<Item = (N, Json)>>(iter: I) -> Self {
        Self(iter.into_iter().collect())
    }
}

/// The answer that more is needed first. At least one of its members must be given.
/// Since 2026-07-28; for older peers the requests are sent one by one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "InputRequiredResult", rename_all = "camelCase")]
#[non_exhaustive]
pub struct InputRequired {
    /// What is needed.
    #[serde(default, skip_serializing_if = "Members::is_empty")]
    pub input_requests: InputRequests,
    /// What the client sends back unchanged. Once sent it is the peer's: protect it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<Str>,
    /// Metadata, written with the envelope.
    #[serde(rename = "_meta", default, skip_serializing)]
    pub meta: Option<Meta>,
}

impl InputRequired {
    /// These requests. Without any, add a state: one of both must be given.
    #[must_use]
    pub const fn new(input_requests: InputRequests) -> Self {
        Self { input_requests, request_state: None, meta: None }
    }

    /// Adds a request under this key. One under the same key is replaced.
    #[must_use]
    pub fn ask(mut self, key: impl Into<Str>, request: impl Into<InputRequest>) -> Self {
        self.input_requests.insert(key, request.into());
        self
    }

    setters! { request_state: Str, meta: Meta }

    /// Whether it asks for nothing and carries no state, which must not be sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.input_requests.is_empty() && self.request_state.is_none()
    }
}

impl ResultBody for InputRequired {
    fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};

    use ProtocolVersion as V;

    use super::*;
    use crate::model::{BooleanSchema, FormSchema, IncludeContext, JsonSchema, Root, SamplingMessage, Tool};

    fn form() -> ElicitForm {
        ElicitForm::new("m", FormSchema::new().required("a", BooleanSchema::new()))
    }

    fn params(request: &InputRequest, version: V) -> Result<String, WriteError> {
        let mut out = b"kept".to_vec();
        let result = request.write_params(&mut out, version);
        let text = String::from_utf8(out).unwrap().strip_prefix("kept").unwrap().to_string();
        result.map(|()| text.clone()).inspect_err(|_| assert_eq!(text, ""))
    }

    #[test]
    fn params_are_those_of_the_revision() {
        let form = InputRequest::from(form());
        let url = InputRequest::from(ElicitUrl::new("m", "https://example.com").elicitation_id("e"));
        let message = InputRequest::from(CreateMessage::new([SamplingMessage::user("hi")], 5));
        for version in V::ALL {
            assert_eq!(params(&InputRequest::ListRoots, version).unwrap(), "{}");
            assert!(params(&message, version).unwrap().contains("\"maxTokens\":5"));
            let modes = version.has_elicitation_modes();
            match params(&form, version) {
                Ok(text) => assert_eq!(text.contains("\"mode\":\"form\""), modes, "{version}"),
                Err(_) => assert!(!version.has_elicitation(), "{version}"),
            }
            match params(&url, version) {
                Ok(text) => assert_eq!(text.contains("elicitationId"), version == V::V2025_11_25),
                Err(_) => assert!(!modes, "{version}"),
            }
        }
    }

    #[test]
    fn requests_stand_in_an_answer_in_order() {
        // S-MRTR-04
        let result = InputRequired::default()
            .ask("z", form())
            .ask("a", InputRequest::ListRoots)
            .ask("m", ElicitUrl::new("u", "https://example.com"))
            .request_state("s");
        let text = serde_json::to_string(&result).unwrap();
        let expected = concat!(
            r#"{"inputRequests":{"z":{"method":"elicitation/create","params":{"mode":"form","message":"m","#,
            r#""requestedSchema":{"type":"object","properties":{"a":{"type":"boolean"}},"required":["a"]}}},"#,
            r#""a":{"method":"roots/list"},"#,
            r#""m":{"method":"elicitation/create","params":{"mode":"url","message":"u","url":"https://example.com"}}},"#,
            r#""requestState":"s"}"#
        );
        assert_eq!(text, expected);
        let back: InputRequired = de::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), expected);
        assert!(InputRequired::default().is_empty() && !back.is_empty()); // S-MRTR-12
        for (bad, reason) in [
            (r#"{"method":"tools/call","params":{}}"#, "/method"),
            (r#"{"method":"elicitation/create"}"#, "/params"),
            (r#"{"params":{"message":5},"method":"elicitation/create"}"#, "/params/message"),
        ] {
            let error = de::from_str::<InputRequest>(bad).unwrap_err().to_string();
            assert!(error.contains(reason), "{bad}: {error}");
        }
        let root_first = r#"{"params":{"_meta":{}},"method":"roots/list","new":1}"#;
        assert_eq!(de::from_str::<InputRequest>(root_first).unwrap(), InputRequest::ListRoots);
    }

    #[test]
    fn answers_are_read_by_the_kind_of_their_request() {
        // M03, S-MRTR-16, S-MRTR-17
        let given = r#"{"a":{"action":"maybe"},"b":{"roots":[{"uri":"file:///x"}]},"c":{"action":"decline","content":[]},"d":5}"#;
        let answers: InputResponses = de::from_str(given).unwrap();
        assert!(matches!(answers.get("a", InputKind::Elicit), Some(Err(_))));
        let roots = answers.get("b", InputKind::ListRoots).unwrap().unwrap();
        assert_eq!(roots, ListRootsResult::new([Root::new("file:///x")]).into());
        assert!(matches!(answers.get("b", InputKind::Elicit), Some(Err(_))));
        assert_eq!(answers.get("c", InputKind::Elicit).unwrap().unwrap(), ElicitResult::decline().into());
        assert!(answers.get("zzz", InputKind::Elicit).is_none());
        assert_eq!(serde_json::to_string(&answers).unwrap(), given);
        for bad in ["[]", "null", "5"] {
            assert!(de::from_str::<InputResponses>(bad).is_err());
        }
    }

    #[test]
    fn each_request_needs_its_capability() {
        // S-MRTR-13, M06
        let needs = |request: InputRequest| serde_json::to_string(&request.needs()).unwrap();
        let plain = CreateMessage::new([SamplingMessage::user("hi")], 5);
        assert_eq!(needs(form().into()), r#"{"elicitation":{"form":{}}}"#);
        assert_eq!(needs(ElicitUrl::new("m", "u").into()), r#"{"elicitation":{"url":{}}}"#);
        assert_eq!(needs(InputRequest::ListRoots), r#"{"roots":{}}"#);
        assert_eq!(needs(plain.clone().into()), r#"{"sampling":{}}"#);
        assert_eq!(needs(plain.clone().include_context(IncludeContext::None).into()), r#"{"sampling":{}}"#);
        let tools = plain
            .tools([Tool::new("t", JsonSchema::any_object())])
            .include_context(IncludeContext::ThisServer);
        assert_eq!(needs(tools.into()), r#"{"sampling":{"tools":{},"context":{}}}"#);
        let all = InputRequired::default()
            .ask("a", form())
            .ask("b", ElicitUrl::new("m", "u"))
            .input_requests
            .needs();
        assert!(all.supports_form_elicitation() && all.supports_url_elicitation() && !all.supports_roots());
    }
}
