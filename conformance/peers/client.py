"""The Python SDK as client of the fixture server, over stdio; over HTTP if the command has the argument `--http`.

    python client.py legacy|modern|auto REVISION -- COMMAND [ARGS...]

`modern` adopts the revision without asking, `auto` lets the client find it out, `legacy` shakes hands. One line a step, exit 1
when a step fails.
"""

import json
import subprocess
import sys
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp.client.stdio as stdio
import mcp.client.streamable_http as http
import mcp_types as types
from mcp import MCPError
from mcp.client import Client, ClientRequestContext
from mcp.client.subscriptions import ToolsListChanged

META = "io.modelcontextprotocol/"
PATIENCE_S = 20
ECHO = 'h\u00e9llo \u2713 \U0001d54f "quoted" \\ line\nline\u2028end'

warnings.simplefilter("ignore")  # the SDK marks the whole legacy era as deprecated


class Failed(Exception):
    """A step did not see what it expected."""


def expect(what: str, good: bool, got: Any) -> None:
    if not good:
        raise Failed(f"expected {what}, got {got!r}")


def text_of(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


def serve(command: list[str]) -> tuple[subprocess.Popen[str], str]:
    """Starts a server that says `listening on URL` on its standard error; its process and the URL."""
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert server.stderr
    for line in server.stderr:
        if line.startswith("listening on "):
            return server, line.removeprefix("listening on ").strip()
        print(line, end="", file=sys.stderr)
    raise Failed(f"expected the server to listen, but it ended with {server.wait()}")


class Peer:
    """One connection, what its server wrote, and what the user would answer."""

    def __init__(self, mode: str, revision: str, command: list[str]) -> None:
        self.mode, self.revision = mode, revision
        self.modern = mode != "legacy"
        self.label = f"python {mode} {revision}"
        self.passed = self.failed = self.position = 0
        self.received: list[dict[str, Any]] = []
        self.errors: list[str] = []
        self.elicit: Callable[[types.ElicitRequestFormParams], types.ElicitResult] = lambda _: types.ElicitResult(action="cancel")
        self.sampled: list[types.CreateMessageRequestParams] = []
        self.roots_asked = 0
        self.updates: list[str] = []
        self.changes: list[str] = []
        self.logged = 0
        self.process: Any = None
        self.server: subprocess.Popen[str] | None = None
        if "--http" in command:
            self.label += " http"
            self.server, target = serve(command)
        else:
            target = stdio.StdioServerParameters(command=command[0], args=command[1:])
        self.client = Client(
            target,
            mode=revision if mode == "modern" else mode,
            elicitation_callback=self.on_elicit,
            sampling_callback=self.on_sample,
            list_roots_callback=self.on_roots,
            message_handler=self.on_message,
            read_timeout_seconds=PATIENCE_S,
        )
        self.observe()

    def observe(self) -> None:
        """Keeps what the server writes and the server's process, which the SDK does not hand out."""
        adapter, received = http.jsonrpc_message_adapter, self.received

        class Adapter:
            """Also keeps what it reads."""

            def validate_json(self, data: Any, **options: Any) -> Any:
                message = adapter.validate_json(data, **options)
                received.append(json.loads(data))
                return message

            def __getattr__(self, name: str) -> Any:
                return getattr(adapter, name)

        http.jsonrpc_message_adapter = Adapter()
        parse, create = stdio._parse_line, stdio._create_platform_compatible_process

        def parsed(line: str) -> Any:
            message = parse(line)
            if isinstance(message, Exception):
                self.errors.append(f"{message}: {line[:300]}")
            else:
                self.received.append(json.loads(line))
            return message

        async def created(*args: Any, **kwargs: Any) -> Any:
            self.process = await create(*args, **kwargs)
            return self.process

        stdio._parse_line, stdio._create_platform_compatible_process = parsed, created

    async def on_elicit(self, _: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestFormParams), params
        return self.elicit(params)

    async def on_sample(self, _: ClientRequestContext, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        self.sampled.append(params)
        return types.CreateMessageResult(
            role="assistant", model="none", stop_reason="endTurn", content=types.TextContent(type="text", text="forty-two")
        )

    async def on_roots(self, _: ClientRequestContext) -> types.ListRootsResult:
        self.roots_asked += 1
        return types.ListRootsResult(roots=[types.Root(uri="file:///srv/project", name="project")])

    async def on_message(self, message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            self.updates.append(str(message.params.uri))
        elif isinstance(message, types.PromptListChangedNotification | types.ToolListChangedNotification):
            self.changes.append(type(message).__name__)
        elif isinstance(message, Exception):
            self.errors.append(str(message))

    async def step(self, name: str, body: Callable[[], Awaitable[str | None]]) -> bool:
        self.position = len(self.received)
        try:
            with anyio.fail_after(2 * PATIENCE_S):
                note = await body()
        except Exception as error:
            self.failed += 1
            print(f"FAIL {self.label}: {name}: {type(error).__name__}: {error}", flush=True)
            for message in self.received[self.position :][-12:]:
                print(f"     <- {json.dumps(message)[:600]}", flush=True)
            return False
        self.passed += 1
        print(f"ok   {self.label}: {name}{f' ({note})' if note else ''}", flush=True)
        return True

    def since_step(self) -> list[dict[str, Any]]:
        return self.received[self.position :]

    def notified(self, method: str) -> list[dict[str, Any]]:
        return [message for message in self.received if message.get("method") == method]

    async def eventually(self, what: str, look: Callable[[], Awaitable[tuple[bool, Any]]]) -> None:
        deadline = anyio.current_time() + PATIENCE_S
        seen: Any = None
        while anyio.current_time() < deadline:
            done, seen = await look()
            if done:
                return
            await anyio.sleep(0.02)
        raise Failed(f"expected {what}, got {seen!r}")

    async def refused(self, call: Awaitable[Any], code: int) -> None:
        try:
            result = await call
        except MCPError as error:
            expect(f"error {code}", error.code == code, error)
        else:
            raise Failed(f"expected error {code}, got {result!r}")

    async def counter(self) -> dict[str, int]:
        result = await self.client.call_tool("counter", {})
        counts = result.structured_content or json.loads(text_of(result))
        expect("counter {ran, stopped}", all(isinstance(counts.get(key), int) for key in ("ran", "stopped")), counts)
        return counts

    # Steps, in the order in which they run.

    async def connect(self) -> str:
        expect("the revision", self.client.protocol_version == self.revision, self.client.protocol_version)
        if not self.modern:
            info = self.client.server_info
            expect("serverInfo with a name and a version", bool(info and info.name and info.version), info)
        elif self.mode == "auto":
            discovery = [message["result"] for message in self.received if "supportedVersions" in message.get("result", {})]
            expect(f"{self.revision} discovered", len(discovery) == 1 and self.revision in discovery[0]["supportedVersions"], discovery)
        return f"revision {self.revision}"

    async def ping(self) -> None:
        await self.client.send_ping()

    async def pages(self, method: str, member: str) -> list[Any]:
        everything: list[Any] = []
        cursor = None
        for _ in range(64):
            result = await getattr(self.client, method)(cursor=cursor)
            everything += getattr(result, member)
            cursor = result.next_cursor
            if cursor is None:
                return everything
        raise Failed(f"{method}: expected the last page within 64, got another cursor {cursor!r}")

    async def list_all(self) -> str:
        tools = [tool.name for tool in await self.pages("list_tools", "tools")]
        wanted = {"echo", "add", "slow", "counter", "touch", "deploy", "test_simple_text", "test_tool_with_progress"}
        expect(f"the tools {sorted(wanted)}", wanted <= set(tools) and len(set(tools)) == len(tools), tools)
        resources = [str(resource.uri) for resource in await self.pages("list_resources", "resources")]
        expect("config://app", "config://app" in resources, resources)
        templates = [template.uri_template for template in await self.pages("list_resource_templates", "resource_templates")]
        expect("users://{id}", "users://{id}" in templates, templates)
        prompts = {prompt.name: [argument.name for argument in prompt.arguments or []] for prompt in await self.pages("list_prompts", "prompts")}
        expect("greet {tone}", "tone" in prompts.get("greet", []), prompts)
        return f"{len(tools)} tools, {len(resources)} resources, {len(templates)} templates, {len(prompts)} prompts"

    async def call(self) -> None:
        echoed = text_of(await self.client.call_tool("echo", {"text": ECHO}))
        expect(repr(ECHO), echoed == ECHO, echoed)
        sum_ = await self.client.call_tool("add", {"a": 2, "b": 40})
        expect("{'sum': 42}", sum_.structured_content == {"sum": 42} and not sum_.is_error, sum_)
        failed = await self.client.call_tool("test_error_handling", {})
        expect("a result with isError", failed.is_error is True, failed)
        await self.refused(self.client.call_tool("no-such-tool", {}), types.INVALID_PARAMS)

    async def many(self) -> None:
        texts = [f"{index} {'x' * index}" for index in range(100)]
        answers: dict[str, str] = {}

        async def one(text: str) -> None:
            answers[text] = text_of(await self.client.call_tool("echo", {"text": text}))

        async with anyio.create_task_group() as group:
            for text in texts:
                group.start_soon(one, text)
        expect("its own text for each call", all(answers[text] == text for text in texts), answers)
        large = "\u2713 longer " * 100_000
        echoed = text_of(await self.client.call_tool("echo", {"text": large}))
        expect("a large text unchanged", echoed == large, f"{len(echoed)} characters")

    async def progress(self) -> None:
        seen: list[tuple[float, float | None]] = []

        async def on_progress(progress: float, total: float | None, _: str | None) -> None:
            seen.append((progress, total))

        await self.client.call_tool("test_tool_with_progress", {}, progress_callback=on_progress)
        messages = self.since_step()
        answered = next(index for index, message in enumerate(messages) if "result" in message)
        wire = [message["params"]["progress"] for message in messages[:answered] if message.get("method") == "notifications/progress"]
        expect("progress 0, 50, 100 before the result", wire == [0, 50, 100], messages)

        async def look() -> tuple[bool, Any]:
            return seen == [(0, 100), (50, 100), (100, 100)], seen

        await self.eventually("the same progress in the callback", look)

    async def cancel(self) -> None:
        before = await self.counter()
        scope = anyio.CancelScope()

        async def slow() -> None:
            with scope:
                await self.client.call_tool("slow", {"ms": 600_000}, read_timeout_seconds=900)
                raise Failed("expected the call to be cancelled, got its result")

        async def look(key: str) -> tuple[bool, Any]:
            now = await self.counter()
            return now[key] == before[key] + 1, now

        async with anyio.create_task_group() as group:
            group.start_soon(slow)
            await self.eventually("the call to start", lambda: look("ran"))
            scope.cancel()
        await self.eventually("the call to be stopped", lambda: look("stopped"))
        echoed = text_of(await self.client.call_tool("echo", {"text": "alive"}))
        expect("alive", echoed == "alive", echoed)

    async def ask(self) -> None:
        asked: list[tuple[list[str], str]] = []

        def elicit(params: types.ElicitRequestFormParams) -> types.ElicitResult:
            properties = params.requested_schema["properties"]
            key = next(iter(properties))
            asked.append((list(properties), properties[key]["type"]))
            return types.ElicitResult(action="accept", content={key: True if key == "confirm" else "eu-west-3"})

        self.elicit = elicit
        result = await self.client.call_tool("deploy", {"env": "staging"})
        expect("confirm, then region", asked == [(["confirm"], "boolean"), (["region"], "string")], asked)
        expect("both answers", not result.is_error and all(part in text_of(result) for part in ("staging", "true", "eu-west-3")), result)
        rounds = [m for m in self.since_step() if m.get("result", {}).get("resultType") == "input_required"]
        requests = [m for m in self.since_step() if m.get("method") == "elicitation/create"]
        expect("two rounds or two requests", (len(rounds), len(requests)) == ((2, 0) if self.modern else (0, 2)), self.since_step())

        asked.clear()

        def decline(params: types.ElicitRequestFormParams) -> types.ElicitResult:
            asked.append((list(params.requested_schema["properties"]), ""))
            return types.ElicitResult(action="decline")

        self.elicit = decline
        refused = await self.client.call_tool("deploy", {"env": "staging"})
        expect("a result with isError and no second question", refused.is_error is True and len(asked) == 1, (refused, asked))

    async def sample(self) -> None:
        name, arguments = ("test_input_required_result_sampling", {}) if self.modern else ("test_sampling", {"prompt": "How many?"})
        result = await self.client.call_tool(name, arguments)
        expect("one sampling request", len(self.sampled) == 1 and self.sampled[0].max_tokens > 0, self.sampled)
        expect("the sampled text", "forty-two" in text_of(result), result)

    async def rounds(self) -> None:
        def elicit(params: types.ElicitRequestFormParams) -> types.ElicitResult:
            values = {"boolean": True, "string": "Ada", "integer": 7, "number": 7}
            return types.ElicitResult(
                action="accept",
                content={key: values[schema["type"]] for key, schema in params.requested_schema["properties"].items()},
            )

        self.elicit = elicit
        for tool in ("list_roots", "multiple_inputs", "multi_round"):
            result = await self.client.call_tool(f"test_input_required_result_{tool}", {})
            expect(f"a result of {tool}", not result.is_error, result)
        expect("roots asked for twice", self.roots_asked == 2, self.roots_asked)
        states = [m["result"]["requestState"] for m in self.since_step() if "requestState" in m.get("result", {})]
        expect("another state in the second round", len(states) >= 2 and states[-1] != states[-2], states)

    async def prompts(self) -> None:
        simple = await self.client.get_prompt("test_simple_prompt")
        content = simple.messages[0].content
        expect("the text of the prompt", isinstance(content, types.TextContent) and content.text == "This is a simple prompt for testing.", simple)
        filled = repr(await self.client.get_prompt("test_prompt_with_arguments", {"arg1": "one\u00e9", "arg2": "two"}))
        expect("both arguments in the prompt", "one\u00e9" in filled and "two" in filled, filled)
        greeting = await self.client.get_prompt("greet", {"tone": "formal"})
        expect("a message", len(greeting.messages) > 0, greeting)
        await self.refused(self.client.get_prompt("no-such-prompt"), types.INVALID_PARAMS)

    async def complete(self) -> str:
        reference = types.PromptReference(type="ref/prompt", name="greet")
        values = (await self.client.complete(reference, {"name": "tone", "value": ""})).completion.values
        expect("1 to 100 values", 0 < len(values) <= 100, values)
        narrowed = (await self.client.complete(reference, {"name": "tone", "value": values[0][:2]})).completion.values
        expect(f"{values[0]} among the narrowed values", values[0] in narrowed, narrowed)
        other = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
        await self.client.complete(other, {"name": "arg1", "value": "test"})
        return ", ".join(values)

    async def read_text(self, uri: str) -> str:
        contents = (await self.client.read_resource(uri)).contents
        expect(f"the text of {uri}", len(contents) > 0 and str(contents[0].uri) == uri and isinstance(contents[0], types.TextResourceContents), contents)
        return contents[0].text

    async def read(self) -> None:
        await self.read_text("config://app")
        user = await self.read_text("users://42")
        expect("42 in the text", "42" in user, user)
        missing = "test://nonexistent-resource-for-conformance-testing"
        await self.refused(self.client.read_resource(missing), types.INVALID_PARAMS if self.modern else -32002)

    async def subscribe(self) -> None:
        before = await self.read_text("config://app")
        if self.modern:
            async with self.client.listen(resource_subscriptions=["config://app"]) as subscription:
                expect("config://app in the acknowledgment", subscription.honored.resource_subscriptions == ["config://app"], subscription.honored)
                await self.client.call_tool("touch", {})
                with anyio.fail_after(PATIENCE_S):
                    event = await anext(subscription)
                expect("the update of config://app", getattr(event, "uri", None) == "config://app", event)
                tag = self.notified("notifications/resources/updated")[-1]["params"]["_meta"][f"{META}subscriptionId"]
                expect("the id of the listen request as subscriptionId", tag == subscription.subscription_id, tag)
                changed = await self.read_text("config://app")
        else:
            await self.client.subscribe_resource("config://app")
            await self.client.call_tool("touch", {})

            async def look() -> tuple[bool, Any]:
                return "config://app" in self.updates, self.updates

            await self.eventually("notifications/resources/updated for config://app", look)
            changed = await self.read_text("config://app")
            await self.client.unsubscribe_resource("config://app")
        expect("another text after the update", changed != before, changed)
        await self.client.call_tool("echo", {"text": "after"})
        settled = len(self.notified("notifications/resources/updated"))
        await self.client.call_tool("touch", {})
        await self.client.call_tool("echo", {"text": "quiet"})
        updates = self.notified("notifications/resources/updated")
        expect("no update after the end of the subscription", len(updates) == settled, updates)

    async def change(self) -> None:
        if self.modern:
            async with self.client.listen(tools_list_changed=True) as subscription:
                await self.client.call_tool("test_trigger_prompt_change", {})
                await self.client.call_tool("test_trigger_tool_change", {})
                with anyio.fail_after(PATIENCE_S):
                    event = await anext(subscription)
                expect("a change of the list of tools", isinstance(event, ToolsListChanged), event)
        else:
            await self.client.call_tool("test_trigger_prompt_change", {})
            await self.client.call_tool("test_trigger_tool_change", {})

            async def look() -> tuple[bool, Any]:
                return self.changes == ["PromptListChangedNotification", "ToolListChangedNotification"], self.changes

            await self.eventually("a change of both lists", look)

    async def log(self) -> None:
        if self.modern:
            await self.client.call_tool("test_logging_tool", {}, meta={f"{META}logLevel": "warning"})
        else:
            await self.client.set_logging_level("warning")
            await self.client.call_tool("test_logging_tool", {})
        levels = [message["params"]["level"] for message in self.notified("notifications/message")]
        expect("levels from warning upwards", levels == ["warning", "error", "critical", "alert", "emergency"], levels)
        self.logged = len(levels)

    async def order(self) -> str:
        answered: set[Any] = set()
        for message in self.received:
            if "method" in message:
                expect("no request from a modern server", not (self.modern and "id" in message), message)
                continue
            expect("one answer to a request", message["id"] not in answered, message)
            answered.add(message["id"])
            if "result" in message:
                expect("resultType in the modern era only", ("resultType" in message["result"]) == self.modern, message)
        entries = self.notified("notifications/message")
        expect("no log messages beside those that were asked for", len(entries) == self.logged, entries)
        expect("no errors reported by the SDK", not self.errors, self.errors)
        return f"{len(self.received)} messages received"

    async def end(self) -> None:
        expect("status 0 after the end of input", self.process.returncode == 0, self.process.returncode)

    async def run(self) -> int:
        steps = [
            ("list", self.list_all),
            ("call", self.call),
            ("many calls at once, and a large one", self.many),
            ("progress", self.progress),
            ("cancel stops the call", self.cancel),
            ("input required" if self.modern else "elicitation", self.ask),
            ("sampling", self.sample),
            ("rounds", self.rounds) if self.modern else ("ping", self.ping),
            ("prompts", self.prompts),
            ("completion", self.complete),
            ("read", self.read),
            ("subscribe", self.subscribe),
            ("list changes", self.change),
            ("logging", self.log),
            ("every message was in order", self.order),
        ]
        try:
            async with self.client:
                if await self.step("connect", self.connect):
                    for name, body in steps:
                        await self.step(name, body)
        except Exception as error:
            self.failed += 1
            print(f"FAIL {self.label}: session: {type(error).__name__}: {error}", flush=True)
        else:
            if not self.server:
                await self.step("the server ends when its input ends", self.end)
        finally:
            if self.server:
                self.server.kill()
                self.server.wait()
        print(f"{self.label}: {self.passed} steps passed, {self.failed} failed", flush=True)
        return 0 if self.passed > 0 and self.failed == 0 else 1


def main() -> int:
    arguments = sys.argv[1:]
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    if cut != 2 or len(arguments) < 4 or arguments[0] not in ("legacy", "modern", "auto"):
        print(__doc__, file=sys.stderr)
        return 2
    peer = Peer(arguments[0], arguments[1], arguments[3:])
    return anyio.run(peer.run)


if __name__ == "__main__":
    sys.exit(main())
