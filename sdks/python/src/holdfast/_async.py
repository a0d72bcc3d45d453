"""The asynchronous client without its resources."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

import httpx

from ._async_stream import AsyncEventStream
from ._call import LARGEST_ERROR, Call, ConditionalWriteOptions, Operation, Options, check_options, decode, error_of
from ._client import BaseClient, expired, log_retry, operation_of, start
from ._download import AsyncDownload
from ._errors import ConfigurationError
from ._oauth import AsyncTokenSource
from ._operations_gen import LIST_EVENTS
from ._pages import AsyncPages, Page, page_of
from ._response import Response, note, response_of
from ._stream import SILENCE

T = TypeVar("T")


class AsyncTransport(BaseClient):
    """Sends calls."""

    def __init__(
        self,
        *,
        api_key: str | None = None,
        token_source: AsyncTokenSource | None = None,
        base_url: str | None = None,
        timeout: float = 30.0,
        deadline: float = 120.0,
        max_retries: int = 2,
        strict: bool = True,
        headers: Mapping[str, str] | None = None,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        """Create a client. Close it with ``aclose``, or use it in an ``async with`` statement.

        Args:
            api_key: The API key. The default is the environment variable ``HOLDFAST_API_KEY``.
            token_source: Where the access tokens of an OAuth app come from, instead of an API key.
            base_url: The address of the API, such as ``https://host/api/v1``. The default is ``HOLDFAST_BASE_URL``.
            timeout: Seconds that one attempt may take.
            deadline: Seconds that all attempts of a call may take, with the pauses between them.
            max_retries: How often a failed attempt is repeated.
            strict: Whether a field that the API does not know is an error.
            headers: More headers of each request.
            http_client: A client of httpx with your own settings, for example for a proxy. You close it yourself.
        """
        super().__init__(
            api_key=api_key,
            base_url=base_url,
            has_token=token_source is not None,
            timeout=timeout,
            deadline=deadline,
            max_retries=max_retries,
            strict=strict,
            headers=headers,
        )
        if http_client is not None and not isinstance(http_client, httpx.AsyncClient):
            raise ConfigurationError("http_client must be an httpx.AsyncClient. Use Client with an httpx.Client.")
        self._source = token_source
        self._owns_http = http_client is None
        self._http = httpx.AsyncClient() if http_client is None else http_client

    async def aclose(self) -> None:
        """Close the connections."""
        if self._owns_http:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        await self.aclose()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: object = None,
        **options: Unpack[ConditionalWriteOptions],
    ) -> Response[Any]:
        """Send a request to a path, such as ``/bookings``, with the retries and errors of the other methods."""
        call = self._prepare(operation_of(method, path, body), {}, options, query=query, body=body)
        response, content = await self._execute(call)
        return response_of(decode(call, content), response, content)

    async def _json(
        self,
        operation: Operation[T],
        path: Mapping[str, str],
        options: Options,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
        body: object = None,
    ) -> T:
        """Return the data of a response."""
        call = self._prepare(operation, path, options, query=query, headers=headers, body=body)
        response, content = await self._execute(call)
        data: T = decode(call, content)
        note(response, content)
        return data

    def _pages(self, operation: Operation[T], path: Mapping[str, str], options: Options, query: Mapping[str, Any]) -> AsyncPages[T]:
        """Return a list."""
        check_options(operation, options)

        async def fetch(cursor: str | None) -> Page[T]:
            call = self._prepare(operation, path, options, query={**query, "cursor": cursor})
            response, content = await self._execute(call)
            return page_of(response_of(decode(call, content), response, content))

        return AsyncPages(fetch, query.get("cursor"))

    def _download(
        self,
        operation: Operation[Any],
        path: Mapping[str, str],
        options: Options,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> AsyncDownload:
        """Return a document."""
        check_options(operation, options)

        async def connect() -> httpx.Response:
            call = self._prepare(operation, path, options, query=query, headers=headers)
            return (await self._execute(call, read=False))[0]

        return AsyncDownload(connect)

    def _stream(
        self, operation: Operation[T], options: Options, query: Mapping[str, Any], last_event_id: str | None
    ) -> AsyncEventStream[T]:
        """Return an event stream."""
        check_options(operation, options)

        async def connect(last: str | None) -> httpx.Response:
            call = self._prepare(operation, {}, options, query=query, headers={"Last-Event-ID": last})
            call.silence = SILENCE
            return (await self._execute(call, read=False))[0]

        async def first(**order: str) -> T | None:
            page: Any = await self._json(LIST_EVENTS, {}, options, query={**query, "limit": 1, **order})
            found: list[T] = page["data"]
            return found[0] if found else None

        return AsyncEventStream(connect, first, last_event_id)

    async def _execute(self, call: Call[Any], *, read: bool = True) -> tuple[httpx.Response, bytes]:
        """Return the successful response and its body, which is empty and unread if read is False."""
        while True:
            token = "" if call.operation.public else await self._token()
            try:
                response = await self._http.send(start(call, self._http, token), stream=True, follow_redirects=False)
                if response.is_success and not read:
                    return response, b""
                content = await _read(call, response)
            except httpx.RequestError as failure:
                pause = call.after_error(failure)
                log_retry(call, pause, failure)
            else:
                if response.is_success:
                    return response, content
                error = error_of(response, content, call.key)
                if self._source is not None and expired(call, error):
                    self._source.reject(token)
                    continue
                pause = call.after_response(error)
                log_retry(call, pause, error)
            await asyncio.sleep(pause)

    async def _token(self) -> str:
        return self._api_key if self._source is None else await self._source.token()


async def _read(call: Call[Any], response: httpx.Response) -> bytes:
    """Return the body of a response. The body of an error is cut if it is too long."""
    content = bytearray()
    try:
        async for chunk in response.aiter_bytes():
            content += chunk
            call.check()
            if not response.is_success and len(content) > LARGEST_ERROR:
                break
    finally:
        await response.aclose()
    return bytes(content)
