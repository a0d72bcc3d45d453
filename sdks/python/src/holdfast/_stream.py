"""Event streams that resume after the last event."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import httpx

from ._call import LONGEST_RETRY_AFTER, backoff, repeatable, retry_after
from ._client import log
from ._errors import APIConnectionError, APIError, InvalidResponseError
from ._sse import Message, Parser

T = TypeVar("T")

SILENCE = 60.0
"""After how many seconds without a byte a stream is opened again. The platform sends a comment every 15 seconds."""


class Position:
    """Where a stream is, and when it connects again."""

    def __init__(self, last_event_id: str | None) -> None:
        self.last_event_id = last_event_id
        self.closed = False
        self.connected = False
        self.failures = 0
        self.retry = 1.0
        self.parser = Parser()

    def read(self, chunk: bytes) -> list[Message]:
        """Return the messages that a chunk completes."""
        messages = self.parser.feed(chunk)
        if self.parser.retry is not None:
            self.retry = self.parser.retry
        return messages

    def ended(self) -> bool:
        """Report whether the stream was closed."""
        return self.closed

    def start_after(self, event: Any) -> None:
        """Continue after an event, if there is one."""
        if event is not None:
            self.last_event_id = event["id"]

    def next(self, message: Message) -> Any:
        """Return the event of a message, and note that it was received."""
        try:
            event = json.loads(message.data)
        except ValueError as error:
            raise InvalidResponseError(f"A message of the event stream is not JSON: {message.data[:100]!r}.") from error
        self.failures = 0
        if message.id:
            self.last_event_id = message.id
        return event

    def pause(self) -> float:
        """Return the seconds to wait after the server ended the stream."""
        self.failures += 1
        return self.retry if self.failures == 1 else max(self.retry, backoff(self.failures))

    def recover(self, error: httpx.RequestError | APIConnectionError | APIError) -> float:
        """Return the seconds to wait after a failure, or raise the error if the stream cannot continue."""
        if not self.connected or (isinstance(error, APIError) and not repeatable(error)):
            raise error
        self.failures += 1
        log.info("the event stream was interrupted (%s) and continues after %s", error, self.last_event_id)
        asked = retry_after(error.headers) if isinstance(error, APIError) else None
        return max(self.retry, backoff(self.failures)) if asked is None else min(asked, LONGEST_RETRY_AFTER)


class EventStream(Generic[T]):
    """Events as they happen. A loop over it yields them until you close it.

    The platform ends a stream after several minutes, and connections break. The stream then connects again and continues after the last
    event. After the first connection, it does so until the API refuses the request.
    """

    def __init__(self, connect: Callable[[str | None], httpx.Response], first: Callable[..., T | None], last_event_id: str | None) -> None:
        self._connect = connect
        self._first = first
        self._at = Position(last_event_id)
        self._response: httpx.Response | None = None

    @property
    def last_event_id(self) -> str | None:
        """The ID of the last event that was yielded. Store it to continue later."""
        return self._at.last_event_id

    def __iter__(self) -> Iterator[T]:
        at = self._at
        if at.last_event_id is None:
            # Events between two connections must not be lost: the first connection also starts after an event, if there is one.
            at.start_after(self._first())
        while not at.ended():
            at.parser = Parser()
            try:
                self._response = self._connect(at.last_event_id)
                at.connected = True
                if at.last_event_id is None and (event := self._first(sort="updated_at")) is not None:
                    # There was no event when the stream started. The next connection continues after the first one.
                    at.start_after(event)
                    yield event
                    continue
                for chunk in self._response.iter_bytes():
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
                self._disconnect()
            if not at.ended():
                time.sleep(pause)

    def _disconnect(self) -> None:
        response, self._response = self._response, None
        if response is not None:
            response.close()

    def close(self) -> None:
        """End the stream."""
        self._at.closed = True
        self._disconnect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()
