"""A small server on the Python SDK, in both eras: python python_sdk.py --stdio | --http | --sse"""

import json
from typing import Annotated

import mcp.types as types
from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, Resolve
from pydantic import Field

from listening import serve
from small import Confirm, Counts, Region, Sum, config, counts, main, suggestions, wait

server = MCPServer("python-small", version="1.0.0", instructions="A server to try clients with.", log_level="ERROR")


@server.tool()
def echo(text: str) -> types.CallToolResult:
    """Says it again"""
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


@server.tool()
def add(a: float, b: float) -> Sum:
    """Adds"""
    return Sum(sum=a + b)


@server.tool()
def counter() -> Counts:
    """How many calls of slow ran and were stopped"""
    return Counts(**counts)


@server.tool(structured_output=False)
async def slow(ms: Annotated[int, Field(json_schema_extra={"x-mcp-header": "Ms"})], ctx: Context) -> str:
    """Waits, with progress"""
    return await wait(ms, ctx)


@server.tool(structured_output=False)
async def touch(ctx: Context) -> str:
    """Changes config://app"""
    config["touched"] += 1
    await ctx.notify_resource_updated("config://app")
    return f"touched {config['touched']} times"


# In the legacy era each question is a request to the client, in the modern one a round of its own.
def ask_confirm(env: str) -> Elicit[Confirm]:
    return Elicit(f"Deploy to {env}: go ahead?", Confirm)


def ask_region(env: str, confirmed: Annotated[Confirm, Resolve(ask_confirm)]) -> Elicit[Region]:
    return Elicit(f"Deploy to {env}: which region?", Region)


@server.tool(structured_output=False)
def deploy(
    env: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Env"})],
    confirmed: Annotated[Confirm, Resolve(ask_confirm)],
    chosen: Annotated[Region, Resolve(ask_region)],
) -> str:
    """Asks twice"""
    return f"Deploy to {env}: confirm={json.dumps(confirmed.confirm)}, region={chosen.region}"


@server.resource("config://app", mime_type="application/json")
def app() -> str:
    return json.dumps(config)


@server.resource("users://{id}", mime_type="text/plain")
def user(id: str) -> str:
    return f"user {id}"


@server.prompt()
def greet(tone: str) -> str:
    """Greets"""
    return f"Greet me in a {tone} tone."


@server.completion()
async def complete(ref, argument, context):
    return types.Completion(values=suggestions(ref, argument))


main(
    stdio=lambda: server.run("stdio"),
    http=lambda: serve(server.streamable_http_app(), "/mcp"),
    sse=lambda: serve(server.sse_app(), "/sse"),
)
