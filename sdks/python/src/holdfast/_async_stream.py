"""Event streams of the asynchronous client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Generic, Self, TypeVar

import httpx

from ._errors import APIConnectionError, APIError
from ._sse import Parser
from ._stream import Position

T = TypeVar("T")


class AsyncEventStream(Generic[T]):
    """Events as they happen. A loop over it yields them until you close it.

    The platform ends a stream after several minutes, and connections break. The stream then connects again and continues after the last
    event. After the first connection, it does so until the API refuses the request.
    """

    def __init__(
        self,
        connect: Callable[[str | None], Awaitable[httpx.Response]],
        first: Callable[..., Awaitable[T | None]],
        last_event_id: str | None,
    ) -> None:
        self._connect = connect
        self._first = first
        self._at = Position(last_event_id)
        self._response: httpx.Response | None = None

    @property
    def last_event_id(self) -> str | None:
        """The ID of the last event that was yielded. Store it to continue later."""
        return self._at.last_event_id

    async def __aiter__(self) -> AsyncIterator[T]:
        at = self._at
        if at.last_event_id is None:
            # Events between two connections must not be lost: the first connection also starts after an event, if there is one.
            at.start_after(await self._first())
        while not at.ended():
            at.parser = Parser()
            try:
                self._response = await self._connect(at.last_event_id)
                at.connected = True
                if at.last_event_id is None and (event := await self._first(sort="updated_at")) is not None:
                    # There was no event when the stream started. The next connection continues after the first one.
                    at.start_after(event)
                    yield event
                    continue
                async for chunk in self._response.aiter_bytes():
                    for message in at.read(chunk):
                        yield at.next(message)
                        if at.ended():
                            return
                pause = at.pause()
            except (httpx.RequestError, APIConnectionError, APIError) as error:
                if at.ended():
                    return
                pause = at.recover(error)
            finally:
                await self._disconnect()
            if not at.ended():
                await asyncio.sleep(pause)

    async def _disconnect(self) -> None:
        response, self._response = self._response, None
        if response is not None:
            await response.aclose()

    async def aclose(self) -> None:
        """End the stream."""
        self._at.closed = True
        await self._disconnect()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        await self.aclose()
