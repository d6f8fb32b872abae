//! What clients and servers can do. [spec: basic#capabilities]

use alloc::string::String;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Json, Members, Str};
use crate::rpc;

/// The tasks extension, since 2026-07-28.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// What a client can do: an open object, of which everything is kept.
///
/// Reading it never fails over a member of an odd type: such a member counts as a capability, unless it
/// is `null` or `false`. [spec: basic#client-capabilities]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientCapabilities(Members<Json>);

/// What a server can do: an open object, of which everything is kept.
///
/// Reading it never fails over a member of an odd type: such a member counts as a capability, unless it
/// is `null` or `false`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerCapabilities(Members<Json>);

impl ClientCapabilities {
    /// Nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self(Members::new())
    }

    /// Questions to the user by form. Since 2025-06-18.
    #[must_use]
    pub fn form_elicitation(self) -> Self {
        self.with(&["elicitation", "form"], Json::empty_object())
    }

    /// Questions to the user by URL. Since 2025-11-25.
    #[must_use]
    pub fn url_elicitation(self) -> Self {
        // A lone `url` would take back a bare `elicitation`, which means form.
        let form = self.supports_form_elicitation();
        let both = if form { self.form_elicitation() } else { self };
        both.with(&["elicitation", "url"], Json::empty_object())
    }

    /// Text from a model.
    #[must_use]
    pub fn sampling(self) -> Self {
        self.with(&["sampling"], Json::empty_object())
    }

    /// Text from a model that may use tools. Since 2025-11-25.
    #[must_use]
    pub fn sampling_tools(self) -> Self {
        self.with(&["sampling", "tools"], Json::empty_object())
    }

    /// Text from a model that sees the context of servers. Since 2025-11-25.
    #[must_use]
    pub fn sampling_context(self) -> Self {
        self.with(&["sampling", "context"], Json::empty_object())
    }

    /// Files and folders.
    #[must_use]
    pub fn roots(self) -> Self {
        self.with(&["roots"], Json::empty_object())
    }

    /// Files and folders, and notice of changes. Until 2025-11-25.
    #[must_use]
    pub fn roots_list_changed(self) -> Self {
        self.with(&["roots", "listChanged"], Json::from(true))
    }

    /// An extension, by its id, with its settings: an object. Since 2025-11-25.
    #[must_use]
    pub fn extension(self, id: impl Into<Str>, settings: Json) -> Self {
        self.with_named("extensions", id, settings)
    }

    /// A capability outside the specification.
    #[must_use]
    pub fn experimental(self, name: impl Into<Str>, settings: Json) -> Self {
        self.with_named("experimental", name, settings)
    }

    /// Whether the user can be asked by form. A bare `elicitation` means form.
    #[must_use]
    pub fn supports_form_elicitation(&self) -> bool {
        self.has(&["elicitation", "form"])
            || (self.has(&["elicitation"]) && !self.has(&["elicitation", "url"]))
    }

    /// Whether the user can be asked to visit a URL.
    #[must_use]
    pub fn supports_url_elicitation(&self) -> bool {
        self.has(&["elicitation", "url"])
    }

    /// Whether a model can be asked for text.
    #[must_use]
    pub fn supports_sampling(&self) -> bool {
        self.has(&["sampling"])
    }

    /// Whether a model can be asked with tools.
    #[must_use]
    pub fn supports_sampling_tools(&self) -> bool {
        self.has(&["sampling", "tools"])
    }

    /// Whether a model can be asked with the context of servers.
    #[must_use]
    pub fn supports_sampling_context(&self) -> bool {
        self.has(&["sampling", "context"])
    }

    /// Whether there are roots.
    #[must_use]
    pub fn supports_roots(&self) -> bool {
        self.has(&["roots"])
    }

    /// Whether changes of roots are told. Until 2025-11-25.
    #[must_use]
    pub fn supports_roots_list_changed(&self) -> bool {
        self.has(&["roots", "listChanged"])
    }

    /// Whether the client takes part in tasks as 2025-11-25 has them.
    #[must_use]
    pub fn supports_core_tasks(&self) -> bool {
        self.has(&["tasks"])
    }

    /// As 2026-07-28 has them: without notice of changed roots, for there is no such notification.
    pub(crate) fn stateless(&self) -> Self {
        let mut all = self.clone();
        if self.supports_roots_list_changed() {
            let mut roots = self.list("roots");
            roots.remove("listChanged");
            if let Ok(json) = Json::from_serialize(&roots) {
                all.0.insert("roots", json);
            }
        }
        all
    }

    /// Everything of `needed` that is not here, as the data of an error names it; `None` if all is.
    #[must_use]
    pub fn missing(&self, needed: &Self) -> Option<Self> {
        let mut missing = Self::new();
        if needed.supports_form_elicitation() && !self.supports_form_elicitation() {
            missing = missing.form_elicitation();
        }
        if needed.supports_url_elicitation() && !self.supports_url_elicitation() {
            missing = missing.with(&["elicitation", "url"], Json::empty_object());
        }
        if needed.supports_sampling() && !self.supports_sampling() {
            missing = missing.sampling();
        }
        if needed.supports_sampling_tools() && !self.supports_sampling_tools() {
            missing = missing.sampling_tools();
        }
        if needed.supports_sampling_context() && !self.supports_sampling_context() {
            missing = missing.sampling_context();
        }
        if needed.supports_roots() && !self.supports_roots() {
            missing = missing.roots();
        }
        for list in ["extensions", "experimental"] {
            for (name, settings) in needed.list(list) {
                if !self.names(list, &name) {
                    missing = missing.with_named(list, name, settings);
                }
            }
        }
        (!missing.0.is_empty()).then_some(missing)
    }

    /// Everything of both.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        let form = self.supports_form_elicitation() || other.supports_form_elicitation();
        for (name, value) in other.0.iter() {
            if self.has(&[name]) {
                for (part, settings) in other.list(name) {
                    if !self.has(&[name, &part]) {
                        self = self.with_part(name, part, settings);
                    }
                }
            } else {
                self.0.insert(name.clone(), value.clone());
            }
        }
        // A bare `elicitation` means form, and must go on meaning it beside `url`.
        if form && !self.supports_form_elicitation() { self.form_elicitation() } else { self }
    }
}

impl ServerCapabilities {
    /// Nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self(Members::new())
    }

    /// Tools, and whether changes of their list are told.
    #[must_use]
    pub fn tools(self, list_changed: bool) -> Self {
        self.with_flags("tools", &[("listChanged", list_changed)])
    }

    /// Prompts, and whether changes of their list are told.
    #[must_use]
    pub fn prompts(self, list_changed: bool) -> Self {
        self.with_flags("prompts", &[("listChanged", list_changed)])
    }

    /// Resources, whether changes of one are told, and whether changes of their list are told.
    #[must_use]
    pub fn resources(self, subscribe: bool, list_changed: bool) -> Self {
        self.with_flags("resources", &[("subscribe", subscribe), ("listChanged", list_changed)])
    }

    /// Suggestions for arguments. Since 2025-03-26; in 2024-11-05 they need no capability.
    #[must_use]
    pub fn completions(self) -> Self {
        self.with(&["completions"], Json::empty_object())
    }

    /// Log messages.
    #[must_use]
    pub fn logging(self) -> Self {
        self.with(&["logging"], Json::empty_object())
    }

    /// Tasks for calls of tools, as 2025-11-25 has them; whether they can be listed and cancelled.
    #[must_use]
    pub fn core_tasks(self, list: bool, cancel: bool) -> Self {
        let call = Members::from_iter([("call", Json::empty_object())]);
        let tools = Json::from_serialize(&Members::from_iter([("tools", call)]));
        let requests = tools.unwrap_or_else(|_| Json::empty_object()); // such a map always has a JSON form
        let mut all = self.with(&["tasks", "requests"], requests);
        for (name, offered) in [("list", list), ("cancel", cancel)] {
            if offered {
                all = all.with(&["tasks", name], Json::empty_object());
            }
        }
        all
    }

    /// An extension, by its id, with its settings: an object. Since 2025-11-25.
    #[must_use]
    pub fn extension(self, id: impl Into<Str>, settings: Json) -> Self {
        self.with_named("extensions", id, settings)
    }

    /// Without an extension.
    #[must_use]
    pub fn without_extension(mut self, id: &str) -> Self {
        let mut extensions = self.list("extensions");
        if extensions.remove(id).is_some() {
            self.0.remove("extensions");
            for (id, settings) in extensions {
                self = self.extension(id, settings);
            }
        }
        self
    }

    /// A capability outside the specification.
    #[must_use]
    pub fn experimental(self, name: impl Into<Str>, settings: Json) -> Self {
        self.with_named("experimental", name, settings)
    }

    /// Whether there are tools.
    #[must_use]
    pub fn has_tools(&self) -> bool {
        self.has(&["tools"])
    }

    /// Whether changes of the list of tools are told.
    #[must_use]
    pub fn has_tools_list_changed(&self) -> bool {
        self.has(&["tools", "listChanged"])
    }

    /// Whether there are prompts.
    #[must_use]
    pub fn has_prompts(&self) -> bool {
        self.has(&["prompts"])
    }

    /// Whether changes of the list of prompts are told.
    #[must_use]
    pub fn has_prompts_list_changed(&self) -> bool {
        self.has(&["prompts", "listChanged"])
    }

    /// Whether there are resources.
    #[must_use]
    pub fn has_resources(&self) -> bool {
        self.has(&["resources"])
    }

    /// Whether changes of a resource are told to those who ask.
    #[must_use]
    pub fn has_resource_subscriptions(&self) -> bool {
        self.has(&["resources", "subscribe"])
    }

    /// Whether changes of the list of resources are told.
    #[must_use]
    pub fn has_resources_list_changed(&self) -> bool {
        self.has(&["resources", "listChanged"])
    }

    /// Whether there are suggestions for arguments.
    #[must_use]
    pub fn has_completions(&self) -> bool {
        self.has(&["completions"])
    }

    /// Whether there are log messages.
    #[must_use]
    pub fn has_logging(&self) -> bool {
        self.has(&["logging"])
    }

    /// Whether calls of tools may become tasks as 2025-11-25 has them.
    #[must_use]
    pub fn has_core_tasks(&self) -> bool {
        self.has(&["tasks", "requests", "tools", "call"])
    }

    fn with_flags(self, name: &'static str, flags: &[(&'static str, bool)]) -> Self {
        let mut all = self.with(&[name], Json::empty_object());
        for (flag, _) in flags.iter().filter(|(_, set)| *set) {
            all = all.with(&[name, flag], Json::from(true));
        }
        all
    }
}

/// What both kinds share.
macro_rules! open_set {
    ($type:ident) => {
        impl $type {
            /// Whether an extension is declared.
            #[must_use]
            pub fn has_extension(&self, id: &str) -> bool {
                self.names("extensions", id)
            }

            /// The settings of an extension.
            #[must_use]
            pub fn extension_settings(&self, id: &str) -> Option<Json> {
                self.list("extensions").remove(id)
            }

            /// All members, known and unknown.
            #[must_use]
            pub const fn members(&self) -> &Members<Json> {
                &self.0
            }

            /// All members, known and unknown, to change them.
            #[must_use]
            pub const fn members_mut(&mut self) -> &mut Members<Json> {
                &mut self.0
            }

            /// Whether nothing is declared.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }

            /// Sets one capability, or one part of one, and keeps the others.
            fn with(mut self, path: &[&'static str], value: Json) -> Self {
                match path {
                    [name] if !self.0.get(name).is_some_and(Json::is_object) => {
                        self.0.insert(*name, value);
                        self
                    }
                    [name, part] => self.with_part(name, *part, value),
                    _ => self,
                }
            }

            fn with_named(self, list: &'static str, name: impl Into<Str>, settings: Json) -> Self {
                self.with_part(list, name, settings)
            }

            fn with_part(mut self, name: &str, part: impl Into<Str>, value: Json) -> Self {
                let mut parts = self.list(name);
                parts.insert(part, value);
                if let Ok(json) = Json::from_serialize(&parts) {
                    self.0.insert(String::from(name), json);
                }
                self
            }

            /// The members of a member that is an object; empty if it is none.
            fn list(&self, name: &str) -> Members<Json> {
                self.0.get(name).and_then(|json| json.decode().ok()).unwrap_or_default()
            }

            fn names(&self, list: &str, name: &str) -> bool {
                self.has(&[list, name])
            }

            /// Whether the path leads to anything but `null` and `false`.
            fn has(&self, path: &[&str]) -> bool {
                let Some((first, rest)) = path.split_first() else { return false };
                self.0.get(first).is_some_and(|json| declares(json.get(), rest))
            }
        }

        /// Named, so that a view can leave out what a revision lacks.
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_newtype_struct(stringify!($type), &self.0)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Members::deserialize(deserializer).map(Self)
            }
        }
    };
}

open_set! { ClientCapabilities }
open_set! { ServerCapabilities }

fn declares(json: &str, path: &[&str]) -> bool {
    match path {
        [] => !matches!(json, "null" | "false"),
        [name, rest @ ..] => rpc::Members::from_json(json)
            .and_then(|m| m.get(name))
            .is_some_and(|json| declares(json.get(), rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::de;

    fn client(text: &str) -> ClientCapabilities {
        de::from_str(text).unwrap()
    }

    fn text(value: &impl Serialize) -> String {
        serde_json::to_string(value).unwrap()
    }

    #[test]
    fn a_bare_elicitation_means_form() {
        // C-ELIC-06, M06
        for (text, form, url) in [
            ("{}", false, false),
            (r#"{"elicitation":{}}"#, true, false),
            (r#"{"elicitation":{"form":{}}}"#, true, false),
            (r#"{"elicitation":{"url":{}}}"#, false, true),
            (r#"{"elicitation":{"form":{},"url":{}}}"#, true, true),
            (r#"{"elicitation":{"new":{}}}"#, true, false),
            (r#"{"elicitation":null}"#, false, false),
            (r#"{"elicitation":{"form":null,"url":{}}}"#, false, true),
        ] {
            let caps = client(text);
            assert_eq!(
                (caps.supports_form_elicitation(), caps.supports_url_elicitation()),
                (form, url),
                "{text}"
            );
        }
        let both = client(r#"{"elicitation":{}}"#).url_elicitation();
        assert_eq!(text(&both), r#"{"elicitation":{"form":{},"url":{}}}"#);
        assert_eq!(text(&ClientCapabilities::new().url_elicitation()), r#"{"elicitation":{"url":{}}}"#);
    }

    #[test]
    fn everything_unknown_is_kept() {
        let given = r#"{"zeta":[1],"roots":{"listChanged":true,"x":1.0},"experimental":{"a":{"b":null}},"sampling":true}"#;
        let caps = client(given);
        assert_eq!(text(&caps), given);
        assert!(
            caps.supports_roots_list_changed() && caps.supports_sampling() && !caps.supports_sampling_tools()
        );
        assert_eq!(
            text(&caps.sampling_tools().roots()),
            given
                .replace("true}", "{\"tools\":{}}}")
                .replace("\"listChanged\":{\"tools\":{}}", "\"listChanged\":true")
        );
        for bad in ["[]", "null", r#"{"roots":{},"roots":{}}"#] {
            assert!(de::from_str::<ClientCapabilities>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn missing_capabilities_are_named() {
        // S-META-04
        let needed = ClientCapabilities::new()
            .form_elicitation()
            .sampling_tools()
            .extension(TASKS_EXTENSION, Json::empty_object());
        let missing = client(r#"{"elicitation":{},"sampling":{}}"#).missing(&needed).unwrap();
        assert_eq!(
            text(&missing),
            r#"{"sampling":{"tools":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#
        );
        assert_eq!(needed.missing(&needed), None);
        assert_eq!(ClientCapabilities::new().missing(&needed), Some(needed.clone()));
        let url = ClientCapabilities::new().url_elicitation();
        assert_eq!(client(r#"{"elicitation":{}}"#).missing(&url), Some(url.clone()));
        assert_eq!(
            url.missing(&client(r#"{"elicitation":{}}"#)),
            Some(ClientCapabilities::new().form_elicitation())
        );
    }

    #[test]
    fn both_sets_are_united() {
        let form = client(r#"{"elicitation":{}}"#);
        let url = ClientCapabilities::new().url_elicitation();
        let both = form.and(&url);
        assert!(both.supports_form_elicitation() && both.supports_url_elicitation());
        let all = both.and(&ClientCapabilities::new().sampling_tools().roots());
        assert!(all.supports_sampling_tools() && all.supports_roots() && all.supports_form_elicitation());
        assert_eq!(all.clone().and(&all), all);
    }

    #[test]
    fn servers_declare_what_they_offer() {
        let caps = ServerCapabilities::new()
            .tools(true)
            .resources(true, false)
            .prompts(false)
            .completions()
            .logging();
        assert_eq!(
            text(&caps),
            r#"{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"completions":{},"logging":{}}"#
        );
        assert!(caps.has_tools_list_changed() && caps.has_prompts() && !caps.has_prompts_list_changed());
        assert!(
            caps.has_resource_subscriptions() && !caps.has_resources_list_changed() && !caps.has_core_tasks()
        );
        let tasks = ServerCapabilities::new().core_tasks(true, true);
        assert_eq!(text(&tasks), r#"{"tasks":{"requests":{"tools":{"call":{}}},"list":{},"cancel":{}}}"#);
        assert!(tasks.has_core_tasks());
        let extended =
            ServerCapabilities::new().extension("com.example/x", Json::parse(r#"{"a":1}"#).unwrap());
        assert!(extended.has_extension("com.example/x") && !extended.has_extension("com.example/y"));
        assert_eq!(extended.extension_settings("com.example/x").unwrap().get(), r#"{"a":1}"#);
    }
}
