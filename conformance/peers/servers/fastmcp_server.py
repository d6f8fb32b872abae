"""A small server on FastMCP, in both eras: python fastmcp_server.py --stdio | --http | --sse"""

import json
from typing import Annotated

import mcp.types as types
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.elicitation import AcceptedElicitation
from pydantic import Field

from listening import serve
from small import Confirm, Counts, Region, Sum, config, counts, main, suggestions, wait

QUESTIONS = {
    "confirm": {"type": "boolean", "title": "Go ahead?"},
    "region": {"type": "string", "title": "Which region?"},
}

# Lists come in pages, so that cursors are followed too.
server = FastMCP("fastmcp-small", version="1.0.0", instructions="A server to try clients with.", list_page_size=2)


@server.tool(output_schema=None)
def echo(text: str) -> str:
    """Says it again"""
    return text


@server.tool
def add(a: float, b: float) -> Sum:
    """Adds"""
    return Sum(sum=a + b)


@server.tool
def counter() -> Counts:
    """How many calls of slow ran and were stopped"""
    return Counts(**counts)


@server.tool(output_schema=None)
async def slow(ms: Annotated[int, Field(json_schema_extra={"x-mcp-header": "Ms"})], ctx: Context) -> str:
    """Waits, with progress"""
    return await wait(ms, ctx)


@server.tool(output_schema=None)
async def touch(ctx: Context) -> str:
    """Changes config://app"""
    config["touched"] += 1
    await ctx.send_notification(types.ResourceUpdatedNotification(params=types.ResourceUpdatedNotificationParams(uri="config://app")))
    return f"touched {config['touched']} times"


@server.tool(output_schema=None)
async def deploy(
    env: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Env"})], ctx: Context
) -> str | types.InputRequiredResult:
    """Asks twice"""
    if ctx.request_context.protocol_version < "2026-07-28":
        answers = {}
        for key, form in (("confirm", Confirm), ("region", Region)):
            outcome = await ctx.elicit(f"Deploy to {env}: {QUESTIONS[key]['title']}", form)
            if not isinstance(outcome, AcceptedElicitation):
                raise ToolError(f"{key}: {outcome.action}")
            answers[key] = getattr(outcome.data, key)
    else:
        answers = json.loads(ctx.request_state or "{}")
        for key, schema in QUESTIONS.items():
            if key in answers:
                continue
            answer = (ctx.input_responses or {}).get(key)
            if answer is None:
                return types.InputRequiredResult(
                    input_requests={
                        key: types.ElicitRequest(
                            params=types.ElicitRequestFormParams(
                                message=f"Deploy to {env}: {schema['title']}",
                                requested_schema={"type": "object", "properties": {key: schema}, "required": [key]},
                            )
                        )
                    },
                    request_state=json.dumps(answers),
                )
            if answer.action != "accept":
                raise ToolError(f"{key}: {answer.action}")
            answers[key] = answer.content[key]
    return f"Deploy to {env}: confirm={json.dumps(answers['confirm'])}, region={answers['region']}"


@server.resource("config://app", mime_type="application/json")
def app() -> str:
    return json.dumps(config)


@server.resource("users://{id}", mime_type="text/plain")
def user(id: str) -> str:
    return f"user {id}"


@server.prompt
def greet(tone: str) -> str:
    """Greets"""
    return f"Greet me in a {tone} tone."


@server.completion
def complete(ref, argument, context):
    return suggestions(ref, argument)


main(
    stdio=lambda: server.run("stdio", show_banner=False),
    http=lambda: serve(server.http_app(), "/mcp"),
    sse=lambda: serve(server.http_app(transport="sse"), "/sse"),
)
