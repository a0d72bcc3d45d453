"""Lists and documents."""

from __future__ import annotations

import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

import holdfast
from holdfast import errors

from .case import ClientCase
from .server import Reply, cut, error


def page(ids: list[int], cursor: str | None) -> Reply:
    return Reply(200, {"data": [{"id": i} for i in ids], "has_more": cursor is not None, "next_cursor": cursor})


class ListsTest(ClientCase):
    def test_a_loop_requests_pages_when_it_needs_them(self) -> None:
        self.server.replies = [page([1, 2], "a"), page([], "b"), error(503, "unavailable"), page([3], None)]
        bookings = self.client().bookings.list(status="confirmed", limit=2)
        self.assertEqual(self.server.requests, [], "a list is lazy")
        loop = iter(bookings)
        self.assertEqual([item["id"] for item in islice(loop, 2)], [1, 2])
        self.assertEqual(len(self.server.requests), 1)
        self.assertEqual([item["id"] for item in loop], [3])
        self.assertEqual(
            [request.query for request in self.server.requests],
            [{"status": "confirmed", "limit": "2", **more} for more in ({}, {"cursor": "a"}, {"cursor": "b"}, {"cursor": "b"})],
        )

    def test_pages(self) -> None:
        self.server.replies = [page([1, 2], "a"), page([3], None)]
        pages = list(self.client().bookings.list().pages())
        self.assertEqual([(len(p), p.has_more, p.next_cursor) for p in pages], [(2, True, "a"), (1, False, None)])
        self.assertEqual([item["id"] for item in pages[0]], [1, 2])
        self.assertEqual(pages[0].response.request_id, "req_1")

    def test_one_page(self) -> None:
        self.server.replies = [page([2], "b"), page([2], None)]
        bookings = self.client().bookings.list(cursor="a")
        first = bookings.page()
        self.assertEqual((first.data, first.next_cursor), ([{"id": 2}], "b"))
        self.assertEqual([item["id"] for item in bookings], [2], "a list can be used again")
        self.assertEqual([request.query for request in self.server.requests], [{"cursor": "a"}] * 2)

    def test_a_page_that_cannot_be_continued(self) -> None:
        broken: tuple[Any, ...] = ({"data": [], "has_more": True, "next_cursor": None}, {"data": {}}, [], None)
        for body in broken:
            with self.subTest(body), self.assertRaises(errors.InvalidResponseError):
                self.server.replies = [Reply(200, body)]
                list(self.client().bookings.list())
        self.server.replies = [page([1], "a"), page([1], "a")]
        with self.assertRaises(errors.InvalidResponseError):
            list(self.client().bookings.list())

    def test_an_error_ends_the_loop(self) -> None:
        self.server.replies = [page([1], "a"), error(400, "invalid_cursor")]
        seen = []
        with self.assertRaises(errors.InvalidCursor):
            for item in self.client().bookings.list():
                seen.append(item["id"])
        self.assertEqual(seen, [1])


class DownloadsTest(ClientCase):
    def setUp(self) -> None:
        super().setUp()
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_a_document(self) -> None:
        self.server.replies = [error(503, "unavailable"), Reply(200, b"%PDF-1.7", {"Content-Type": "application/pdf"})]
        self.assertEqual(self.client().quotes.get_pdf("qt_1").read(), b"%PDF-1.7")
        self.assertEqual(self.server.requests[0].path, "/api/v1/quotes/qt_1/pdf")
        self.assertEqual(self.server.requests[0].headers["accept"], "application/pdf")

    def test_a_list_as_csv(self) -> None:
        self.server.replies = [Reply(200, b"id\r\nbk_1\r\n", {"Content-Type": "text/csv"})] * 2
        document = self.client().bookings.list_csv(status="confirmed")
        document.save(self.folder / "bookings.csv")
        self.assertEqual((self.folder / "bookings.csv").read_bytes(), b"id\r\nbk_1\r\n")
        self.assertEqual(b"".join(document.iter_bytes()), b"id\r\nbk_1\r\n")
        self.assertEqual(self.server.requests[0].query, {"status": "confirmed"})
        self.assertEqual(self.server.requests[0].headers["accept"], "text/csv")

    def test_a_transfer_that_fails_leaves_no_file(self) -> None:
        self.server.replies = [Reply(200, b"id\r\n", cut=True)]
        with self.assertRaises(holdfast.APIConnectionError):
            self.client().bookings.list_csv().save(self.folder / "bookings.csv")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_errors(self) -> None:
        self.server.replies = [cut(), cut(), error(404, "quote_not_found"), Reply(304)]
        with self.assertRaises(errors.QuoteNotFound):
            self.client().quotes.get_pdf("qt_1").read()
        with self.assertRaises(errors.NotModified):
            self.client().calendar_feeds.get_calendar("token", if_none_match='"1"').read()
        request = self.server.requests[-1]
        self.assertEqual((request.path, request.headers["if-none-match"]), ("/api/v1/calendar/token.ics", '"1"'))
        self.assertNotIn("authorization", request.headers, "the address is the credential")


class AsyncListsTest(ListsTest):
    asynchronous = True


class AsyncDownloadsTest(DownloadsTest):
    asynchronous = True
