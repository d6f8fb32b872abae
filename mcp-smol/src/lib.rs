//! Runs `mcp-proto` on smol.
