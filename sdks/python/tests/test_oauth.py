"""Access tokens of OAuth apps."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qsl

import httpx

import holdfast
from holdfast import AsyncOAuthToken, OAuthToken, Tokens, errors

from .case import TLS, ClientCase
from .server import Reply, Request, cut, error


def granted(number: int, **more: Any) -> Reply:
    tokens = {"access_token": f"svc_at_{number}", "refresh_token": f"svc_rt_{number}", "expires_in": 3600, "token_type": "bearer", **more}
    return Reply(200, tokens)


def form(request: Request) -> dict[str, str]:
    return dict(parse_qsl(request.body.decode()))


class OAuthTest(ClientCase):
    def setUp(self) -> None:
        super().setUp()
        self.saved: list[Tokens] = []
        self.after_save = 0
        self.failures = 0

    def source(self, tokens: Tokens) -> OAuthToken | AsyncOAuthToken:
        if not self.asynchronous:
            http = httpx.Client(verify=TLS)
            self.addCleanup(http.close)
            return OAuthToken(self.server.url, "app_1", tokens, self.save, http_client=http)
        later = httpx.AsyncClient(verify=TLS)
        self.addCleanup(lambda: self.runner and self.runner.run(later.aclose()))
        return AsyncOAuthToken(self.server.url, "app_1", tokens, self.save_later, http_client=later)

    def save(self, tokens: Tokens) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("the disk is full")
        self.after_save = len(self.server.requests)
        self.saved.append(tokens)

    async def save_later(self, tokens: Tokens) -> None:
        await asyncio.sleep(0)
        self.save(tokens)

    def authorizations(self) -> list[str | None]:
        return [request.headers.get("authorization") for request in self.server.requests]

    def test_a_token_is_refreshed_once_and_used(self) -> None:
        self.server.replies = [granted(2, scope="read:bookings"), Reply(200, {}), Reply(200, {})]
        client = self.client(token_source=self.source(Tokens("svc_rt_1")))
        client.tenant.get()
        client.tenant.get()
        refresh = self.server.requests[0]
        self.assertEqual((refresh.method, refresh.path), ("POST", "/oauth/token"))
        self.assertEqual(form(refresh), {"grant_type": "refresh_token", "client_id": "app_1", "refresh_token": "svc_rt_1"})
        self.assertEqual(self.authorizations(), [None, "Bearer svc_at_2", "Bearer svc_at_2"])
        self.assertEqual([(t.refresh_token, t.access_token, t.scope) for t in self.saved], [("svc_rt_2", "svc_at_2", "read:bookings")])
        self.assertAlmostEqual(self.saved[0].expires_at, time.time() + 3600, delta=60)
        self.assertEqual(self.after_save, 1, "the tokens are stored before they are used")

    def test_a_valid_token_is_used(self) -> None:
        self.server.replies = [Reply(200, {})]
        self.client(token_source=self.source(Tokens("svc_rt_1", "svc_at_1", time.time() + 3600))).tenant.get()
        self.assertEqual(self.authorizations(), ["Bearer svc_at_1"])

    def test_a_token_is_replaced_before_it_expires(self) -> None:
        self.server.replies = [granted(2), Reply(200, {})]
        self.client(token_source=self.source(Tokens("svc_rt_1", "svc_at_1", time.time() + 59))).tenant.get()
        self.assertEqual(self.authorizations(), [None, "Bearer svc_at_2"])

    def test_an_expired_token_is_replaced_once(self) -> None:
        self.server.replies = [error(401, "expired_credential"), granted(2), error(503, "unavailable"), Reply(201, {"id": "bk_1"})]
        client = self.client(token_source=self.source(Tokens("svc_rt_1", "svc_at_1", time.time() + 3600)), max_retries=1)
        self.assertEqual(client.bookings.create({"event_date": "2030-06-01"}), {"id": "bk_1"})
        self.assertEqual(self.authorizations(), ["Bearer svc_at_1", None, "Bearer svc_at_2", "Bearer svc_at_2"])
        self.assertEqual(self.server.requests[0].key, self.server.requests[2].key)
        self.server.replies = [error(401, "expired_credential"), granted(3), error(401, "expired_credential")]
        with self.assertRaises(errors.ExpiredCredential):
            client.tenant.get()

    def test_other_errors_of_the_credential_cause_no_refresh(self) -> None:
        self.server.replies = [error(401, "revoked_credential")]
        with self.assertRaises(errors.RevokedCredential):
            self.client(token_source=self.source(Tokens("svc_rt_1", "svc_at_1", time.time() + 3600))).tenant.get()
        self.assertEqual(len(self.server.requests), 1)

    def test_a_refresh_is_not_repeated(self) -> None:
        for failure in (
            cut(),
            Reply(429, {"error": "temporarily_unavailable"}, {"Retry-After": "0"}),
            Reply(503, {"error": "temporarily_unavailable"}, {"Retry-After": "0"}),
            Reply(400, {"error": "invalid_grant", "error_description": "It is used."}),
        ):
            self.server.requests.clear()
            self.server.replies = [failure]
            with self.assertRaises(errors.TokenError) as raised:
                self.client(token_source=self.source(Tokens("svc_rt_1"))).tenant.get()
            self.assertEqual(len(self.server.requests), 1)
        self.assertEqual((raised.exception.error, raised.exception.status), ("invalid_grant", 400))
        self.assertIn("It is used.", str(raised.exception))
        self.assertEqual(self.saved, [])

    def test_tokens_that_could_not_be_stored_are_stored_by_the_next_call(self) -> None:
        self.server.replies = [granted(2), Reply(200, {})]
        self.failures = 1
        client = self.client(token_source=self.source(Tokens("svc_rt_1")))
        with self.assertRaises(OSError):
            client.tenant.get()
        self.assertEqual(self.saved, [])
        client.tenant.get()
        self.assertEqual([t.refresh_token for t in self.saved], ["svc_rt_2"])
        self.assertEqual(self.authorizations(), [None, "Bearer svc_at_2"])

    def test_many_calls_refresh_once(self) -> None:
        self.server.replies = [granted(2)]
        self.server.replies[0].delay = 0.2
        self.server.default = Reply(200, {})
        source = self.source(Tokens("svc_rt_1"))
        client = self.client(token_source=source)
        if isinstance(source, OAuthToken):
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda _: client.tenant.get(), range(8)))
        else:
            client._runner.run(self.at_once(client._target))
        self.assertEqual([request.path for request in self.server.requests].count("/oauth/token"), 1)
        self.assertEqual(self.authorizations().count("Bearer svc_at_2"), 8)

    async def at_once(self, client: holdfast.AsyncClient) -> None:
        await asyncio.gather(*(client.tenant.get() for _ in range(8)))

    def test_a_key_and_a_token(self) -> None:
        with self.assertRaises(errors.ConfigurationError):
            self.client(api_key="svc_test_key", token_source=self.source(Tokens("svc_rt_1")))


class AsyncOAuthTest(OAuthTest):
    asynchronous = True

    def test_a_canceled_call_does_not_lose_the_tokens(self) -> None:
        self.server.replies = [granted(2)]
        self.server.replies[0].delay = 0.2
        self.server.default = Reply(200, {})
        client = self.client(token_source=self.source(Tokens("svc_rt_1")))

        async def cancel() -> None:
            call = asyncio.ensure_future(client._target.tenant.get())
            await asyncio.sleep(0.1)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            await client._target.tenant.get()

        client._runner.run(cancel())
        self.assertEqual([t.refresh_token for t in self.saved], ["svc_rt_2"])
        self.assertEqual(self.authorizations(), [None, "Bearer svc_at_2"])
