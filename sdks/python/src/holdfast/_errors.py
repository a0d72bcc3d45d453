"""Errors that the client raises, and how they follow from a response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class HoldfastError(Exception):
    """The base class of all errors of this package."""


class ConfigurationError(HoldfastError):
    """The client cannot be created or used with these settings."""


class APIConnectionError(HoldfastError):
    """No complete response was received.

    The effect of a write is then unknown. Repeat it with the same key, which is in ``idempotency_key``.
    """

    def __init__(self, message: str, idempotency_key: str | None = None) -> None:
        super().__init__(message)
        self.idempotency_key = idempotency_key


class APITimeoutError(APIConnectionError):
    """No complete response was received in time."""


class InvalidResponseError(HoldfastError):
    """A successful response does not have the form that the API promises. A proxy may have replaced it."""


class TokenError(HoldfastError):
    """The OAuth server did not return a new access token."""

    def __init__(self, message: str, error: str = "", status: int = 0) -> None:
        super().__init__(message)
        self.error = error
        """The code of RFC 6749, such as ``invalid_grant``: ask the operator for consent again."""
        self.status = status


class WebhookError(HoldfastError):
    """A webhook delivery must not be processed."""


class WebhookSignatureError(WebhookError):
    """The signature of a delivery is missing, wrong, or too old."""


class APIError(HoldfastError):
    """An error that the API returned. The class of an error follows from its code, otherwise from its status."""

    def __init__(self, status: int, headers: Mapping[str, str], body: Any, idempotency_key: str | None = None) -> None:
        envelope = body if isinstance(body, dict) else {}
        error = envelope.get("error")
        self.status = status
        """The HTTP status."""
        self.headers = headers
        """The headers of the response."""
        self.body = body
        """The parsed JSON of the response, or its text if it is not JSON."""
        self.error: dict[str, Any] = error if isinstance(error, dict) else {}
        """The object ``error`` of the response, with all of its properties."""
        self.code = _text(self.error.get("code"))
        """The stable code, such as ``slot_unavailable``, or ``""`` if the response has none."""
        self.type = _text(self.error.get("type"))
        """The class of the error, such as ``validation_error``."""
        self.message = _text(self.error.get("message")) or f"The API returned status {status}."
        """What is wrong, in English."""
        self.param = _text(self.error.get("param")) or None
        """The first field that is wrong, of an error of validation."""
        errors = envelope.get("errors")
        self.errors: dict[str, list[str]] = errors if isinstance(errors, dict) else {}
        """The messages by field, of an error of validation."""
        self.request_id = _text(self.error.get("request_id")) or headers.get("x-request-id") or None
        """The ID of the request. Include it when you contact support."""
        self.doc_url = _text(self.error.get("doc_url")) or None
        """The address of the documentation of the code."""
        self.idempotency_key = idempotency_key
        """The key that the request was sent with. Repeat a failed write with the same key."""
        code = self.code or f"status {status}"
        suffix = f" (request {self.request_id})" if self.request_id else ""
        super().__init__(f"{code}: {self.message}{suffix}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, dict(self.headers), self.body, self.idempotency_key)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


class NotModified(APIError):
    """Status 304: the document is still the one of ``if_none_match``."""


class BadRequestError(APIError):
    """Status 400: the request is malformed."""


class AuthenticationError(APIError):
    """Status 401: the credential is missing, wrong, expired or revoked."""


class PermissionDeniedError(APIError):
    """Status 403: the credential is not allowed to do this."""


class NotFoundError(APIError):
    """Status 404: the object does not exist."""


class ConflictError(APIError):
    """Status 409: the request conflicts with the state of the object."""


class PreconditionFailedError(APIError):
    """Status 412: the object has another version than ``if_match``."""


class RequestTooLargeError(APIError):
    """Status 413: the body is too large."""


class UnprocessableError(APIError):
    """Status 422: the values of some fields are not valid. See ``errors``."""


class TooManyRequestsError(APIError):
    """Status 429: too many requests."""


class ServerError(APIError):
    """Status 500 and higher: the platform failed."""


BY_STATUS: dict[int, type[APIError]] = {
    304: NotModified,
    400: BadRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    412: PreconditionFailedError,
    413: RequestTooLargeError,
    422: UnprocessableError,
    429: TooManyRequestsError,
}


def base_of(status: int) -> type[APIError]:
    """Return the class of errors with a status whose code is unknown."""
    return BY_STATUS.get(status, ServerError if status >= 500 else APIError)
