//! Whether results of tools keep what their schemas promise, with the feature `validate`.

use crate::client::{CallError, Completed};

/// What is known of output schemas.
#[derive(Default)]
pub(super) struct Outputs(#[cfg(feature = "validate")] enforced::Known);

impl Outputs {
    /// Whether a result fits the output schema of its tool, as far as that was listed.
    /// [spec: server/tools#output-schema]
    ///
    /// # Errors
    ///
    /// It does not.
    #[cfg_attr(not(feature = "validate"), allow(clippy::unused_self, clippy::unnecessary_wraps))]
    pub(super) fn check(&self, completed: &Completed<'_>) -> Result<(), CallError> {
        #[cfg(feature = "validate")]
        self.0.check(completed)?;
        let _ = completed;
        Ok(())
    }
}

#[cfg(feature = "validate")]
mod enforced {
    use alloc::collections::BTreeMap;
    use alloc::string::String;
    use alloc::sync::Arc;
    use std::sync::{Mutex, PoisonError};

    use jsonschema::Validator;
    use serde_json::Value;

    use crate::client::request::CallTool;
    use crate::client::{CallError, Completed};
    use crate::model::Tool;
    use crate::service::validate::{compile, describe};

    /// Most schemas that are kept compiled.
    const MOST: usize = 256;

    #[derive(Default)]
    pub(super) struct Known(Mutex<BTreeMap<String, Compiled>>);

    /// The definition of a tool, and its schema ready for use.
    type Compiled = (Arc<Tool>, Option<Arc<Validator>>);

    impl Known {
        /// One that cannot be used, because it is none or refers to something elsewhere, promises nothing
        /// that could be checked.
        fn validator(&self, tool: &Arc<Tool>) -> Option<Arc<Validator>> {
            let schema = tool.output_schema.as_ref()?;
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((compiled, validator)) = known.get(&*tool.name)
                && Arc::ptr_eq(compiled, tool)
            {
                return validator.clone();
            }
            if known.len() >= MOST {
                known.clear();
            }
            let validator = compile(schema).ok().map(Arc::new);
            known.insert(String::from(&*tool.name), (Arc::clone(tool), validator.clone()));
            validator
        }

        pub(super) fn check(&self, completed: &Completed<'_>) -> Result<(), CallError> {
            let Some(validator) = completed.tool.as_ref().and_then(|tool| self.validator(tool)) else {
                return Ok(());
            };
            let Ok(result) = completed.decode::<CallTool>() else { return Ok(()) };
            if result.failed() {
                return Ok(());
            }
            let Some(value) = &result.structured_content else {
                return Err(CallError::Malformed("at /result/structuredContent: expected a value".into()));
            };
            let value: Value = value.decode().map_err(CallError::malformed)?;
            match validator.iter_errors(&value).next() {
                Some(error) => Err(CallError::Malformed(alloc::format!(
                    "at /result/structuredContent: expected what the tool promises, {}",
                    describe(&error)
                ))),
                None => Ok(()),
            }
        }
    }
}
