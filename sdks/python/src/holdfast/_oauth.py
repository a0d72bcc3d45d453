"""Access tokens of OAuth apps."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import httpx

from ._errors import TokenError
from ._version_gen import USER_AGENT

MARGIN = 60.0
"""How many seconds before its end an access token is replaced."""


class TokenSource(Protocol):
    """Where a client gets its access token. You can write your own."""

    def token(self) -> str:
        """Return a valid access token."""

    def reject(self, token: str) -> None:
        """Note that the API rejected a token as expired. The next call of ``token`` must return another one."""


class AsyncTokenSource(Protocol):
    """Where an asynchronous client gets its access token. You can write your own."""

    async def token(self) -> str:
        """Return a valid access token."""

    def reject(self, token: str) -> None:
        """Note that the API rejected a token as expired. The next call of ``token`` must return another one."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a grant."""

    refresh_token: str
    """Valid for one refresh, which returns the next one."""
    access_token: str = ""
    """Valid for an hour, or ``""``."""
    expires_at: float = 0.0
    """When the access token expires, in Unix seconds."""
    scope: str = ""
    """The scopes of the access token, separated by spaces."""


class Grant:
    """The state of a grant, and its requests."""

    def __init__(self, auth_url: str, client_id: str, tokens: Tokens) -> None:
        self.url = auth_url.rstrip("/") + "/oauth/token"
        self.client_id = client_id
        self.tokens = tokens
        self.unsaved: Tokens | None = None
        """The tokens of the last refresh until the app has stored them. If storing them fails, the next call stores them again."""

    def valid(self) -> str:
        """Return the access token if it is still valid, otherwise an empty text."""
        if self.unsaved is not None or time.time() >= self.tokens.expires_at - MARGIN:
            return ""
        return self.tokens.access_token

    def saved(self) -> str:
        """Note that the app has stored the unsaved tokens, and return the access token."""
        if self.unsaved is not None:
            self.tokens, self.unsaved = self.unsaved, None
        return self.tokens.access_token

    def reject(self, token: str) -> None:
        """Note that the API rejected an access token as expired."""
        if token == self.tokens.access_token:
            self.tokens = Tokens(self.tokens.refresh_token, scope=self.tokens.scope)

    def form(self) -> dict[str, str]:
        """Return the request of a refresh."""
        return {
            "grant_type": "refresh_token",
            "client_id": self.client_id,
            "refresh_token": self.tokens.refresh_token,
        }

    def read(self, response: httpx.Response) -> Tokens:
        """Return the tokens of a response."""
        try:
            body: Any = response.json()
        except ValueError:
            body = None
        body = body if isinstance(body, dict) else {}
        access, refresh, seconds = body.get("access_token"), body.get("refresh_token"), body.get("expires_in")
        if response.status_code != 200 or not isinstance(access, str):
            code = str(body.get("error", ""))
            reason = body.get("error_description") or code or "no access token"
            raise TokenError(f"The OAuth server returned {response.status_code}: {reason}", code, response.status_code)
        lifetime = float(seconds) if isinstance(seconds, int | float) else 0.0
        next_refresh = refresh if isinstance(refresh, str) else self.tokens.refresh_token
        return Tokens(next_refresh, access, time.time() + lifetime, str(body.get("scope", "")))

    def failed(self, error: httpx.RequestError) -> TokenError:
        """Return the error of a refresh without a response."""
        return TokenError(f"The OAuth server did not respond: {error or type(error).__name__}")


HEADERS = {"User-Agent": USER_AGENT, "Accept": "application/json"}
TIMEOUT = 30.0


class OAuthToken:
    """The access token of a grant. It is refreshed before it expires, by one thread at a time.

    Args:
        auth_url: The address of the OAuth server, without ``/oauth/token``.
        client_id: The ID of your app.
        tokens: The tokens that you stored.
        save: Stores new tokens. It is called before the new access token is used, because the previous refresh token is not valid
            any more. Let only one process refresh the tokens of a grant.
    """

    def __init__(
        self,
        auth_url: str,
        client_id: str,
        tokens: Tokens,
        save: Callable[[Tokens], None],
        *,
        http_client: httpx.Client | None = None,
    ) -> None:
        self._grant = Grant(auth_url, client_id, tokens)
        self._save = save
        self._http = http_client
        self._lock = threading.Lock()

    def token(self) -> str:
        """Return a valid access token."""
        with self._lock:
            if token := self._grant.valid():
                return token
            if self._grant.unsaved is None:
                self._grant.unsaved = self._refresh()
            self._save(self._grant.unsaved)
            return self._grant.saved()

    def _refresh(self) -> Tokens:
        """Refresh the tokens. The request is not repeated, because a refresh token that is used twice ends the grant."""
        try:
            if self._http is not None:
                response = self._http.post(self._grant.url, data=self._grant.form(), headers=HEADERS)
            else:
                with httpx.Client(timeout=TIMEOUT) as http:
                    response = http.post(self._grant.url, data=self._grant.form(), headers=HEADERS)
        except httpx.RequestError as error:
            raise self._grant.failed(error) from error
        return self._grant.read(response)

    def reject(self, token: str) -> None:
        """Note that the API rejected a token as expired."""
        with self._lock:
            self._grant.reject(token)
