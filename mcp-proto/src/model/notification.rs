//! What notifications say: log messages, progress, changes. [spec: server/utilities/logging]

use serde::{Deserialize, Serialize};

use super::{Json, Meta, Str, SubscriptionFilter, number};
use crate::rpc::ProgressToken;

names! {
    /// How grave a log message is, by RFC 5424. Ordered: `Emergency` is the greatest.
    #[derive(PartialOrd, Ord)]
    pub enum LoggingLevel {
        /// Detail for debugging.
        Debug = "debug",
        /// General information.
        Info = "info",
        /// Normal but worth a notice.
        Notice = "notice",
        /// A warning.
        Warning = "warning",
        /// An error.
        Error = "error",
        /// A part of the program failed.
        Critical = "critical",
        /// Action is needed at once.
        Alert = "alert",
        /// The program cannot be used.
        Emergency = "emergency",
    }
}

/// Params of `notifications/message`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "LoggingMessageNotificationParams")]
#[non_exhaustive]
pub struct LogMessage {
    /// How grave it is.
    pub level: LoggingLevel,
    /// Which part of the program says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logger: Option<Str>,
    /// What is said: a text, or any other JSON.
    pub data: Json,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl LogMessage {
    /// This data, at this level.
    #[must_use]
    pub fn new(level: LoggingLevel, data: impl Into<Json>) -> Self {
        Self { level, logger: None, data: data.into(), meta: None }
    }

    setters! { logger: Str, meta: Meta }
}

/// How far a request has come. The value grows with each notification.
/// [spec: basic/patterns/progress]
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// How much is done.
    pub progress: f64,
    /// How much there is to do, if that is known.
    pub total: Option<f64>,
    /// What is going on, for people. Since 2025-03-26.
    pub message: Option<Str>,
}

impl Progress {
    /// So much is done.
    #[must_use]
    pub const fn new(progress: f64) -> Self {
        Self { progress, total: None, message: None }
    }

    setters! { message: Str }
    plain_setters! { total: f64 }

    /// The params of a notification for the request that opted in with this token.
    #[must_use]
    pub fn params<'a>(&'a self, progress_token: &'a ProgressToken) -> impl Serialize + 'a {
        #[derive(Serialize)]
        #[serde(rename = "ProgressNotificationParams", rename_all = "camelCase")]
        struct Params<'a> {
            progress_token: &'a ProgressToken,
            #[serde(serialize_with = "number::serialize")]
            progress: f64,
            #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number::option::serialize")]
            total: Option<f64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            message: Option<&'a Str>,
        }
        let Self { progress, total, message } = self;
        Params { progress_token, progress: *progress, total: *total, message: message.as_ref() }
    }
}

/// Params of `notifications/progress`, as received.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ProgressParams {
    /// The token with which the request opted in.
    pub progress_token: ProgressToken,
    /// How far it has come.
    pub progress: Progress,
    /// Metadata.
    pub meta: Option<Meta>,
}

impl<'de> Deserialize<'de> for ProgressParams {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", expecting = "the params of a progress notification")]
        struct Params {
            progress_token: ProgressToken,
            progress: f64,
            total: Option<f64>,
            message: Option<Str>,
            #[serde(rename = "_meta")]
            meta: Option<Meta>,
        }
        let Params { progress_token, progress, total, message, meta } = Params::deserialize(deserializer)?;
        Ok(Self { progress_token, progress: Progress { progress, total, message }, meta })
    }
}

/// Params of `notifications/resources/updated`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "ResourceUpdatedNotificationParams")]
#[non_exhaustive]
pub struct ResourceUpdated {
    /// The resource, or a part of one, that changed.
    pub uri: Str,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ResourceUpdated {
    /// The resource at this URI changed.
    #[must_use]
    pub fn new(uri: impl Into<Str>) -> Self {
        Self { uri: uri.into(), meta: None }
    }

    setters! { meta: Meta }
}

/// Params of `notifications/elicitation/complete`. Only 2025-11-25.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitationComplete {
    /// The elicitation that the user has finished.
    pub elicitation_id: Str,
}

impl ElicitationComplete {
    /// The elicitation of this id is finished.
    #[must_use]
    pub fn new(elicitation_id: impl Into<Str>) -> Self {
        Self { elicitation_id: elicitation_id.into() }
    }
}

/// Params of `notifications/subscriptions/acknowledged`. Since 2026-07-28.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "SubscriptionsAcknowledgedNotificationParams")]
#[non_exhaustive]
pub struct SubscriptionsAcknowledged {
    /// What of the request is honored.
    pub notifications: SubscriptionFilter,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl SubscriptionsAcknowledged {
    /// This part of the request is honored.
    #[must_use]
    pub const fn new(notifications: SubscriptionFilter) -> Self {
        Self { notifications, meta: None }
    }

    setters! { meta: Meta }
}

#[cfg(test)]
mod tests {
    use alloc::{string::String, vec::Vec};

    use super::*;
    use crate::{
        model::{ProtocolVersion as V, view},
        rpc::de,
    };

    #[test]
    fn levels_are_ordered_and_exact() {
        assert!(LoggingLevel::ALL.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(LoggingLevel::parse("warning"), Some(LoggingLevel::Warning));
        for bad in ["warn", "Warning", "", "trace"] {
            assert_eq!(LoggingLevel::parse(bad), None); // LS-LOG-01
        }
    }

    #[test]
    fn progress_is_written_without_fraction_and_read_back() {
        let text = |version, progress: &Progress| {
            let mut out = Vec::new();
            view::write(&mut out, version, &progress.params(&ProgressToken::from(0))).unwrap();
            String::from_utf8(out).unwrap()
        };
        let progress = Progress::new(1.0).total(2.5).message("m");
        let old = r#"{"progressToken":0,"progress":1,"total":2.5}"#; // C06, T06
        let new = r#"{"progressToken":0,"progress":1,"total":2.5,"message":"m"}"#;
        assert_eq!(text(V::V2024_11_05, &progress), old);
        assert_eq!(text(V::V2025_03_26, &progress), new);
        let back: ProgressParams = de::from_str(new).unwrap();
        assert_eq!((back.progress_token, back.progress), (ProgressToken::from(0), progress));
        assert!(view::write(&mut Vec::new(), V::LATEST, &Progress::new(f64::NAN).params(&1.into())).is_err());
        assert!(de::from_str::<ProgressParams>(r#"["0",1]"#).is_err());
    }

    #[test]
    fn log_data_is_any_json() {
        let message = LogMessage::new(LoggingLevel::Error, "boom").logger("db");
        let text = r#"{"level":"error","logger":"db","data":"boom"}"#;
        assert_eq!(serde_json::to_string(&message).unwrap(), text);
        let null: LogMessage = de::from_str(r#"{"level":"debug","data":null}"#).unwrap();
        assert!(null.data.is_null());
    }
}
