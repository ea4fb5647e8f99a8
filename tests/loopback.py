"""Servers on this machine that simulate others."""

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HUB_REVISION = "0123456789abcdef0123456789abcdef01234567"
_PREFIXES = ("api", "models", "datasets")


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Yield the address of a server that answers as the handler does."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def hub(
    repositories: Mapping[str, Mapping[str, bytes]],
    refusals: Mapping[str, tuple[int, str]] | None = None,
    *,
    tokens: list[str | None] | None = None,
    redirect: str = "",
    seconds: float = 0.0,
) -> Iterator[tuple[str, list[str]]]:
    """Simulate the Hugging Face hub for downloads of models and data sets. Yield its address and
    the list of requested files.

    repositories: name → file → content. refusals: name → HTTP status and error code. tokens: gets
    the Authorization header of each request. redirect: the address that the files are at instead.
    seconds: how long each answer takes.
    """
    asked: list[str] = []
    heard = [] if tokens is None else tokens

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

        def do_HEAD(self):
            self.do_GET(body=False)

        def do_GET(self, *, body=True):
            time.sleep(seconds)
            heard.append(self.headers["Authorization"])
            steps = self.path.split("?")[0].strip("/").split("/")
            # A prefix before the name; files of models have none.
            steps = [step for step in steps[:2] if step not in _PREFIXES] + steps[2:]
            name, rest = "/".join(steps[:2]), steps[2:]
            if name in (refusals or {}):
                code, reason = refusals[name]
                self.send_response(code)
                self.send_header("X-Error-Code", reason)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            files = repositories[name]
            if rest[:1] == ["resolve"]:
                file = "/".join(rest[2:])
                asked.append(f"{name}/{file}")
                content = files[file]
                if redirect:
                    self.send_response(302)
                    self.send_header("Location", redirect + self.path)
                    self.send_header("Content-Length", "0")
                    self.send_header("X-Linked-Size", str(len(content)))
                    self.send_header("X-Linked-ETag", f'"{abs(hash(self.path))}"')
                    self.send_header("X-Repo-Commit", HUB_REVISION)
                    self.end_headers()
                    return
            elif rest[:1] == ["tree"]:
                rows = [
                    {"type": "file", "path": path, "size": len(data), "oid": HUB_REVISION}
                    for path, data in files.items()
                ]
                content = json.dumps(rows).encode()
            else:
                siblings = [{"rfilename": path, "size": len(data)} for path, data in files.items()]
                told = {"id": name, "sha": HUB_REVISION, "siblings": siblings}
                content = json.dumps(told).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("ETag", f'"{abs(hash(self.path))}"')
            self.send_header("X-Repo-Commit", HUB_REVISION)
            self.end_headers()
            # A client that was killed reads no more.
            with suppress(ConnectionError):
                self.wfile.write(content if body else b"")

    with serving(Handler) as address:
        yield address, asked


@contextmanager
def silent_server() -> Iterator[str]:
    """Yield the address of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
