"""The errors that the client raises. Catch the class of a code, or the class of a status, or APIError."""

from __future__ import annotations

from . import _errors_gen
from ._errors import (
    APIConnectionError,
    APIError,
    APITimeoutError,
    AuthenticationError,
    BadRequestError,
    ConfigurationError,
    ConflictError,
    HoldfastError,
    InvalidResponseError,
    NotFoundError,
    NotModified,
    PermissionDeniedError,
    PreconditionFailedError,
    RequestTooLargeError,
    ServerError,
    TokenError,
    TooManyRequestsError,
    UnprocessableError,
    WebhookError,
    WebhookSignatureError,
)
from ._errors_gen import *  # noqa: F403

__all__ = [
    "APIConnectionError",
    "APIError",
    "APITimeoutError",
    "AuthenticationError",
    "BadRequestError",
    "ConfigurationError",
    "ConflictError",
    "HoldfastError",
    "InvalidResponseError",
    "NotFoundError",
    "NotModified",
    "PermissionDeniedError",
    "PreconditionFailedError",
    "RequestTooLargeError",
    "ServerError",
    "TokenError",
    "TooManyRequestsError",
    "UnprocessableError",
    "WebhookError",
    "WebhookSignatureError",
]
__all__ += _errors_gen.__all__
