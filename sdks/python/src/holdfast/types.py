"""The types of requests and responses: dictionaries with the fields of the API.

At run time, they are plain dictionaries. Fields and values that this version does not know are in them as well.
"""

from __future__ import annotations

from typing import Any, TypedDict

from ._types_gen import *  # noqa: F403


class UnknownEvent(TypedDict):
    """An event of a type that this version does not know. See ``holdfast.webhooks.is_unknown``."""

    id: str
    object: str
    type: str
    api_version: str
    mode: str
    created_at: str
    resource_version: int
    request: Any
    data: Any
