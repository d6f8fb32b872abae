//! Schemas written by hand are enforced, with the feature `validate`.

/// Without the feature schemas are shown to clients and not enforced.
///
/// # Errors
///
/// None; with the feature, a schema that cannot be used.
#[cfg(not(feature = "validate"))]
#[allow(clippy::unnecessary_wraps)] // the other half of the feature can fail
pub(crate) fn wrap(
    _: &crate::model::Tool,
    call: super::handler::ToolCall,
) -> Result<super::handler::ToolCall, alloc::string::String> {
    Ok(call)
}

#[cfg(feature = "validate")]
pub(crate) use enforced::{compile, describe, wrap};

#[cfg(feature = "validate")]
mod enforced {
    use alloc::boxed::Box;
    use alloc::format;
    use alloc::string::{String, ToString};
    use alloc::sync::Arc;

    use jsonschema::{Retrieve, Uri, Validator};
    use serde_json::Value;

    use crate::model::{JsonSchema, Tool};
    use crate::rpc::Error;
    use crate::service::error::Reply;
    use crate::service::handler::{ToolCall, bad_arguments};

    /// Puts the checks of a tool's schemas around its handler.
    ///
    /// Schemas come from the server's author, but arguments do not: patterns run in linear time and
    /// nothing is fetched. [spec: basic#ref-resolution]
    ///
    /// # Errors
    ///
    /// A schema cannot be used: it is none, or refers to something outside of itself.
    pub(crate) fn wrap(tool: &Tool, call: ToolCall) -> Result<ToolCall, String> {
        let input =
            compile(&tool.input_schema).map_err(|e| format!("the input schema cannot be used: {e}"))?;
        let output = match &tool.output_schema {
            Some(schema) => {
                Some(Arc::new(compile(schema).map_err(|e| format!("the output schema cannot be used: {e}"))?))
            }
            None => None,
        };
        Ok(Arc::new(move |ctx, arguments| {
            let version = ctx.version();
            let value: Value =
                serde_json::from_str(arguments).map_err(|e| bad_arguments(version, &e.to_string()))?;
            if let Some(error) = input.iter_errors(&value).next() {
                return Err(bad_arguments(version, &describe(&error)));
            }
            let future = call(ctx, arguments)?;
            let output = output.clone();
            Ok(Box::pin(async move {
                let reply = future.await;
                match (&output, reply) {
                    (Some(schema), Reply::Tool(result)) if !result.failed() => {
                        let fits = result
                            .structured_content
                            .as_ref()
                            .and_then(|json| serde_json::from_str::<Value>(json.get()).ok())
                            .is_some_and(|value| schema.is_valid(&value));
                        // What a tool declares and does not keep is the server's fault, and no client's business.
                        if fits { Reply::Tool(result) } else { Reply::Error(Error::internal()) }
                    }
                    (_, reply) => reply,
                }
            }))
        }))
    }

    pub(crate) fn compile(schema: &JsonSchema) -> Result<Validator, String> {
        let value: Value = serde_json::from_str(schema.get()).map_err(|e| e.to_string())?;
        jsonschema::options()
            .with_retriever(Nothing)
            .with_pattern_options(jsonschema::PatternOptions::regex())
            .build(&value)
            .map_err(|e| e.to_string())
    }

    /// Gives nothing: a reference that leaves the schema is an error.
    struct Nothing;

    impl Retrieve for Nothing {
        fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn core::error::Error + Send + Sync>> {
            Err(format!("{uri} is outside of the schema and nothing is fetched").into())
        }
    }

    pub(crate) fn describe(error: &jsonschema::ValidationError<'_>) -> String {
        let at = error.instance_path().to_string();
        let text: String = error.to_string().chars().take(300).collect();
        if at.is_empty() { format!("at the root: {text}") } else { format!("at {at}: {text}") }
    }
}
