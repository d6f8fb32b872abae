#!/usr/bin/env python3
"""What idle connections and listen streams cost a server, and how long one change takes to reach all of them.

    python3 bench/streams.py [--runtime tokio|smol] [--server PROGRAM]

Linux only: memory and CPU of the server are read in /proc. It needs 10,100 descriptors (ulimit -n).
"""
import argparse, json, os, resource, socket, statistics, subprocess, time
from pathlib import Path

HERE = Path(__file__).resolve().parent
IDLE = 10_000
STREAMS = (1_000, 2_000, 5_000, 9_900)
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


class Server:
    """The fixture, and what it uses."""

    def __init__(self, program, runtime):
        command = [program, "serve", "--runtime", runtime, "--http", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        url = self.process.stderr.readline().removeprefix("listening on ").strip()
        self.port = int(url.removeprefix("http://127.0.0.1:").removesuffix("/mcp"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def rest(self):
        """A connection that was used once, and the memory of a server that has begun."""
        connection = self.connect()
        self.call(connection, "echo", {"text": "x"})
        return connection, settled(self.memory)

    def memory(self):
        """Resident, in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024

    def cpu(self):
        """User and system, in seconds."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port))

    def post(self, connection, method, params, name=None):
        params = {**params, "_meta": META}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        head = [
            "POST /mcp HTTP/1.1", f"Host: 127.0.0.1:{self.port}", "Content-Type: application/json",
            "Accept: application/json, text/event-stream", "MCP-Protocol-Version: 2026-07-28",
            f"Mcp-Method: {method}", *([f"Mcp-Name: {name}"] if name else []), f"Content-Length: {len(body)}",
        ]
        connection.sendall("\r\n".join([*head, "", body]).encode())

    def call(self, connection, name, arguments):
        self.post(connection, "tools/call", {"name": name, "arguments": arguments}, name)
        read_until(connection, b'"result"')


def read_until(connection, text):
    seen = b""
    while text not in seen:
        more = connection.recv(65536)
        if not more:
            raise EOFError(f"expected {text!r}, got {seen!r}")
        seen += more


def settled(read):
    """What `read` says once it says the same twice."""
    last = None
    for _ in range(100):
        now = read()
        if now == last:
            break
        last = now
        time.sleep(0.2)
    return now


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--runtime", default="tokio", choices=("tokio", "smol"))
    args.add_argument("--server", default=HERE.parent / "target" / "release" / "mcp-conformance", help="the fixture")
    args = args.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with Server(args.server, args.runtime) as server:
        idle(server, args.runtime)
    # A fresh one: memory that was used once is used again.
    with Server(args.server, args.runtime) as server:
        streams(server, args.runtime)


def idle(server, runtime):
    caller, base = server.rest()
    connections = [server.connect() for _ in range(IDLE)]
    server.call(caller, "echo", {"text": "x"})
    grown = settled(server.memory) - base
    print(f"{runtime}: {len(connections)} idle connections: {grown / IDLE / 1000:.1f} kB each", flush=True)


def streams(server, runtime):
    caller, base = server.rest()
    listening = []
    for count in STREAMS:
        while len(listening) < count:
            connection = server.connect()
            wanted = {"notifications": {"resourceSubscriptions": ["config://app"]}}
            server.post(connection, "subscriptions/listen", wanted)
            read_until(connection, b"acknowledged")
            listening.append(connection)
        grown = settled(server.memory) - base
        cpu, took = [], []
        for _ in range(5):
            before, began = server.cpu(), time.monotonic()
            server.call(caller, "touch", {})
            for connection in listening:
                read_until(connection, b"resources/updated")
            took.append(time.monotonic() - began)
            cpu.append(server.cpu() - before)
        print(
            f"{runtime}: {count} listen streams: {grown / count / 1000:.1f} kB each; one change reaches all"
            f" in {statistics.median(took) * 1e3:.0f} ms, {sum(cpu) / len(cpu) / count * 1e6:.0f} µs of CPU each",
            flush=True,
        )


if __name__ == "__main__":
    main()
