"""A small server on the Python SDK, in both eras: python python_sdk.py --stdio | --http | --sse"""

import asyncio
import json
import sys
from typing import Annotated

import mcp.types as types
from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, Resolve
from pydantic import BaseModel, Field

from listening import serve

TONES = ["formal", "friendly", "frank"]
USERS = ["ada", "alan", "grace"]
counts = {"ran": 0, "stopped": 0}
config = {"touched": 0}

server = MCPServer("python-small", version="1.0.0", instructions="A server to try clients with.", log_level="ERROR")


class Sum(BaseModel):
    sum: float


class Counts(BaseModel):
    ran: int
    stopped: int


class Confirm(BaseModel):
    confirm: bool = Field(title="Go ahead?")


class Region(BaseModel):
    region: str = Field(title="Which region?")


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
    counts["ran"] += 1
    try:
        for step in range(5):
            await ctx.report_progress(step, 4)
            if step < 4:
                await asyncio.sleep(ms / 4000)
    except asyncio.CancelledError:
        counts["stopped"] += 1
        raise
    return f"waited {ms} ms"


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
    if isinstance(ref, types.PromptReference) and (ref.name, argument.name) == ("greet", "tone"):
        known = TONES
    elif isinstance(ref, types.ResourceTemplateReference) and (ref.uri, argument.name) == ("users://{id}", "id"):
        known = USERS
    else:
        return None
    return types.Completion(values=[value for value in known if value.startswith(argument.value)])


def main():
    match sys.argv[1:]:
        case ["--stdio"]:
            server.run("stdio")
        case ["--http"]:
            serve(server.streamable_http_app(), "/mcp")
        case ["--sse"]:
            serve(server.sse_app(), "/sse")
        case _:
            sys.exit("expected --stdio, --http or --sse")


main()
