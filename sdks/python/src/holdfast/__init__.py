"""The client of the Holdfast API.

Create a ``Client`` or an ``AsyncClient``. Its attributes are the resources, such as ``client.bookings``.
"""

from __future__ import annotations

from . import errors, webhooks
from ._async_gen import AsyncClient
from ._call import ConditionalOptions, ConditionalWriteOptions, Options, WriteOptions
from ._download import AsyncDownload, Download
from ._errors import APIConnectionError, APIError, APITimeoutError, HoldfastError, WebhookError, WebhookSignatureError
from ._errors_gen import SlotUnavailable
from ._oauth import AsyncOAuthToken, AsyncTokenSource, OAuthToken, Tokens, TokenSource
from ._pages import AsyncPages, Page, Pages
from ._response import Response
from ._stream import AsyncEventStream, EventStream
from ._sync_gen import Client
from ._version_gen import __version__

__all__ = [
    "APIConnectionError",
    "APIError",
    "APITimeoutError",
    "AsyncClient",
    "AsyncDownload",
    "AsyncEventStream",
    "AsyncOAuthToken",
    "AsyncPages",
    "AsyncTokenSource",
    "Client",
    "ConditionalOptions",
    "ConditionalWriteOptions",
    "Download",
    "EventStream",
    "HoldfastError",
    "OAuthToken",
    "Options",
    "Page",
    "Pages",
    "Response",
    "SlotUnavailable",
    "TokenSource",
    "Tokens",
    "WebhookError",
    "WebhookSignatureError",
    "WriteOptions",
    "__version__",
    "errors",
    "webhooks",
]
