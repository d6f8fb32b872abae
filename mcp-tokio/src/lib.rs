//! Runs `mcp-proto` on tokio.
