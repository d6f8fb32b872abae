"""The Python SDK in both eras: python server.py --stdio | --http

Over HTTP it serves the transport of 2024-11-05 beside Streamable HTTP. What the decorators of the SDK cannot say is left out:
schemas written by hand, the size of a resource, requests to subscribe in the legacy era.
"""

import asyncio
import base64
import json
import socket
import sys
from typing import Annotated, Any

import mcp.types as types
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, Resolve
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.shared.exceptions import UrlElicitationRequiredError
from pydantic import BaseModel, Field, ValidationError

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC"
WAV = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA=="
TONES = ["casual", "cheerful", "formal", "friendly"]
USERS = [str(at) for at in range(1, 151)]
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
counts = {"ran": 0, "stopped": 0}
state = {"version": 1, "asked": 0}

server = MCPServer("subject-python", version="1.0.0", instructions="A server to be tested. It keeps nothing.", log_level="ERROR")


def modern(ctx):
    return (ctx.protocol_version or "") >= "2026-07-28"


def tool(name, description, **more):
    return server.tool(name=name, description=description, structured_output=False, **more)


def result(*content, **more):
    return types.CallToolResult(content=list(content), **more)


def text(value):
    return types.TextContent(type="text", text=value)


class Sum(BaseModel):
    sum: float


class Counts(BaseModel):
    ran: int
    stopped: int


@tool("echo", "Gives the text back")
def echo(text: str) -> str:
    return text


@server.tool(
    title="Addition",
    description="Adds two numbers",
    annotations=types.ToolAnnotations(read_only_hint=True, idempotent_hint=True),
)
def add(a: float, b: float) -> Sum:
    return Sum(sum=a + b)


@tool("slow", "Waits; stops when the call is cancelled")
async def slow(ms: Annotated[int, Field(ge=0)]) -> str:
    counts["ran"] += 1
    try:
        await asyncio.sleep(ms / 1000)
    except asyncio.CancelledError:
        counts["stopped"] += 1
        raise
    return f"Waited {ms} ms"


@server.tool(description="How many calls of slow began, and how many were stopped")
def counter() -> Counts:
    return Counts(**counts)


@tool("flood", "Sends so many notifications")
async def flood(n: Annotated[int, Field(ge=0)], ctx: Context) -> str:
    meta = ctx.request_context.meta
    wants_progress = bool(meta) and meta.get("progress_token") is not None
    for at in range(1, n + 1):
        if wants_progress:
            await ctx.report_progress(at, n)
        else:
            await ctx.log("info", at, logger_name="flood")
    return f"Sent {n}"


@tool("touch", "Changes config://app")
async def touch(ctx: Context) -> str:
    state["version"] += 1
    await ctx.notify_resource_updated("config://app")
    return f"config://app has version {state['version']}"


def embedded(uri, mime_type, content):
    resource = types.TextResourceContents(uri=uri, mime_type=mime_type, text=content)
    return types.EmbeddedResource(type="resource", resource=resource)


image = types.ImageContent(type="image", data=PNG, mime_type="image/png")
NOTE = {"com.example/kind": "note"}
FIXED = [
    ("test_simple_text", "Gives a text", result(text("This is a simple text response for testing."))),
    ("test_image_content", "Gives an image", result(image)),
    ("test_audio_content", "Gives a sound", result(types.AudioContent(type="audio", data=WAV, mime_type="audio/wav"))),
    (
        "test_embedded_resource",
        "Gives a resource with its content",
        result(embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")),
    ),
    (
        "test_embedded_blob",
        "Gives a binary resource with its content",
        result(
            types.EmbeddedResource(
                type="resource",
                resource=types.BlobResourceContents(uri="test://embedded-blob", mime_type="image/png", blob=PNG),
            )
        ),
    ),
    (
        "test_multiple_content_types",
        "Gives a text, an image and a resource",
        result(
            text("Multiple content types test:"),
            image,
            embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
        ),
    ),
    (
        "test_resource_link",
        "Gives a link to a resource",
        result(
            types.ResourceLink(
                type="resource_link",
                uri="test://static-text",
                name="static-text",
                title="Static text",
                description="A text that never changes",
                mime_type="text/plain",
                size=48,
                annotations=types.Annotations(audience=["user"], priority=0.5),
            )
        ),
    ),
    (
        "test_annotated_content",
        "Gives a text with annotations and metadata",
        result(
            types.TextContent(
                type="text",
                text="For the user, and important",
                annotations=types.Annotations(
                    audience=["user", "assistant"], priority=1.0, last_modified="2026-07-28T00:00:00Z"
                ),
                _meta=NOTE,
            )
        ),
    ),
    ("test_no_content", "Gives nothing", result()),
    ("test_result_meta", "Gives a result with metadata", result(text("See _meta"), _meta=NOTE)),
]
for name, description, fixed in FIXED:

    def give(fixed=fixed):
        def call() -> types.CallToolResult:
            return fixed

        return call

    tool(name, description)(give())


@tool("test_error_handling", "Always fails")
def error_handling() -> str:
    raise RuntimeError("This tool intentionally returns an error for testing")


@tool(
    "test_annotated_tool",
    "Is listed with everything that a tool can be listed with",
    title="Annotated tool",
    annotations=types.ToolAnnotations(
        title="Annotated tool", read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    ),
    icons=[types.Icon(src=f"data:image/png;base64,{PNG}", mime_type="image/png", sizes=["1x1"])],
    meta=NOTE,
)
def annotated() -> str:
    return "annotated"


@tool("test_tool_with_progress", "Reports progress: 0, 50 and 100 of 100")
async def with_progress(ctx: Context) -> str:
    for at in (0, 50, 100):
        await ctx.report_progress(at, 100)
    return "Tool with progress completed"


@tool("test_tool_with_logging", "Logs three messages of level info")
async def with_logging(ctx: Context) -> str:
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.log("info", message)
    return "Tool with logging completed"


@tool("test_logging_tool", "Logs a message of each level")
async def logging_tool(ctx: Context) -> str:
    for level in LEVELS:
        await ctx.log(level, level, logger_name="test_logging_tool")
    return "Logged"


@tool("test_trigger_tool_change", "Says that the list of tools changed")
async def tools_changed(ctx: Context) -> str:
    await ctx.notify_tools_changed()
    return "Said that the list of tools changed"


@tool("test_trigger_prompt_change", "Says that the list of prompts changed")
async def prompts_changed(ctx: Context) -> str:
    await ctx.notify_prompts_changed()
    return "Said that the list of prompts changed"


@tool("test_trigger_resource_change", "Says that the list of resources changed")
async def resources_changed(ctx: Context) -> str:
    await ctx.notify_resources_changed()
    return "Said that the list of resources changed"


@tool("test_request_meta", "Gives com.example/note of the request's _meta back")
def request_meta(ctx: Context) -> str:
    return json.dumps((ctx.request_context.meta or {}).get("com.example/note"))


@tool("test_x_mcp_header", "Has an argument that HTTP clients repeat in a header")
def x_mcp_header(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "none") -> str:
    return f"region: {region}"


# Questions. In the legacy era each is a request to the client, in the modern one a part of a round.
class Name(BaseModel):
    name: str


class Color(BaseModel):
    color: str


class Ok(BaseModel):
    ok: bool


class Confirm(BaseModel):
    confirm: bool


class Region(BaseModel):
    region: str


class AboutUse(BaseModel):
    context: str


class Person(BaseModel):
    username: str = Field(description="User's response")
    email: str = Field(description="User's email address")


class Defaults(BaseModel):
    name: str = Field(default="John Doe", description="Your name")
    age: int = Field(default=30, description="Your age")
    score: float = Field(default=95.5, description="Your score")
    status: str = Field(default="active", json_schema_extra={"enum": ["active", "inactive", "pending"]})
    verified: bool = Field(default=True, description="Whether you are verified")


THREE = (1, 2, 3)
TITLED = [{"const": f"value{at}", "title": f"Option {at}"} for at in THREE]
UNTITLED = [f"option{at}" for at in THREE]


class Choices(BaseModel):
    untitledSingle: str = Field(json_schema_extra={"enum": UNTITLED})
    titledSingle: str = Field(json_schema_extra={"oneOf": TITLED})
    legacyEnum: str = Field(
        json_schema_extra={"enum": [f"opt{at}" for at in THREE], "enumNames": [f"Option {at}" for at in THREE]}
    )
    untitledMulti: list[str] = Field(json_schema_extra={"items": {"type": "string", "enum": UNTITLED}})
    titledMulti: list[str] = Field(json_schema_extra={"items": {"anyOf": TITLED}})


class Bounds(BaseModel):
    code: str = Field(title="Code", min_length=2, max_length=4)
    count: int = Field(title="Count", ge=1, le=10)
    email: str = Field(default="", title="Email", json_schema_extra={"format": "email"})


class Answer(BaseModel):
    """What became of a question."""

    action: str = "accept"
    content: dict[str, Any] | None = None

    def did(self):
        return f"action={self.action}, content={json.dumps(self.content or {}, separators=(',', ':'))}"


class Form:
    def __init__(self, message, model):
        self.message, self.model = message, model

    def request(self):
        schema = self.model.model_json_schema()
        return types.ElicitRequest(params=types.ElicitRequestFormParams(message=self.message, requested_schema=schema))

    async def ask(self, ctx):
        answer = await ctx.elicit(self.message, self.model)
        data = answer.data.model_dump() if answer.action == "accept" else None
        return Answer(action=answer.action, content=data)

    def read(self, answer):
        if not isinstance(answer, types.ElicitResult):
            return None
        if answer.action != "accept":
            return Answer(action=answer.action)
        try:
            return Answer(content=self.model.model_validate(answer.content).model_dump())
        except ValidationError:
            return None


class Sample:
    def __init__(self, prompt, **more):
        content = types.TextContent(type="text", text=prompt)
        self.messages, self.more = [types.SamplingMessage(role="user", content=content)], more

    def request(self):
        params = types.CreateMessageRequestParams(messages=self.messages, max_tokens=100, **self.more)
        return types.CreateMessageRequest(params=params)

    async def ask(self, ctx):
        answer = await ctx.session.create_message(
            self.messages, max_tokens=100, related_request_id=ctx.request_id, **self.more
        )
        return self.read(answer)

    def read(self, answer):
        content = getattr(answer, "content", None)
        if content is None:
            return None
        blocks = content if isinstance(content, list) else [content]
        said = "\n".join(block.text for block in blocks if block.type == "text")
        return Answer(content={"said": said, "reason": getattr(answer, "stop_reason", None) or "none"})


class Roots:
    def request(self):
        return types.ListRootsRequest()

    async def ask(self, ctx):
        return self.read(await ctx.session.list_roots())

    def read(self, answer):
        if not isinstance(answer, types.ListRootsResult):
            return None
        return Answer(content={"uris": [str(root.uri) for root in answer.roots]})


async def rounds(ctx, groups, done):
    """Asks one group of questions after the other, and gives the answers to `done`."""
    answers = {}
    if modern(ctx) and ctx.request_state:
        answers = {key: Answer.model_validate(value) for key, value in json.loads(ctx.request_state).items()}
    for group in groups:
        missing = {}
        for key, question in group.items():
            if key in answers:
                continue
            if not modern(ctx):
                answers[key] = await question.ask(ctx)
            else:
                given = (ctx.input_responses or {}).get(key)
                answer = question.read(given) if given is not None else None
                if answer is None:
                    missing[key] = question.request()
                else:
                    answers[key] = answer
        if missing:
            kept = json.dumps({key: answer.model_dump() for key, answer in answers.items()})
            return types.InputRequiredResult(input_requests=missing, request_state=kept)
    return done(answers)


def needs(answer, then):
    """A tool that gets no answer fails."""
    if answer.action != "accept":
        raise RuntimeError(f"The user said {answer.action}")
    return then(answer.content)


Asked = str | types.InputRequiredResult


def ask_confirm(env: str) -> Elicit[Confirm]:
    return Elicit(f"Deploy to {env}?", Confirm)


def ask_region(env: str, confirmed: Annotated[Confirm, Resolve(ask_confirm)]) -> Elicit[Region]:
    return Elicit("To which region?", Region)


@tool("deploy", "Deploys, after two questions")
def deploy(
    env: str,
    confirmed: Annotated[Confirm, Resolve(ask_confirm)],
    chosen: Annotated[Region, Resolve(ask_region)],
) -> str:
    return f"Deploy to {env}: confirm={json.dumps(confirmed.confirm)}, region={chosen.region}"


@tool("test_sampling", "Asks the client's model")
async def sampling(prompt: str, ctx: Context) -> Asked:
    return await rounds(ctx, [{"model": Sample(prompt)}], lambda all: f"LLM response: {all['model'].content['said']}")


@tool("test_elicitation", "Asks the user for a name and an address")
async def elicitation(message: str, ctx: Context) -> Asked:
    return await rounds(ctx, [{"user": Form(message, Person)}], lambda all: f"User response: {all['user'].did()}")


def asks(name, description, groups, done):
    @tool(name, description)
    async def call(ctx: Context) -> Asked:
        return await rounds(ctx, groups, done)


for name, description, model in [
    ("test_elicitation_sep1034_defaults", "Asks for fields of every type, each with a default", Defaults),
    ("test_elicitation_sep1330_enums", "Asks for choices in every form", Choices),
    ("test_elicitation_constraints", "Asks for fields with bounds", Bounds),
]:
    asks(
        name,
        description,
        [{"form": Form("Please fill in", model)}],
        lambda all: f"Elicitation completed: {all['form'].did()}",
    )

SIGN_IN = "https://example.com/sign-in"


@tool("test_elicitation_url", "Asks the user to visit a URL")
async def elicitation_url(ctx: Context) -> Asked:
    if modern(ctx):
        answer = (ctx.input_responses or {}).get("sign_in")
        if answer is None:
            params = types.ElicitRequestURLParams(message="Please sign in", url=SIGN_IN)
            return types.InputRequiredResult(input_requests={"sign_in": types.ElicitRequest(params=params)})
        return f"action={answer.action}"
    state["asked"] += 1
    name = f"sign-in-{state['asked']}"
    answer = await ctx.elicit_url("Please sign in", SIGN_IN, name)
    if answer.action == "accept":
        await ctx.session.send_elicit_complete(name)
    return f"action={answer.action}"


@tool("test_elicitation_url_required", "Needs the user to visit a URL first")
async def elicitation_url_required(ctx: Context) -> Asked:
    if modern(ctx):
        if (ctx.input_responses or {}).get("sign_in") is None:
            params = types.ElicitRequestURLParams(message="Please sign in", url=SIGN_IN)
            return types.InputRequiredResult(input_requests={"sign_in": types.ElicitRequest(params=params)})
        return "Signed in"
    params = types.ElicitRequestURLParams(message="Please sign in", url=SIGN_IN, elicitation_id="sign-in")
    raise UrlElicitationRequiredError([params])


WEATHER = types.Tool(name="weather", description="Tells the weather", input_schema={"type": "object"})
asks(
    "test_sampling_tools",
    "Asks the client's model and lends it a tool",
    [{"model": Sample("What is the weather?", tools=[WEATHER], tool_choice=types.ToolChoice(mode="auto"))}],
    lambda all: f"stopReason={all['model'].content['reason']}, text={all['model'].content['said']}",
)
for name, key in [("test_missing_capability", "model"), ("test_input_required_result_sampling", "capital_question")]:
    asks(
        name,
        "Asks the client's model",
        [{key: Sample("What is the capital of France?")}],
        lambda all, key=key: all[key].content["said"],
    )
for name, key, message, model, then in [
    ("test_streaming_elicitation", "confirm", "Go on?", Ok, lambda said: f"confirm={json.dumps(said['ok'])}"),
    ("test_input_required_result_elicitation", "user_name", "What is your name?", Name, lambda said: f"Hello, {said['name']}!"),
    (
        "test_input_required_result_request_state",
        "confirm",
        "Please confirm",
        Ok,
        lambda said: "state-ok" if said["ok"] else "state-refused",
    ),
    (
        "test_input_required_result_tampered_state",
        "confirm",
        "Please confirm",
        Ok,
        lambda said: f"confirm={json.dumps(said['ok'])}",
    ),
]:
    asks(name, "Asks the user", [{key: Form(message, model)}], lambda all, key=key, then=then: needs(all[key], then))
asks(
    "test_input_required_result_list_roots",
    "Asks for the client's roots",
    [{"client_roots": Roots()}],
    lambda all: f"Roots: {', '.join(all['client_roots'].content['uris'])}",
)
asks(
    "test_input_required_result_multiple_inputs",
    "Asks three things in one round",
    [
        {
            "user_name": Form("What is your name?", Name),
            "greeting": Sample("Write a short greeting"),
            "client_roots": Roots(),
        }
    ],
    lambda all: needs(
        all["user_name"],
        lambda said: (
            f"{all['greeting'].content['said']}, {said['name']}: {len(all['client_roots'].content['uris'])} roots"
        ),
    ),
)
asks(
    "test_input_required_result_multi_round",
    "Asks for a name, then for a color",
    [
        {"step1": Form("Step 1: What is your name?", Name)},
        {"step2": Form("Step 2: What is your favorite color?", Color)},
    ],
    lambda all: needs(
        all["step1"],
        lambda one: needs(all["step2"], lambda two: f"{one['name']} likes {two['color']}"),
    ),
)


@tool("test_input_required_result_capabilities", "Asks only what the client can be asked")
async def capabilities(ctx: Context) -> Asked:
    can, group = ctx.client_capabilities, {}
    if can and can.elicitation is not None:
        group["user_name"] = Form("What is your name?", Name)
    if can and can.sampling is not None:
        group["greeting"] = Sample("Write a short greeting")

    def done(all):
        said = []
        if "user_name" in all:
            said.append(f"name={(all['user_name'].content or {}).get('name')}")
        if "greeting" in all:
            said.append(f"greeting={all['greeting'].content['said']}")
        return ", ".join(said) or "Nothing can be asked"

    return await rounds(ctx, [group], done)


@server.resource("config://app", name="app", title="Configuration", mime_type="application/json")
def app() -> str:
    return f'{{"version":{state["version"]}}}'


@server.resource(
    "test://static-text",
    name="static-text",
    title="Static text",
    description="A text that never changes",
    mime_type="text/plain",
    annotations=types.Annotations(audience=["user"], priority=0.5),
)
def static_text() -> str:
    return "This is the content of the static text resource."


@server.resource("test://static-binary", name="static-binary", mime_type="image/png")
def static_binary() -> bytes:
    return base64.b64decode(PNG)


@server.resource("test://watched-resource", name="watched-resource", mime_type="text/plain")
def watched() -> str:
    return "Watch me"


@server.resource("test://template/{id}/data", name="template-data", mime_type="application/json")
def template_data(id: str) -> str:
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"}, separators=(",", ":"))


@server.resource("users://{id}", name="users", mime_type="text/plain")
def user(id: str) -> str:
    return f"User {id}"


@server.prompt(title="Greeting")
def greet(tone: str) -> str:
    """Greets"""
    return f"Greet me in a {tone} tone."


@server.prompt(name="test_simple_prompt", description="A text")
def simple_prompt() -> str:
    return "This is a simple prompt for testing."


@server.prompt(name="test_prompt_with_arguments", description="A text with both arguments in it")
def prompt_with_arguments(arg1: str, arg2: str) -> str:
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt(name="test_prompt_with_embedded_resource", description="A resource with the given URI, and a text")
def prompt_with_resource(resourceUri: str) -> list:
    return [
        embedded(resourceUri, "text/plain", "Embedded resource content for testing."),
        "Please process the embedded resource above.",
    ]


@server.prompt(name="test_prompt_with_image", description="An image and a text")
def prompt_with_image() -> list:
    return [image, "Please analyze the image above."]


@server.prompt(name="test_input_required_result_prompt", description="Asks the user first")
async def asking_prompt(ctx: Context) -> list | str | types.InputRequiredResult:
    return await rounds(
        ctx,
        [{"user_context": Form("What context should the prompt use?", AboutUse)}],
        lambda all: needs(all["user_context"], lambda said: f"Use this context: {said['context']}"),
    )


@server.completion()
async def complete(ref, argument, context):
    known = []
    if isinstance(ref, types.ResourceTemplateReference):
        known = USERS if (ref.uri, argument.name) == ("users://{id}", "id") else []
    elif (ref.name, argument.name) == ("greet", "tone"):
        known = TONES
    elif (ref.name, argument.name) == ("test_prompt_with_arguments", "arg1"):
        known = ["test1", "test2", "testValue1", "value"]
    elif (ref.name, argument.name) == ("test_prompt_with_arguments", "arg2"):
        first = (context.arguments or {}).get("arg1") if context else None
        known = [f"{first}-second"] if first else []
    fits = [value for value in known if value.startswith(argument.value)]
    return types.Completion(values=fits[:100], total=len(fits), has_more=len(fits) > 100)


class Events(EventStore):
    """Keeps the events of streams that may be resumed."""

    def __init__(self):
        self.all = []

    async def store_event(self, stream_id, message):
        self.all.append((stream_id, message))
        return str(len(self.all))

    async def replay_events_after(self, last_event_id, send_callback):
        at = int(last_event_id) if last_event_id.isdigit() else 0
        if not 1 <= at <= len(self.all):
            return None
        stream = self.all[at - 1][0]
        for later, (of, message) in enumerate(self.all[at:], at + 1):
            # What primed the stream is no message.
            if of == stream and message is not None:
                await send_callback(EventMessage(message, str(later)))
        return stream


def http():
    both = server.streamable_http_app(event_store=Events())
    both.routes.extend(server.sse_app().routes)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        # The socket listens already: a client that comes early waits for the accept, and is not refused.
        print(f"events on http://127.0.0.1:{port}/sse", file=sys.stderr, flush=True)
        print(f"listening on http://127.0.0.1:{port}/mcp", file=sys.stderr, flush=True)
        config = uvicorn.Config(both, log_level="error", timeout_graceful_shutdown=1)
        uvicorn.Server(config).run(sockets=[listener])


match sys.argv[1:]:
    case ["--stdio"]:
        server.run("stdio")
    case ["--http"]:
        http()
    case _:
        sys.exit("expected --stdio or --http")
