//! Whether results of tools keep what their schemas promise, with the feature `validate`.

use crate::client::{CallError, Completed};

/// The check of results against output schemas.
pub(super) struct Outputs;

impl Outputs {
    /// Whether a result fits the output schema of its tool, as far as that was listed. A schema that cannot be
    /// used, because it is none or refers to something elsewhere, promises nothing that could be checked.
    /// [spec: server/tools#output-schema]
    ///
    /// # Errors
    ///
    /// It does not.
    #[cfg(feature = "validate")]
    #[allow(clippy::unused_self)] // without the feature there is nothing to know either
    pub(super) fn check(&self, completed: &Completed<'_>) -> Result<(), CallError> {
        use crate::client::InvalidOutput;

        let broken = |reason: &str| {
            Err(CallError::Malformed(alloc::format!("at /result/structuredContent: {reason}")))
        };
        match completed.check_output() {
            Ok(()) | Err(InvalidOutput::Schema(_)) => Ok(()),
            Err(InvalidOutput::Missing) => broken("expected a value"),
            Err(InvalidOutput::Mismatch(reason)) => {
                broken(&alloc::format!("expected what the tool promises, {reason}"))
            }
        }
    }

    /// Without the feature nothing is checked.
    #[cfg(not(feature = "validate"))]
    #[allow(clippy::unused_self, clippy::unnecessary_wraps)] // the other half of the feature can fail
    pub(super) const fn check(&self, _: &Completed<'_>) -> Result<(), CallError> {
        Ok(())
    }
}
