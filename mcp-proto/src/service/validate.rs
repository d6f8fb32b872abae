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
pub(crate) use enforced::wrap;

#[cfg(feature = "validate")]
mod enforced {
    use alloc::boxed::Box;
    use alloc::format;
    use alloc::string::{String, ToString};
    use alloc::sync::Arc;

    use serde_json::Value;

    use crate::model::{Tool, schema_check};
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
        let input = schema_check::compile(&tool.input_schema)
            .map_err(|e| format!("the input schema cannot be used: {e}"))?;
        let output = match &tool.output_schema {
            Some(schema) => Some(Arc::new(
                schema_check::compile(schema)
                    .map_err(|e| format!("the output schema cannot be used: {e}"))?,
            )),
            None => None,
        };
        Ok(Arc::new(move |ctx, arguments| {
            let version = ctx.version();
            let value: Value =
                serde_json::from_str(arguments).map_err(|e| bad_arguments(version, &e.to_string()))?;
            if let Some(error) = input.iter_errors(&value).next() {
                return Err(bad_arguments(version, &schema_check::describe(&error)));
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
}
