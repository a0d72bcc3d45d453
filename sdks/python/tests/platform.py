"""A server that responds with the examples of the contract."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .server import Reply, Server

FOLDER = Path(__file__).parents[3] / "proto" / "examples"


@dataclass(frozen=True)
class Example:
    """A request and its response."""

    operation: str
    request: dict[str, Any]
    response: dict[str, Any]

    @property
    def path(self) -> str:
        return urlsplit(str(self.request["path"])).path


def examples() -> list[Example]:
    """Return the example of each operation."""
    found = []
    for file in sorted(FOLDER.glob("*.json")):
        content = json.loads(file.read_text())
        found.append(Example(file.stem, content["request"], content["response"]))
    return found


class Platform(Server):
    """Responds to each request with the example of its operation."""

    def __init__(self) -> None:
        super().__init__()
        self.examples = {(e.request["method"], e.path): e for e in examples()}
        event = self.examples["GET", "/events"].response["body"]["data"][0]
        text = f"id: {event['id']}\nevent: {event['type']}\ndata: {json.dumps(event)}\n\n"
        self.stream = Reply(200, headers={"Content-Type": "text/event-stream"}, chunks=[text.encode()])

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.replies = [self.reply(handler.command, urlsplit(handler.path).path, handler.headers.get("accept", ""))]
        super().answer(handler)

    def reply(self, method: str, path: str, accept: str) -> Reply:
        path = path.removeprefix("/api/v1")
        if path == "/oauth/token":
            return Reply(200, {"access_token": "svc_at_2", "refresh_token": "svc_rt_2", "expires_in": 3600})
        if accept == "text/event-stream":
            return self.stream
        if accept != "application/json":
            return Reply(200, b"document", {"Content-Type": accept})
        example = self.examples.get((method, path)) or self.similar(method, path)
        if example is None:
            return Reply(404, {"error": {"code": "not_found", "message": f"No example for {method} {path}."}})
        return Reply(example.response["status"], example.response.get("body"), {"ETag": '"1"'})

    def similar(self, method: str, path: str) -> Example | None:
        """Return the example of an operation whose path has other IDs."""
        for (other, pattern), example in self.examples.items():
            anything = re.sub(r"/[a-z]+_[0-9a-zA-Z]+", "/[^/]+", pattern)
            if other == method and re.fullmatch(anything, path):
                return example
        return None
