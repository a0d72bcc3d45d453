"""The parser of server-sent events, as the HTML standard defines them. This module does no I/O."""

from __future__ import annotations

from dataclasses import dataclass

from ._errors import InvalidResponseError

LARGEST_MESSAGE = 16 << 20


@dataclass(frozen=True, slots=True)
class Message:
    """A message of an event stream."""

    id: str
    event: str
    data: str


class Parser:
    """Splits the bytes of a stream into messages."""

    def __init__(self) -> None:
        self.retry: float | None = None
        """The seconds after which the server asks the client to reconnect."""
        self._rest = bytearray()
        self._searched = 0
        self._id = ""
        self._event = ""
        self._data: list[str] = []
        self._size = 0
        self._first = True

    def feed(self, chunk: bytes) -> list[Message]:
        """Return the messages that the chunk completes."""
        self._rest += chunk
        messages: list[Message] = []
        while (line := self._line()) is not None:
            if self._first:
                self._first, line = False, line.removeprefix("\ufeff")
            if line:
                self._field(line)
            elif self._data:
                messages.append(Message(self._id, self._event or "message", "\n".join(self._data)))
                self._event, self._data, self._size = "", [], 0
            else:
                self._event = ""
        if len(self._rest) + self._size > LARGEST_MESSAGE:
            raise InvalidResponseError("A message of the event stream is too large.")
        return messages

    def _line(self) -> str | None:
        """Remove and return the first complete line. A carriage return at the end waits for its line feed."""
        rest = self._rest
        feed = rest.find(b"\n", self._searched)
        stop = rest.find(b"\r", self._searched, feed if feed >= 0 else len(rest))
        if stop < 0:
            stop = feed
        if stop < 0 or (rest[stop] == 0x0D and stop + 1 == len(rest)):
            self._searched = stop if stop >= 0 else len(rest)
            return None
        line = rest[:stop].decode("utf-8", "replace")
        del rest[: stop + (2 if rest[stop : stop + 2] == b"\r\n" else 1)]
        self._searched = 0
        return line

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._size += len(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry = min(int(value[:9]) / 1000, 60.0)
