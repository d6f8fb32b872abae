"""Serves an ASGI application on a free port of the loopback interface, and says which."""

import socket
import sys

import uvicorn


def serve(app, path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        # The socket listens already: a client that comes early waits for the accept, and is not refused.
        print(f"listening on http://127.0.0.1:{port}{path}", file=sys.stderr, flush=True)
        config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
        uvicorn.Server(config).run(sockets=[listener])
