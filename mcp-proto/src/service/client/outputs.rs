//! Whether results of tools keep what their schemas promise, with the feature `validate`.

use crate::client::{CallError, Completed};
use crate::model::OutputCheck;

/// The check of results against output schemas.
pub(super) struct Outputs;

impl Outputs {
    /// Whether a result fits the output schema of its tool, as far as that was listed and can be used.
    /// [spec: server/tools#output-schema]
    ///
    /// # Errors
    ///
    /// It does not.
    #[cfg(feature = "validate")]
    #[allow(clippy::unused_self)] // without the feature there is nothing to know either
    pub(super) fn check(&self, completed: &Completed<'_>) -> Result<OutputCheck, CallError> {
        use crate::client::InvalidOutput;

        completed.check_output().map_err(|invalid| {
            let why = match invalid {
                InvalidOutput::Missing => "expected a value".into(),
                InvalidOutput::Mismatch(reason) => {
                    alloc::format!("expected what the tool promises, {reason}")
                }
            };
            CallError::Malformed(alloc::format!("at /result/structuredContent: {why}"))
        })
    }

    /// Without the feature nothing is checked.
    #[cfg(not(feature = "validate"))]
    #[allow(clippy::unused_self, clippy::unnecessary_wraps)] // the other half of the feature can fail
    pub(super) const fn check(&self, _: &Completed<'_>) -> Result<OutputCheck, CallError> {
        Ok(OutputCheck::None)
    }
}
