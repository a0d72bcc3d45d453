"""Access tokens of OAuth apps, for the asynchronous client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import httpx

from ._oauth import HEADERS, TIMEOUT, Grant, Tokens


class AsyncOAuthToken:
    """The access token of a grant, for an asynchronous client. It is refreshed before it expires, by one task at a time.

    Args:
        auth_url: The address of the OAuth server, without ``/oauth/token``.
        client_id: The ID of your app.
        tokens: The tokens that you stored.
        save: Stores new tokens. It is awaited before the new access token is used, because the previous refresh token is not valid
            any more. Let only one process refresh the tokens of a grant.
    """

    def __init__(
        self,
        auth_url: str,
        client_id: str,
        tokens: Tokens,
        save: Callable[[Tokens], Awaitable[None]],
        *,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        self._grant = Grant(auth_url, client_id, tokens)
        self._save = save
        self._http = http_client
        self._renewal: asyncio.Future[str] | None = None

    async def token(self) -> str:
        """Return a valid access token."""
        if token := self._grant.valid():
            return token
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.ensure_future(self._renew())
        # If the caller is canceled, the refresh continues: otherwise, the new refresh token would be lost.
        return await asyncio.shield(self._renewal)

    async def _renew(self) -> str:
        if self._http is not None:
            response = await self._refresh(self._http)
        else:
            async with httpx.AsyncClient(timeout=TIMEOUT) as http:
                response = await self._refresh(http)
        tokens = self._grant.read(response)
        await self._save(tokens)
        self._grant.tokens = tokens
        return tokens.access_token

    async def _refresh(self, http: httpx.AsyncClient) -> httpx.Response:
        attempt = 0
        while True:
            attempt += 1
            failure: httpx.Response | httpx.RequestError
            try:
                failure = await http.post(self._grant.url, data=self._grant.form(), headers=HEADERS)
            except httpx.RequestError as error:
                failure = error
            pause = self._grant.pause(attempt, failure)
            if pause is None:
                if isinstance(failure, httpx.Response):
                    return failure
                raise self._grant.failed(failure) from failure
            await asyncio.sleep(pause)

    def reject(self, token: str) -> None:
        """Note that the API rejected a token as expired."""
        self._grant.reject(token)
