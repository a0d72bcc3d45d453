"""Requests, retries and errors."""

from __future__ import annotations

import asyncio
import pickle
import socket
import time
import unittest
import uuid
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any
from unittest import mock

import holdfast
from holdfast import _call, errors

from .case import ClientCase
from .server import Reply, cut, error

BOOKING = {"id": "bk_1", "object": "booking", "added_later": {"x": [1, None]}}
CREATED = Reply(201, BOOKING)


class CallsTest(ClientCase):
    def test_a_request(self) -> None:
        self.server.replies = [CREATED]
        booking = self.client().bookings.create({"event_date": "2030-06-01", "notes": "Zoë"})
        self.assertEqual(booking, BOOKING, "fields that the client does not know pass through")
        (request,) = self.server.requests
        self.assertEqual((request.method, request.path, request.query), ("POST", "/api/v1/bookings", {}))
        self.assertEqual(request.json, {"event_date": "2030-06-01", "notes": "Zoë"})
        self.assertEqual(request.headers["authorization"], "Bearer svc_test_key")
        self.assertEqual(request.headers["user-agent"], f"holdfast-python/{holdfast.__version__}")
        self.assertEqual(request.headers["content-type"], "application/json")
        self.assertEqual(request.headers["accept"], "application/json")
        self.assertEqual(request.headers["prefer"], "handling=strict")
        self.assertEqual(uuid.UUID(request.key or "").version, 4)

    def test_settings_from_the_environment(self) -> None:
        self.server.replies = [Reply(200, {"id": "tn_1"})]
        environment = {"HOLDFAST_API_KEY": "svc_test_env\n", "HOLDFAST_BASE_URL": self.server.url + "/v1/"}
        with mock.patch.dict("os.environ", environment):
            self.assertEqual(self.client(api_key=None, base_url=None).tenant.get(), {"id": "tn_1"})
        (request,) = self.server.requests
        self.assertEqual((request.path, request.headers["authorization"]), ("/v1/tenant", "Bearer svc_test_env"))
        self.assertNotIn("idempotency-key", request.headers)
        self.assertNotIn("content-type", request.headers)

    def test_a_missing_setting_is_one_clear_error(self) -> None:
        for settings, message in (
            ({"api_key": None}, "HOLDFAST_API_KEY"),
            ({"api_key": ""}, "HOLDFAST_API_KEY"),
            ({"api_key": "svc_test_ä"}, "API key"),
            ({"base_url": None}, "HOLDFAST_BASE_URL"),
            ({"base_url": "holdfast.example"}, "https://host/api/v1"),
            ({"base_url": "https://x:y"}, "https://host/api/v1"),
            ({"timeout": 0}, "positive"),
            ({"max_retries": -1}, "negative"),
            ({"http_client": object()}, "http_client"),
        ):
            with self.subTest(settings), self.assertRaisesRegex(errors.ConfigurationError, message):
                self.client(**settings)

    def test_query(self) -> None:
        self.server.default = Reply(200, {"data": [], "has_more": False, "next_cursor": None})
        client = self.client()
        client.bookings.list(status=["pending", "confirmed"], metadata={"a b": "1&2"}, limit=5, number=None).page()
        client.units.list(active=True).page()
        client.availability.list(from_="2030-01-01", to="2030-01-02")
        self.assertEqual(
            [request.query for request in self.server.requests],
            [
                {"status": "pending,confirmed", "metadata[a b]": "1&2", "limit": "5"},
                {"active": "true"},
                {"from": "2030-01-01", "to": "2030-01-02"},
            ],
        )

    def test_path_parameters_are_encoded(self) -> None:
        self.server.default = Reply(200, BOOKING)
        client = self.client()
        client.bookings.get("bk_1/../?x=ä")
        self.assertEqual(self.server.requests[0].path, "/api/v1/bookings/bk_1%2F..%2F%3Fx%3D%C3%A4")
        for value in ("", ".", ".."):
            with self.assertRaises(ValueError):
                client.bookings.get(value)
        self.assertEqual(len(self.server.requests), 1)

    def test_options(self) -> None:
        self.server.replies = [Reply(200, BOOKING), Reply(204), Reply(200, BOOKING)]
        client = self.client(headers={"X-Team": "a", "user-agent": "mine"})
        client.bookings.update("bk_1", {"notes": None}, idempotency_key="mine", if_match='"3"', strict=False, headers={"x-team": "b"})
        self.assertIsNone(client.customers.delete("cu_1", if_match="*"))
        client.bookings.cancel("bk_1")
        first, second, third = self.server.requests
        self.assertEqual(
            {name: first.headers.get(name) for name in ("idempotency-key", "if-match", "prefer", "x-team", "user-agent")},
            {"idempotency-key": "mine", "if-match": '"3"', "prefer": None, "x-team": "b", "user-agent": "mine"},
        )
        self.assertEqual(first.json, {"notes": None})
        self.assertEqual((second.method, second.headers["if-match"], second.key), ("DELETE", "*", None))
        self.assertEqual((third.body, third.headers.get("content-type")), (b"", None), "an action without a body needs none")

    def test_an_unknown_argument_is_an_error(self) -> None:
        client = self.client()
        with self.assertRaises(TypeError):
            client.bookings.create({"event_date": "2030-06-01"}, idempotency_keys="x")
        with self.assertRaises(TypeError):
            client.bookings.create({"event_date": "2030-06-01"}, if_match="*")
        with self.assertRaises(TypeError):
            client.bookings.get("bk_1", idempotency_key="x")
        with self.assertRaises(TypeError):
            client.bookings.list(state="pending")
        with self.assertRaises(TypeError):
            client.bookings.list_csv(limit=1)
        with self.assertRaises(TypeError):
            client.events.stream(limit=1)
        self.assertEqual(self.server.requests, [])

    def test_with_raw_response(self) -> None:
        self.server.replies = [error(503, "unavailable"), Reply(201, BOOKING, {"Idempotent-Replayed": "true", "ETag": '"1"'})]
        response = self.client().bookings.with_raw_response.create({"event_date": "2030-06-01"})
        self.assertEqual((response.data, response.status, response.replayed), (BOOKING, 201, True))
        self.assertEqual((response.headers["etag"], response.etag, response.request_id), ('"1"', '"1"', "req_1"))
        self.assertIn(b"added_later", response.content)
        self.server.replies = [CREATED]
        self.assertFalse(self.client().bookings.with_raw_response.create({"event_date": "2030-06-01"}).replayed)

    def test_the_connections_of_the_client_are_closed(self) -> None:
        self.server.default = Reply(200, {"id": "tn_1"})
        client = self.client(http_client=None)
        client.tenant.get()
        client.close()
        with self.assertRaises(RuntimeError):
            client.tenant.get()
        given = self.client()
        given.close()
        given.tenant.get()

    def test_request_to_a_path(self) -> None:
        self.server.replies = [cut(), Reply(201, {"a": 1}), Reply(200, {"b": 2})]
        client = self.client()
        self.assertEqual(client.request("post", "/later", body={"x": 1}).data, {"a": 1})
        self.assertEqual(client.request("GET", "/later", query={"x": True}).data, {"b": 2})
        self.assertIsNotNone(self.keys()[0])
        self.assertEqual(self.keys(), [self.keys()[0], self.keys()[0], None])
        self.assertEqual(self.server.requests[2].query, {"x": "true"})
        with self.assertRaises(ValueError):
            client.request("GET", "later")


class RetriesTest(ClientCase):
    def test_one_key_across_all_attempts(self) -> None:
        for name, failure in {
            "cut": cut(),
            "body cut": Reply(201, BOOKING, cut=True),
            "408": error(408, "timeout"),
            "409": error(409, "idempotency_in_progress"),
            "425": error(425, "too_early"),
            "429": error(429, "rate_limited", headers={"Retry-After": "0"}),
            "500": error(500, "internal_error"),
            "502": error(502, "payment_intent_failed"),
            "502 of a proxy": Reply(502, b"<html>"),
            "503": error(503, "unavailable"),
            "504": error(504, "upstream_timeout"),
        }.items():
            with self.subTest(name):
                self.server.requests.clear()
                self.server.replies = [failure, failure, CREATED]
                self.assertEqual(self.client().bookings.create({"event_date": "2030-06-01"}), BOOKING)
                self.assertEqual(len(self.keys()), 3)
                self.assertEqual(len(set(self.keys())), 1)
                self.assertIsNotNone(self.keys()[0])

    def test_each_write_has_another_key(self) -> None:
        self.server.default = CREATED
        client = self.client()
        client.bookings.create({"event_date": "2030-06-01"})
        client.bookings.create({"event_date": "2030-06-01"})
        self.assertEqual(len(set(self.keys())), 2)

    def test_what_is_not_repeated(self) -> None:
        for status, code in (
            (400, "malformed_json"),
            (401, "invalid_credential"),
            (403, "insufficient_scope"),
            (404, "booking_not_found"),
            (409, "slot_unavailable"),
            (412, "version_mismatch"),
            (422, "invalid_request"),
            (501, "not_implemented"),
        ):
            with self.subTest(code):
                self.server.requests.clear()
                self.server.replies = [error(status, code)]
                with self.assertRaises(holdfast.APIError):
                    self.client().bookings.create({"event_date": "2030-06-01"})
                self.assertEqual(len(self.server.requests), 1)

    def test_a_final_refusal_is_not_repeated(self) -> None:
        for status, code in ((502, "payment_intent_failed"), (503, "unavailable")):
            with self.subTest(status):
                self.server.requests.clear()
                self.server.replies = [error(status, code, headers={"Service-Should-Retry": "false"})]
                with self.assertRaises(holdfast.APIError):
                    self.client().bookings.create({"event_date": "2030-06-01"})
                self.assertEqual(len(self.server.requests), 1)

    def test_attempts_are_limited(self) -> None:
        for retries, options in ((2, {}), (0, {"max_retries": 0}), (4, {"max_retries": 4})):
            with self.subTest(retries):
                self.server.requests.clear()
                self.server.default = error(503, "unavailable")
                with self.assertRaises(errors.Unavailable) as raised:
                    self.client().bookings.create({"event_date": "2030-06-01"}, **options)
                self.assertEqual(len(self.server.requests), retries + 1)
                self.assertEqual(raised.exception.idempotency_key, self.keys()[0])

    def test_a_read_and_a_deletion_are_repeated(self) -> None:
        self.server.replies = [cut(), Reply(200, BOOKING), error(503, "unavailable"), Reply(204)]
        client = self.client()
        self.assertEqual(client.bookings.get("bk_1"), BOOKING)
        client.customers.delete("cu_1")
        self.assertEqual(len(self.server.requests), 4)

    def test_a_write_without_a_key_is_not_repeated(self) -> None:
        operation: _call.Operation[None] = _call.Operation("POST", "/x")
        for failure in (cut(), error(503, "unavailable")):
            self.server.requests.clear()
            self.server.replies = [failure]
            client = self.client()
            call = getattr(client, "_target", client)._prepare(operation, {}, {})
            with self.assertRaises(holdfast.HoldfastError):
                client._execute(call)
            self.assertEqual(len(self.server.requests), 1)

    def test_a_write_without_a_key_is_repeated_if_it_did_not_leave(self) -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            client = self.client(base_url=f"http://127.0.0.1:{unused.getsockname()[1]}")
            call = getattr(client, "_target", client)._prepare(_call.Operation("POST", "/x"), {}, {})
            with self.assertRaises(holdfast.APIConnectionError):
                client._execute(call)
            self.assertEqual(call.attempts, 3)

    def test_connection_errors_are_typed(self) -> None:
        self.server.default = cut()
        with self.assertRaisesRegex(holdfast.APIConnectionError, r"POST /bookings: the connection failed") as raised:
            self.client().bookings.create({"event_date": "2030-06-01"})
        self.assertEqual({raised.exception.idempotency_key}, set(self.keys()))
        self.assertEqual(len(self.keys()), 3)

    def test_a_slow_response_is_repeated(self) -> None:
        self.server.replies = [Reply(201, BOOKING, delay=5), CREATED]
        self.assertEqual(self.client().bookings.create({"event_date": "2030-06-01"}, timeout=0.3), BOOKING)
        self.assertEqual(len(set(self.keys())), 1)
        self.assertEqual(len(self.keys()), 2)

    def test_a_response_that_trickles_is_too_slow(self) -> None:
        def trickle() -> Iterator[bytes]:
            for _ in range(100):
                time.sleep(0.05)
                yield b" "

        self.server.replies = [Reply(200, chunks=trickle()), Reply(200, BOOKING)]
        self.assertEqual(self.client().bookings.get("bk_1", timeout=0.4), BOOKING)

    def test_the_deadline_ends_the_call(self) -> None:
        self.server.default = Reply(200, BOOKING, delay=5)
        started = time.monotonic()
        with self.assertRaises(holdfast.APITimeoutError):
            self.client(max_retries=100).bookings.get("bk_1", deadline=0.4)
        self.assertLess(time.monotonic() - started, 3)
        self.server.default = error(429, "rate_limited", headers={"Retry-After": "2"})
        started = time.monotonic()
        with self.assertRaises(errors.RateLimited):
            self.client().bookings.get("bk_1", deadline=1)
        self.assertLess(time.monotonic() - started, 1, "a pause that ends after the deadline is not begun")

    def test_retry_after(self) -> None:
        self.server.replies = [error(429, "rate_limited", headers={"Retry-After": "1"}), Reply(200, BOOKING)]
        started = time.monotonic()
        self.client().bookings.get("bk_1")
        self.assertGreaterEqual(time.monotonic() - started, 1)
        self.server.requests.clear()
        self.server.replies = [error(503, "unavailable", headers={"Retry-After": "61"})]
        with self.assertRaises(errors.Unavailable):
            self.client().bookings.get("bk_1")
        self.assertEqual(len(self.server.requests), 1, "a server that asks for more than a minute gets no retry")

    def test_redirects_are_not_followed(self) -> None:
        self.server.replies = [Reply(307, None, {"Location": "/elsewhere"})]
        with self.assertRaises(holdfast.APIError) as raised:
            self.client().bookings.create({"event_date": "2030-06-01"})
        self.assertEqual((raised.exception.status, len(self.server.requests)), (307, 1))


class ErrorsTest(ClientCase):
    def failure(self, reply: Reply) -> holdfast.APIError:
        self.server.replies = [reply]
        with self.assertRaises(holdfast.APIError) as raised:
            self.client(max_retries=0).bookings.create({"event_date": "2030-06-01"})
        return raised.exception

    def test_the_class_follows_from_the_code(self) -> None:
        failure = self.failure(error(409, "slot_unavailable", seats_available=2, doc_url="https://h/docs/errors#slot_unavailable"))
        self.assertIs(type(failure), holdfast.SlotUnavailable)
        self.assertIsInstance(failure, errors.ConflictError)
        self.assertEqual((failure.status, failure.code, failure.message), (409, "slot_unavailable", "It is slot_unavailable."))
        self.assertEqual((failure.request_id, failure.param, failure.errors), ("req_1", None, {}))
        self.assertEqual(failure.error["seats_available"], 2)
        self.assertEqual(failure.doc_url, "https://h/docs/errors#slot_unavailable")
        self.assertEqual(str(failure), "slot_unavailable: It is slot_unavailable. (request req_1)")
        copy = pickle.loads(pickle.dumps(failure))
        self.assertEqual((type(copy), copy.code, copy.request_id), (type(failure), failure.code, "req_1"))

    def test_errors_of_validation(self) -> None:
        fields = {"event_date": ["Is required."]}
        failure = self.failure(error(422, "invalid_request", param="event_date", errors=fields))
        self.assertIs(type(failure), errors.InvalidRequest)
        self.assertIsInstance(failure, errors.UnprocessableError)
        self.assertEqual((failure.param, failure.errors), ("event_date", fields))

    def test_an_unknown_code_has_the_class_of_its_status(self) -> None:
        for status, kind in (
            (400, errors.BadRequestError),
            (401, errors.AuthenticationError),
            (403, errors.PermissionDeniedError),
            (404, errors.NotFoundError),
            (409, errors.ConflictError),
            (412, errors.PreconditionFailedError),
            (413, errors.RequestTooLargeError),
            (418, errors.APIError),
            (422, errors.UnprocessableError),
            (429, errors.TooManyRequestsError),
            (500, errors.ServerError),
            (599, errors.ServerError),
        ):
            with self.subTest(status):
                failure = self.failure(error(status, "added_later"))
                self.assertIs(type(failure), kind)
                self.assertEqual(failure.code, "added_later")

    def test_an_error_without_an_envelope(self) -> None:
        bodies: tuple[Any, ...] = (b"<html>Bad Gateway</html>", {"error": "x"}, [], {"error": {"code": 7, "message": None}})
        for body in bodies:
            with self.subTest(body):
                failure = self.failure(Reply(502, body))
                self.assertIs(type(failure), errors.ServerError)
                self.assertEqual((failure.code, failure.request_id), ("", "req_1"))
                self.assertIn("502", str(failure))

    def test_the_body_of_an_error_is_bounded(self) -> None:
        failure = self.failure(Reply(500, b"x" * (8 << 20)))
        self.assertLess(len(failure.body), 2 << 20)

    def test_a_success_that_is_not_json(self) -> None:
        self.server.replies = [Reply(200, b"<html>")]
        with self.assertRaises(errors.InvalidResponseError):
            self.client().bookings.get("bk_1")


class AsyncCallsTest(CallsTest):
    asynchronous = True


class AsyncRetriesTest(RetriesTest):
    asynchronous = True

    def test_cancellation_ends_the_call(self) -> None:
        self.server.default = Reply(200, BOOKING, delay=5)
        client = self.client()

        async def cancel() -> None:
            async with asyncio.timeout(0.2):
                await client._target.bookings.get("bk_1")

        started = time.monotonic()
        with self.assertRaises(TimeoutError):
            client._runner.run(cancel())
        self.assertLess(time.monotonic() - started, 3)
        self.assertEqual(len(self.server.requests), 1)


class AsyncErrorsTest(ErrorsTest):
    asynchronous = True


class BackoffTest(unittest.TestCase):
    def test_full_jitter(self) -> None:
        for attempts, most in ((1, 0.5), (2, 1), (3, 2), (5, 8), (50, 8), (5000, 8)):
            pauses = [_call.backoff(attempts) for _ in range(2000)]
            self.assertLessEqual(max(pauses), most)
            self.assertGreater(max(pauses), most * 0.9)
            self.assertLess(min(pauses), most * 0.1)

    def test_retry_after(self) -> None:
        for value, least, most in (("0", 0, 0), ("7", 7, 7), (formatdate(time.time() + 30, usegmt=True), 28, 30.1), (formatdate(0), 0, 0)):
            pause = _call.retry_after({"retry-after": value})
            assert pause is not None
            self.assertGreaterEqual(pause, least)
            self.assertLessEqual(pause, most)
        for value in ("", "soon", "-1", "1.5", "¹"):
            self.assertIsNone(_call.retry_after({"retry-after": value}))
