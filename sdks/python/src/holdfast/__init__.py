"""The client of the Holdfast API.

Create a ``Client`` or an ``AsyncClient``. Its attributes are the resources, such as ``client.bookings``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import errors, webhooks
from ._call import ConditionalOptions, ConditionalWriteOptions, Options, WriteOptions
from ._download import AsyncDownload, Download
from ._errors import APIConnectionError, APIError, APITimeoutError, HoldfastError, WebhookError, WebhookSignatureError
from ._errors_gen import SlotUnavailable
from ._oauth import AsyncTokenSource, OAuthToken, Tokens, TokenSource
from ._pages import AsyncPages, Page, Pages
from ._response import Response
from ._stream import EventStream
from ._sync_gen import Client
from ._version_gen import __version__

if TYPE_CHECKING:
    from . import types
    from ._async_gen import AsyncClient
    from ._async_oauth import AsyncOAuthToken
    from ._async_stream import AsyncEventStream

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
    "types",
    "webhooks",
]

# These names are imported when they are used: asyncio takes longer to import than this package, and most programs do not use the types at
# run time.
_LATER = {
    "AsyncClient": "_async_gen",
    "AsyncEventStream": "_async_stream",
    "AsyncOAuthToken": "_async_oauth",
    "types": "types",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_LATER[name]}")
    value = module if name == "types" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
