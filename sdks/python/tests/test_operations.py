"""Calls each generated method with the example of its operation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import holdfast
from holdfast import _operations_gen as ops

from .case import ClientCase
from .platform import Example, examples
from .server import Reply

SOURCE = Path(holdfast.__file__).with_name("_sync_gen.py").read_text()


def methods() -> dict[str, tuple[str, str]]:
    """Return the resource and the method of each operation."""
    found: dict[str, tuple[str, str]] = {}
    attributes = {m[2]: m[1] for m in re.finditer(r"def (\w+)\(self\) -> (\w+):\n(?:.*\n)*?        return \2\(self\)", SOURCE)}
    resource = method = ""
    for line in SOURCE.splitlines():
        if m := re.match(r"class (\w+)", line):
            resource = m[1]
        elif m := re.match(r"    def (\w+)\(", line):
            method = m[1]
        for name in re.findall(r"\bops\.([A-Z_]+)", line):
            found[name] = (attributes[resource], method)
    return found


def constant(operation: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", operation).upper()


class OperationsTest(ClientCase):
    def test_each_operation_has_a_method(self) -> None:
        self.assertEqual(set(methods()), {name for name in vars(ops) if name.isupper() and name != "TYPE_CHECKING"})

    def test_each_example(self) -> None:
        client, found = self.client(), methods()
        seen = 0
        for example in examples():
            resource, method = found[constant(example.operation)]
            operation = getattr(ops, constant(example.operation))
            if operation.accept == "application/json":
                with self.subTest(f"{resource}.{method}"):
                    self.check(getattr(getattr(client, resource), method), example, operation)
                    seen += 1
        self.assertGreater(seen, 80)

    def check(self, call: Any, example: Example, operation: Any) -> None:
        self.server.requests.clear()
        self.server.replies = [Reply(example.response["status"], example.response.get("body"))]
        names = re.findall(r"\{(\w+)\}", operation.path)
        match = re.fullmatch(re.sub(r"\{\w+\}", "([^/]+)", operation.path), example.path)
        assert match is not None, example.path
        args: list[Any] = [*match.groups()]
        self.assertEqual(len(args), len(names))
        sent = dict(parse_qsl(urlsplit(example.request["path"]).query))
        query: dict[str, Any] = {name: value for name, value in sent.items() if "[" not in name}
        query = {{"from": "from_"}.get(name, name): value for name, value in query.items()}
        pairs = {m[1]: value for name, value in sent.items() if (m := re.match(r"metadata\[(.*)\]", name))}
        if pairs:
            query["metadata"] = pairs
        if (body := example.request.get("body") or None) is not None:
            args.append(body)
        result = call(*args, **query)
        if hasattr(result, "page"):
            page = result.page()
            result = {"data": page.data, "has_more": page.has_more, "next_cursor": page.next_cursor}
        self.assertEqual(result, example.response.get("body"))
        (request,) = self.server.requests
        self.assertEqual((request.method, request.path), (example.request["method"], "/api/v1" + example.path))
        self.assertEqual(request.query, sent)
        self.assertEqual(request.json if request.body else None, body)
        self.assertEqual(request.key is not None, request.method in ("POST", "PATCH"))


class AsyncOperationsTest(OperationsTest):
    asynchronous = True
