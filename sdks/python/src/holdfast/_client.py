"""What the synchronous and the asynchronous client have in common: settings, and the start of a call."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from typing import Any, TypeVar, cast

import httpx

from ._call import AllOptions, Call, Operation, Options, Policy, check_options, encode_query, fill, new_key
from ._errors import APIError, ConfigurationError
from ._version_gen import USER_AGENT

T = TypeVar("T")

log = logging.getLogger("holdfast")


class BaseClient:
    """The settings of a client."""

    def __init__(
        self,
        *,
        api_key: str | None,
        base_url: str | None,
        has_token: bool,
        timeout: float,
        deadline: float,
        max_retries: int,
        strict: bool,
        headers: Mapping[str, str] | None,
    ) -> None:
        if api_key is not None and has_token:
            raise ConfigurationError("Pass api_key or token_source, not both.")
        self._api_key = "" if has_token else (api_key or os.environ.get("HOLDFAST_API_KEY", "")).strip()
        if not self._api_key and not has_token:
            raise ConfigurationError("No API key. Pass api_key, or set HOLDFAST_API_KEY.")
        if not (self._api_key.isascii() and self._api_key.isprintable()):
            raise ConfigurationError("The API key contains characters that no key has.")
        base = (base_url or os.environ.get("HOLDFAST_BASE_URL", "")).strip().rstrip("/")
        if not base:
            raise ConfigurationError("No base URL. Pass base_url, or set HOLDFAST_BASE_URL.")
        try:
            url = httpx.URL(base)
        except httpx.InvalidURL:
            url = httpx.URL()
        if url.scheme not in ("http", "https") or not url.host:
            raise ConfigurationError(f"The base URL {base!r} must be like https://host/api/v1.")
        self._base_url = base
        self._policy = _policy(timeout, deadline, max_retries, strict)
        self._headers = dict(headers or {})

    @property
    def base_url(self) -> str:
        """The address of the API."""
        return self._base_url

    def _prepare(
        self,
        operation: Operation[T],
        path: Mapping[str, str],
        options: Options,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
        body: object = None,
    ) -> Call[T]:
        """Return a new call."""
        check_options(operation, options)
        given, default = cast("AllOptions", options), self._policy
        policy = _policy(
            given.get("timeout", default.timeout),
            given.get("deadline", default.deadline),
            given.get("max_retries", default.max_retries),
            given.get("strict", default.strict),
        )
        sent = httpx.Headers({"Accept": operation.accept, "User-Agent": USER_AGENT})
        sent.update(self._headers)
        sent.update(given.get("headers"))
        sent.update({name: value for name, value in (headers or {}).items() if value is not None})
        if operation.strict and policy.strict:
            sent["Prefer"] = "handling=strict"
        if operation.idempotent:
            sent["Idempotency-Key"] = given.get("idempotency_key") or new_key()
        if (match := given.get("if_match")) is not None:
            sent["If-Match"] = match
        content = None
        if body is not None:
            sent["Content-Type"] = "application/json"
            content = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        url = self._base_url + fill(operation.path, path)
        return Call(operation, url, policy, encode_query(query or {}), sent, content)


def start(call: Call[Any], http: httpx.Client | httpx.AsyncClient, token: str) -> httpx.Request:
    """Return the request of the next attempt."""
    wait = call.start()
    timeout = httpx.Timeout(wait, read=call.silence or wait)
    if token:
        call.headers["Authorization"] = f"Bearer {token}"
    return http.build_request(
        call.operation.method, call.url, params=call.params or None, headers=call.headers, content=call.content, timeout=timeout
    )


def operation_of(method: str, path: str, body: object) -> Operation[Any]:
    """Return the operation of a request that no method of a resource makes."""
    if not path.startswith("/"):
        raise ValueError(f"The path {path!r} must start with a slash.")
    writes = method.upper() in ("POST", "PATCH")
    return Operation(method.upper(), path, idempotent=writes, strict=writes and body is not None, conditional=True)


def expired(call: Call[Any], error: APIError) -> bool:
    """Report whether the call must be repeated with a new access token. It is repeated once."""
    if error.code != "expired_credential" or call.refreshed:
        return False
    call.refreshed = True
    call.attempts -= 1
    return True


def _policy(timeout: float, deadline: float, max_retries: int, strict: bool) -> Policy:
    if timeout <= 0 or deadline <= 0 or max_retries < 0:
        raise ConfigurationError("timeout and deadline must be positive, and max_retries must not be negative.")
    return Policy(timeout, deadline, max_retries, strict)


def log_retry(call: Call[Any], pause: float, reason: object) -> None:
    """Log that an attempt failed and is repeated."""
    log.info("%s: attempt %d failed (%s); the next one follows in %.2f s", call, call.attempts, reason, pause)
