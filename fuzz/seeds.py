#!/usr/bin/env python3
"""Makes seeds from what was recorded of other projects: fuzz/seeds.py [TARGET...]

Writes corpus/TARGET/recorded-*. A message becomes a seed if it shows something that none before it showed (a
member in a place, or a kind of value there), so that the corpus stays small. Seeds with other names are
written by hand, or were found; they stay as they are.
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
RECORDINGS = sorted((HERE.parent / "conformance/recordings").glob("*/*.jsonl"))


def plain(value):
    """A recorded value without the patterns of the recorder."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$bind" in value:
        return plain(value.get("value", "bound"))
    if "$type" in value:
        return {"string": "text", "number": 1, "integer": 1, "boolean": True, "array": [], "object": {}}.get(value["$type"])
    if any(name.startswith("$") and name not in ("$schema", "$ref", "$defs") for name in value):
        return "text"
    return {name: plain(inner) for name, inner in value.items()}


def shapes(value, at=""):
    kind = type(value).__name__
    yield f"{at}:{kind}"
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from shapes(inner, f"{at}/{name}")
    if isinstance(value, list):
        for inner in value:
            yield from shapes(inner, f"{at}/*")


def lines():
    for path in RECORDINGS:
        for text in path.read_text().splitlines():
            yield path, json.loads(text)


def dense(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class Corpus:
    def __init__(self, target):
        self.folder = HERE / "corpus" / target
        self.folder.mkdir(parents=True, exist_ok=True)
        for old in self.folder.glob("recorded-*"):
            old.unlink()
        self.seen = set()

    def add(self, name, value, data):
        """Keeps `data` if `value`, which it holds, has a new shape."""
        new = {f"{name}{shape}" for shape in shapes(value)} - self.seen
        if new and len(data) <= 4096:
            self.seen |= new
            number = sum(1 for _ in self.folder.glob(f"recorded-{name}-*"))
            (self.folder / f"recorded-{name}-{number}").write_text(data)


RESULTS = {
    "server/discover": "DiscoverResult",
    "initialize": "InitializeResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "completion/complete": "CompleteResult",
}
PARTS = {
    "tools": "Tool",
    "resources": "Resource",
    "resourceTemplates": "ResourceTemplate",
    "prompts": "Prompt",
    "content": "ContentBlock",
    "contents": "ResourceContents",
    "messages": "PromptMessage",
}


def model():
    corpus = Corpus("model")
    add = lambda kind, value: corpus.add(kind.replace("/", "-").replace(" ", "-"), value, f"{kind}\n{dense(value)}")
    methods = {}
    for path, line in lines():
        for side in ("client", "server"):
            message = plain(line.get(side))
            if not isinstance(message, dict):
                continue
            key = (path, side, json.dumps(message.get("id")))
            if "method" in message:
                methods[key] = message["method"]
                if message["method"] in ("elicitation/create", "sampling/createMessage"):
                    add(message["method"], message.get("params", {}))
                elif message["method"] == "notifications/message":
                    add("LogMessage", message["params"])
                elif message["method"] == "notifications/progress":
                    add("ProgressParams", message["params"])
                elif side == "client" and "params" in message:
                    add("params", message["params"])
            asked = methods.get((path, "client" if side == "server" else "server", json.dumps(message.get("id"))))
            if "error" in message:
                add("Error", message["error"])
            if "result" not in message or not isinstance(message["result"], dict):
                continue
            result = message["result"]
            if result.get("resultType") == "input_required":
                add("InputRequired", result)
            elif side == "client":
                add(f"answer to {asked}", result)
            elif asked in RESULTS:
                add(RESULTS[asked], result)
            for member, kind in PARTS.items():
                for item in result.get(member, []) if isinstance(result.get(member), list) else []:
                    add(kind, item)
            for member, kind in (("capabilities", "ServerCapabilities"), ("serverInfo", "Implementation"), ("_meta", "Meta")):
                if member in result:
                    add(kind, result[member])


TARGETS = {"model": model}

if __name__ == "__main__":
    for name in sys.argv[1:] or TARGETS:
        TARGETS[name]()
