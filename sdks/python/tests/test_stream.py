"""Event streams."""

from __future__ import annotations

import json
import time
import unittest
from collections.abc import Iterator
from typing import Any
from unittest import mock

import holdfast
from holdfast import _sse, errors

from .case import ClientCase
from .server import Reply, cut, error

HEADERS = {"Content-Type": "text/event-stream"}


def stream(*chunks: bytes) -> Reply:
    return Reply(200, headers=HEADERS, chunks=chunks)


def listed(*numbers: int) -> Reply:
    """Return a page of events."""
    return Reply(200, {"data": [stored(number) for number in numbers], "has_more": False, "next_cursor": None})


def stored(number: int) -> dict[str, Any]:
    return {"id": f"evt_{number}", "type": "booking.created", "new": number}


def event(number: int) -> bytes:
    body = json.dumps(stored(number))
    return f"id: evt_{number}\nevent: booking.created\ndata: {body}\n\n".encode()


class StreamTest(ClientCase):
    def test_it_resumes_after_the_last_event(self) -> None:
        self.server.replies = [
            listed(0),
            stream(b"retry: 1\n\n", event(1), b": still here\n\n", event(2)),
            cut(),
            error(503, "unavailable"),
            error(429, "rate_limited", headers={"Retry-After": "0"}),
            stream(b"retry: 1\n\n", event(3)[:20]),
            stream(b"retry: 1\n\n", event(3)),
        ]
        events = self.client().events.stream(type=["booking.created"])
        self.assertEqual(self.server.requests, [], "a stream is lazy")
        seen = []
        for item in events:
            seen.append(item["id"])
            self.assertEqual(events.last_event_id, item["id"])
            if item["id"] == "evt_3":
                events.close()
        self.assertEqual(seen, ["evt_1", "evt_2", "evt_3"])
        self.assertEqual(
            [request.headers.get("last-event-id") for request in self.server.requests],
            [None, "evt_0", "evt_2", "evt_2", "evt_2", "evt_2", "evt_2"],
        )
        newest, first = self.server.requests[:2]
        self.assertEqual((newest.path, newest.query), ("/api/v1/events", {"type": "booking.created", "limit": "1"}))
        self.assertEqual((first.path, first.query), ("/api/v1/events/stream", {"type": "booking.created"}))
        self.assertEqual(first.headers["accept"], "text/event-stream")

    def test_no_event_is_lost_if_there_was_none_when_it_started(self) -> None:
        quiet = [stream(b"retry: 1\n\n"), listed()]
        self.server.replies = [listed(), *quiet, error(503, "unavailable"), *quiet, stream(), listed(1), stream(event(2))]
        seen = []
        for item in self.client().events.stream():
            seen.append(item["id"])
            if len(seen) == 2:
                break
        self.assertEqual(seen, ["evt_1", "evt_2"])
        opened, oldest = ("/api/v1/events/stream", None, None), ("/api/v1/events", "updated_at", None)
        self.assertEqual(
            [(r.path, r.query.get("sort"), r.headers.get("last-event-id")) for r in self.server.requests],
            [
                *(("/api/v1/events", None, None), opened, oldest, opened, opened, oldest, opened, oldest),
                ("/api/v1/events/stream", None, "evt_1"),
            ],
        )

    def test_it_continues_after_a_stored_event(self) -> None:
        self.server.replies = [stream(event(8))]
        for item in self.client().events.stream(last_event_id="evt_7"):
            self.assertEqual(item["new"], 8)
            break
        self.assertEqual(self.server.requests[0].headers["last-event-id"], "evt_7")

    def test_a_silent_connection_is_replaced(self) -> None:
        def silent() -> Iterator[bytes]:
            yield b"retry: 1\n\n" + event(1)
            time.sleep(5)

        self.server.replies = [Reply(200, headers=HEADERS, chunks=silent()), stream(event(2))]
        seen, started = [], time.monotonic()
        with mock.patch("holdfast._sync.SILENCE", 0.3), mock.patch("holdfast._async.SILENCE", 0.3):
            for item in self.client().events.stream(last_event_id="evt_0"):
                seen.append(item["id"])
                if len(seen) == 2:
                    break
        self.assertEqual(seen, ["evt_1", "evt_2"])
        self.assertLess(time.monotonic() - started, 4)

    def test_it_ends_if_the_api_refuses_the_request(self) -> None:
        self.server.replies = [stream(b"retry: 1\n\n", event(1)), error(401, "revoked_credential")]
        seen = []
        with self.assertRaises(errors.RevokedCredential):
            for item in self.client().events.stream(last_event_id="evt_0"):
                seen.append(item["id"])
        self.assertEqual(seen, ["evt_1"])

    def test_the_first_connection_has_the_retries_of_the_client(self) -> None:
        self.server.default = error(503, "unavailable")
        with self.assertRaises(errors.Unavailable):
            next(iter(self.client().events.stream()))
        self.assertEqual(len(self.server.requests), 3)

    def test_a_message_that_is_not_json(self) -> None:
        self.server.replies = [listed(0), stream(b"data: {\n\n")]
        with self.assertRaises(errors.InvalidResponseError):
            next(iter(self.client().events.stream()))


class AsyncStreamTest(StreamTest):
    asynchronous = True


class ParserTest(unittest.TestCase):
    def test_messages(self) -> None:
        text = (
            "\ufeffid: 1\nevent: a\ndata: x\ndata:y\ndata\n\n"
            "data: p\r\ndata: q\r\n\r\n: comment\r\nretry: 2500\r\nretry: soon\r\n\r\ndata: ü\r\rid: 2\rdata: z\r\r"
            "event: b\n\nid: \0\nunknown: 1\ndata:  two\n\ndata: incomplete\n"
        ).encode()
        want = [("1", "a", "x\ny\n"), ("1", "message", "p\nq"), ("1", "message", "ü"), ("2", "message", "z"), ("2", "message", " two")]
        for size in (1, 2, 3, 7, len(text)):
            parser = _sse.Parser()
            got = [m for i in range(0, len(text), size) for m in parser.feed(text[i : i + size])]
            self.assertEqual([(m.id, m.event, m.data) for m in got], want, f"in parts of {size} bytes")
            self.assertEqual(parser.retry, 2.5)

    def test_a_message_has_a_bound(self) -> None:
        for chunk in (b"x" * (1 << 20), b"data: " + b"x" * (1 << 20) + b"\n"):
            parser = _sse.Parser()
            with self.assertRaises(holdfast.HoldfastError):
                for _ in range(20):
                    parser.feed(chunk)
