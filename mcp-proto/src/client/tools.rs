//! Definitions of tools, as they were listed.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::limits::Limits;
use crate::model::{HeaderArgument, ListToolsResult, Tool};

/// The tools that were seen in lists, schemas verbatim. Bounded; a tool that does not fit is not known.
#[derive(Debug)]
pub(crate) struct Tools {
    known: BTreeMap<String, Entry>,
    bytes: usize,
    max: usize,
    max_bytes: usize,
}

/// A tool as it was listed.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) tool: Tool,
    /// Its output schema, ready for use from the first result on.
    #[cfg(feature = "validate")]
    output: std::sync::OnceLock<Result<jsonschema::Validator, String>>,
}

impl Listed {
    fn new(tool: Tool) -> Self {
        Self {
            tool,
            #[cfg(feature = "validate")]
            output: std::sync::OnceLock::new(),
        }
    }

    /// What the results of this tool must fit, if it says so.
    ///
    /// # Errors
    ///
    /// The schema cannot be used.
    #[cfg(feature = "validate")]
    pub(crate) fn output(&self) -> Option<Result<&jsonschema::Validator, &String>> {
        let schema = self.tool.output_schema.as_ref()?;
        Some(self.output.get_or_init(|| crate::model::schema_check::compile(schema)).as_ref())
    }
}

#[derive(Debug)]
struct Entry {
    tool: Arc<Listed>,
    headers: Vec<HeaderArgument>,
    bytes: usize,
}

impl Tools {
    pub(crate) const fn new(limits: &Limits) -> Self {
        Self { known: BTreeMap::new(), bytes: 0, max: limits.max_tools, max_bytes: limits.max_tool_bytes }
    }

    /// Takes over what a page says.
    pub(crate) fn learn(&mut self, page: &str) {
        let Ok((page, _)) = ListToolsResult::decode_each(page) else { return };
        for tool in page.tools {
            self.forget(&tool.name);
            // All of it counts: titles, icons and metadata are as long as a server likes.
            let Ok(text) = serde_json::to_string(&tool) else { continue };
            let bytes = 256 + text.len();
            // One whose annotations are wrong is not called over HTTP.
            let Ok(headers) = tool.input_schema.header_arguments() else { continue };
            if self.known.len() < self.max && self.bytes + bytes <= self.max_bytes {
                self.bytes += bytes;
                let name = String::from(&*tool.name);
                self.known.insert(name, Entry { tool: Arc::new(Listed::new(tool)), headers, bytes });
            }
        }
    }

    fn forget(&mut self, name: &str) {
        if let Some(old) = self.known.remove(name) {
            self.bytes -= old.bytes;
        }
    }

    pub(crate) fn definition(&self, name: &str) -> Option<Arc<Listed>> {
        self.known.get(name).map(|entry| entry.tool.clone())
    }

    /// The arguments that headers repeat.
    pub(crate) fn headers(&self, name: &str) -> &[HeaderArgument] {
        self.known.get(name).map_or(&[], |entry| &entry.headers)
    }
}
