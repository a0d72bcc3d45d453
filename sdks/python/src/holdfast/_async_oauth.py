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
        if self._grant.unsaved is None:
            self._grant.unsaved = await self._refresh()
        await self._save(self._grant.unsaved)
        return self._grant.saved()

    async def _refresh(self) -> Tokens:
        """Refresh the tokens. The request is not repeated, because a refresh token that is used twice ends the grant."""
        try:
            if self._http is not None:
                response = await self._http.post(self._grant.url, data=self._grant.form(), headers=HEADERS)
            else:
                async with httpx.AsyncClient(timeout=TIMEOUT) as http:
                    response = await http.post(self._grant.url, data=self._grant.form(), headers=HEADERS)
        except httpx.RequestError as error:
            raise self._grant.failed(error) from error
        return self._grant.read(response)

    def reject(self, token: str) -> None:
        """Note that the API rejected a token as expired."""
        self._grant.reject(token)
