"""The base of tests that run with both clients."""

from __future__ import annotations

import asyncio
import inspect
import unittest
from collections.abc import Iterator
from typing import Any
from unittest import mock

import httpx

from holdfast import AsyncClient, Client

from .server import Server

TLS = httpx.create_ssl_context()
"""Shared, because it takes much longer than a test to create."""

_PLAIN = (str, bytes, int, float, list, tuple, dict, BaseException)


class Blocking:
    """Lets a test use an asynchronous object like a synchronous one."""

    def __init__(self, target: Any, runner: asyncio.Runner) -> None:
        self._target, self._runner = target, runner

    def __getattr__(self, name: str) -> Any:
        return self._wrap(getattr(self._target, {"close": "aclose"}.get(name, name)))

    def _wrap(self, value: Any) -> Any:
        if inspect.isawaitable(value):
            return self._wrap(self._runner.run(_wait(value)))
        if value is None or isinstance(value, _PLAIN):
            return value
        if inspect.ismethod(value) or inspect.isfunction(value):
            return lambda *args, **kwargs: self._wrap(value(*args, **kwargs))
        if type(value).__module__.startswith("holdfast.") and not type(value).__name__.startswith(("Page", "Response")):
            return Blocking(value, self._runner)
        return Blocking(value, self._runner) if hasattr(value, "__anext__") else value

    def __iter__(self) -> Iterator[Any]:
        iterator = aiter(self._target)
        try:
            while True:
                try:
                    yield self._wrap(self._runner.run(_wait(anext(iterator))))
                except StopAsyncIteration:
                    return
        finally:
            if (close := getattr(iterator, "aclose", None)) is not None:
                self._runner.run(_wait(close()))


async def _wait(value: Any) -> Any:
    return await value


class ClientCase(unittest.TestCase):
    """A test with a server and a client that waits briefly between attempts."""

    asynchronous = False

    def setUp(self) -> None:
        self.server = self.enterContext(Server())
        self.enterContext(mock.patch("holdfast._call.BACKOFF_BASE", 0.001))
        self.enterContext(mock.patch.dict("os.environ", {}, clear=True))
        self.runner = self.enterContext(asyncio.Runner()) if self.asynchronous else None

    def client(self, **options: Any) -> Any:
        """Return a client of the server."""
        settings = {"base_url": self.server.url + "/api/v1", **options}
        if "token_source" not in settings:
            settings.setdefault("api_key", "svc_test_key")
        if self.runner is None:
            http = httpx.Client(verify=TLS)
            self.addCleanup(http.close)
            return Client(**{"http_client": http, **settings})
        blocking = Blocking(self.runner.run(_created(settings)), self.runner)
        self.addCleanup(lambda: blocking._runner.run(blocking._target._http.aclose()))
        return blocking

    def keys(self) -> list[str | None]:
        """Return the idempotency keys of the requests."""
        return [request.key for request in self.server.requests]


async def _created(settings: dict[str, Any]) -> AsyncClient:
    return AsyncClient(**{"http_client": httpx.AsyncClient(verify=TLS), **settings})
