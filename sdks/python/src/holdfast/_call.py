"""One call of an operation: its request, and after each attempt the decision whether to repeat it. This module does no I/O."""

from __future__ import annotations

import json
import random
import ssl
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Generic, TypedDict, TypeVar
from urllib.parse import quote

import httpx

from ._errors import APIConnectionError, APIError, APITimeoutError, HoldfastError, InvalidResponseError, base_of
from ._errors_gen import BY_CODE

T = TypeVar("T")

BACKOFF_BASE = 0.5
BACKOFF_CAP = 8.0
LONGEST_RETRY_AFTER = 60.0
LARGEST_ERROR = 1 << 20

_RETRY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
_RETRY_CODES = frozenset({"idempotency_in_progress"})
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
_NEVER_LEFT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_PROGRAMMING = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)


class Options(TypedDict, total=False):
    """Options of each call."""

    timeout: float
    """Seconds that one attempt may take."""
    deadline: float
    """Seconds that all attempts together may take, with the pauses between them."""
    max_retries: int
    """How often a failed attempt is repeated. 0 turns retries off."""
    headers: Mapping[str, str]
    """More headers of the request."""


class ConditionalOptions(Options, total=False):
    """Options of a call that can depend on the version of the object."""

    if_match: str
    """The ``ETag`` of the version that you expect, such as ``'"3"'``. Another version is the error ``VersionMismatch``."""


class WriteOptions(Options, total=False):
    """Options of a write."""

    idempotency_key: str
    """Identifies the write. A write that is repeated with the same key has its effect once. Without it, the client creates one."""
    strict: bool
    """Whether a field that the API does not know is an error. Otherwise, the API ignores it."""


class ConditionalWriteOptions(ConditionalOptions, WriteOptions, total=False):
    """Options of a write that can depend on the version of the object."""


class AllOptions(ConditionalWriteOptions, total=False):
    """All options. Which of them a method takes follows from its signature."""


@dataclass(frozen=True, slots=True)
class Operation(Generic[T]):
    """An operation of the contract. T is the type of its response."""

    method: str
    path: str
    idempotent: bool = False
    strict: bool = False
    conditional: bool = False
    public: bool = False
    accept: str = "application/json"


@dataclass(frozen=True, slots=True)
class Policy:
    """How the client handles failed attempts."""

    timeout: float = 30.0
    deadline: float = 120.0
    max_retries: int = 2
    strict: bool = True


def check_options(operation: Operation[Any], options: Mapping[str, Any]) -> None:
    """Raise TypeError if the operation does not take one of the options."""
    taken = set(Options.__optional_keys__)
    if operation.idempotent:
        taken |= WriteOptions.__optional_keys__
    if operation.conditional:
        taken |= ConditionalOptions.__optional_keys__
    if unknown := sorted(set(options) - taken):
        raise TypeError(f"{operation.method} {operation.path} does not take the argument {unknown[0]!r}.")


def new_key() -> str:
    """Return a new idempotency key."""
    return str(uuid.uuid4())


def fill(path: str, values: Mapping[str, str]) -> str:
    """Return the path with its parameters."""
    for name, value in values.items():
        if value in ("", ".", ".."):
            raise ValueError(f"{name} must not be {value!r}.")
        path = path.replace("{" + name + "}", quote(value, safe=""))
    return path


def encode_query(query: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameters of a query as they are sent. None leaves a parameter out."""
    pairs: dict[str, str] = {}
    for name, value in query.items():
        if value is None:
            continue
        if isinstance(value, Mapping):
            pairs.update({f"{name}[{key}]": _scalar(v) for key, v in value.items()})
        elif isinstance(value, Sequence) and not isinstance(value, str):
            pairs[name] = ",".join(_scalar(v) for v in value)
        else:
            pairs[name] = _scalar(value)
    return pairs


def _scalar(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(slots=True)
class Call(Generic[T]):
    """A call with its state. The idempotency key is the same in all attempts."""

    operation: Operation[T]
    url: str
    policy: Policy
    params: dict[str, str] = field(default_factory=dict)
    headers: httpx.Headers = field(default_factory=httpx.Headers)
    content: bytes | None = None
    silence: float | None = None
    """How many seconds the server may send nothing, if that differs from the policy's timeout."""
    attempts: int = 0
    refreshed: bool = False
    """Whether the access token was replaced because it had expired."""
    _ends: float = 0.0
    _attempt_ends: float = 0.0

    def __post_init__(self) -> None:
        self._ends = time.monotonic() + self.policy.deadline

    @property
    def key(self) -> str | None:
        """The idempotency key, if the operation takes one."""
        key: str | None = self.headers.get("Idempotency-Key")
        return key

    def remaining(self) -> float:
        """Return the seconds until the deadline."""
        return self._ends - time.monotonic()

    def start(self) -> float:
        """Begin the next attempt, and return the seconds that it may take."""
        left = self.remaining()
        if left <= 0:
            raise APITimeoutError(f"{self}: the deadline of {self.policy.deadline:g} s has passed.", self.key)
        self.attempts += 1
        wait = min(self.policy.timeout, left)
        self._attempt_ends = time.monotonic() + wait
        return wait

    def check(self) -> None:
        """Raise an error if the attempt takes too long. httpx only limits the time between two parts of a response."""
        if time.monotonic() > self._attempt_ends:
            raise httpx.ReadTimeout("the response took too long")

    def after_error(self, error: httpx.RequestError) -> float:
        """Return the seconds to wait before the next attempt, after an attempt without a response, or raise the error."""
        kind = APITimeoutError if isinstance(error, httpx.TimeoutException) else APIConnectionError
        final = kind(f"{self}: {_reason(error)}", self.key)
        left = isinstance(error, _NEVER_LEFT)
        if _permanent(error) or not (left or self._repeatable()):
            raise final from error
        return self._pause(final, None, error)

    def after_response(self, error: APIError) -> float:
        """Return the seconds to wait before the next attempt, after a response with an error, or raise the error."""
        if not repeatable(error) or not self._repeatable():
            raise error
        return self._pause(error, retry_after(error.headers), None)

    def _repeatable(self) -> bool:
        return self.operation.method in _SAFE_METHODS or self.key is not None

    def _pause(self, final: HoldfastError, asked: float | None, cause: Exception | None) -> float:
        if self.attempts > self.policy.max_retries or (asked is not None and asked > LONGEST_RETRY_AFTER):
            raise final from cause
        pause = backoff(self.attempts) if asked is None else asked
        if pause >= self.remaining():
            raise final from cause
        return pause

    def __str__(self) -> str:
        return f"{self.operation.method} {self.operation.path}"


def _permanent(error: httpx.RequestError) -> bool:
    """Report whether each attempt would fail in the same way."""
    if isinstance(error, _PROGRAMMING) or not isinstance(error, httpx.TransportError):
        return True
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def repeatable(error: APIError) -> bool:
    """Report whether the unchanged request can succeed later."""
    if error.headers.get("service-should-retry") == "false":
        return False
    return error.status in _RETRY_STATUS or error.code in _RETRY_CODES


def backoff(attempts: int) -> float:
    """Return a random pause after a number of failed attempts: exponential with full jitter."""
    return random.uniform(0, min(BACKOFF_CAP, BACKOFF_BASE * 2.0 ** min(attempts - 1, 10)))  # noqa: S311


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of ``Retry-After``, which are a number or a date."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def _reason(error: httpx.RequestError) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "no complete response was received in time."
    return f"the connection failed: {error or type(error).__name__}."


def error_of(response: httpx.Response, content: bytes, key: str | None) -> APIError:
    """Return the typed error of a response."""
    text = content.decode("utf-8", "replace")
    try:
        body: Any = json.loads(text)
    except ValueError:
        body = text
    base = APIError(response.status_code, response.headers, body, key)
    kind = BY_CODE.get(base.code, base_of(base.status))
    return kind(base.status, base.headers, body, key)


def decode(call: Call[T], content: bytes) -> Any:
    """Return the JSON of a successful response, or None if it has no content."""
    if not content:
        return None
    try:
        return json.loads(content)
    except ValueError as error:
        raise InvalidResponseError(f"{call}: the response is not JSON: {content[:100]!r}.") from error
