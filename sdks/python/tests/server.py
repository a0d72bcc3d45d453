"""A local server that sends the replies of a test in their order, and records the requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit


@dataclass
class Reply:
    """A response, or what happens instead of one."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    chunks: Iterable[bytes] | None = None
    """Parts of the body, which end with the connection."""
    cut: bool = False
    """Close the connection without a response, or before the end of the body."""
    delay: float = 0.0
    """Seconds before the response."""


def error(status: int, code: str, **more: Any) -> Reply:
    """Return an error as the API returns it."""
    headers = {str(k): str(v) for k, v in more.pop("headers", {}).items()}
    extra = {"errors": more.pop("errors")} if "errors" in more else {}
    body = {"error": {"type": "api_error", "code": code, "message": f"It is {code}.", "request_id": "req_1", **more}, **extra}
    return Reply(status, body, headers)


@dataclass
class Request:
    """A request that the server received."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def key(self) -> str | None:
        return self.headers.get("idempotency-key")


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = True

    def server_bind(self) -> None:
        """Bind without looking up the name of the host, which can take long."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connections that the client closes."""


class Server:
    """Listens on a free port while its ``with`` statement lasts."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.replies: list[Reply] = []
        self.default: Reply | None = None
        self._stopped = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: Any) -> None:
                pass

            def answer(self) -> None:
                outer.answer(self)

            do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = answer  # noqa: N815

        self._http = _HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("content-length", 0))
        target = urlsplit(handler.path)
        headers = {k.lower(): v for k, v in handler.headers.items()}
        query = dict(parse_qsl(target.query, keep_blank_values=True))
        self.requests.append(Request(handler.command, target.path, query, headers, handler.rfile.read(length)))
        reply = self.replies.pop(0) if self.replies else self.default or error(500, "no_more_replies")
        self._stopped.wait(reply.delay)
        if reply.cut and reply.status == 0:
            handler.close_connection = True
            return
        self._send(handler, reply)

    def _send(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        body = reply.body if isinstance(reply.body, bytes) else b"" if reply.body is None else json.dumps(reply.body).encode()
        handler.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", "X-Request-Id": "req_1", **reply.headers}.items():
            handler.send_header(name, value)
        if reply.chunks is not None:
            handler.send_header("Connection", "close")
            handler.end_headers()
            handler.close_connection = True
            for chunk in reply.chunks:
                handler.wfile.write(chunk)
                handler.wfile.flush()
            return
        handler.send_header("Content-Length", str(len(body) + (100 if reply.cut else 0)))
        handler.end_headers()
        handler.wfile.write(body)
        handler.close_connection = handler.close_connection or reply.cut

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error_: BaseException | None, traceback: TracebackType | None) -> None:
        self._stopped.set()
        self._http.shutdown()
        self._http.server_close()


def cut() -> Reply:
    """Return a connection that closes without a response."""
    return Reply(status=0, cut=True)
