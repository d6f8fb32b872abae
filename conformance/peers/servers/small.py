"""What the small servers in Python have in common: the rest is how each SDK wants it."""

import asyncio
import sys

import mcp.types as types
from pydantic import BaseModel, Field

TONES = ["formal", "friendly", "frank"]
USERS = ["ada", "alan", "grace"]
counts = {"ran": 0, "stopped": 0}
config = {"touched": 0}


class Sum(BaseModel):
    sum: float


class Counts(BaseModel):
    ran: int
    stopped: int


class Confirm(BaseModel):
    confirm: bool = Field(title="Go ahead?")


class Region(BaseModel):
    region: str = Field(title="Which region?")


async def wait(ms, ctx):
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


def suggestions(ref, argument):
    if isinstance(ref, types.PromptReference) and (ref.name, argument.name) == ("greet", "tone"):
        known = TONES
    elif isinstance(ref, types.ResourceTemplateReference) and (ref.uri, argument.name) == ("users://{id}", "id"):
        known = USERS
    else:
        return []
    return [value for value in known if value.startswith(argument.value)]


def main(**ways):
    """Runs the one that the command line names: `--stdio`, `--http` or `--sse`."""
    match sys.argv[1:]:
        case [option] if (way := ways.get(option.removeprefix("--"))):
            way()
        case _:
            sys.exit(f"expected one of {', '.join(f'--{name}' for name in ways)}")
