"""Responses with their headers."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Generic, ParamSpec, TypeVar

import httpx

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Response(Generic[T]):
    """A successful response."""

    data: T
    """What the method returns without ``with_raw_response``."""
    status: int
    """The HTTP status."""
    headers: Mapping[str, str]
    """The headers. Their names are not case-sensitive."""
    content: bytes
    """The body as it was received."""

    @property
    def request_id(self) -> str:
        """The ID of the request. Include it when you contact support."""
        return self.headers.get("x-request-id", "")

    @property
    def replayed(self) -> bool:
        """Whether this is the stored response to an earlier request with the same idempotency key."""
        return self.headers.get("idempotent-replayed", "").lower() == "true"

    @property
    def etag(self) -> str:
        """The version of the object, for ``if_match``."""
        return self.headers.get("etag", "")


_received: ContextVar[list[tuple[httpx.Response, bytes]] | None] = ContextVar("holdfast_received", default=None)


def note(response: httpx.Response, content: bytes) -> None:
    """Store a successful response for the method of ``with_raw_response`` that called this one."""
    if (received := _received.get()) is not None:
        received.append((response, content))


@contextmanager
def _capture() -> Iterator[list[tuple[httpx.Response, bytes]]]:
    received: list[tuple[httpx.Response, bytes]] = []
    token = _received.set(received)
    try:
        yield received
    finally:
        _received.reset(token)


def response_of(data: T, response: httpx.Response, content: bytes) -> Response[T]:
    """Return the response with its data."""
    return Response(data, response.status_code, response.headers, content)


def raw(method: Callable[P, T]) -> Callable[P, Response[T]]:
    """Return the method with the whole response as its result."""

    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> Response[T]:
        with _capture() as received:
            data = method(*args, **kwargs)
        return response_of(data, *received[-1])

    return call


def async_raw(method: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[Response[T]]]:
    """Return the asynchronous method with the whole response as its result."""

    @functools.wraps(method)
    async def call(*args: P.args, **kwargs: P.kwargs) -> Response[T]:
        with _capture() as received:
            data = await method(*args, **kwargs)
        return response_of(data, *received[-1])

    return call
