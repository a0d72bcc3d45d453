"""Verification of webhook deliveries."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeGuard, cast

from ._errors import WebhookError, WebhookSignatureError
from ._events_gen import EVENT_TYPES

if TYPE_CHECKING:
    from .types import UnknownEvent, WebhookEvent

TOLERANCE = 300
"""How many seconds the time of a signature may differ from the clock."""

_HEADER = "service-signature"
_TIME = re.compile("[0-9]{1,15}")
_HEX = re.compile("[0-9a-fA-F]{64}")


def unwrap(
    body: bytes | str,
    headers: Mapping[str, str],
    secret: str | Sequence[str],
    *,
    tolerance: int = TOLERANCE,
    now: float | None = None,
) -> WebhookEvent:
    """Verify a delivery and return its event.

    Args:
        body: The body exactly as you received it. Do not parse it before.
        headers: The headers of the request.
        secret: The endpoint's secret, ``whsec_…``, or several while you replace it.
        tolerance: How many seconds the time of the signature may differ from ``now``.
        now: The time in Unix seconds. The default is the system's clock.

    Returns:
        The event. Its ``type`` determines the object in ``data``. Ignore a type that you do not know: new ones can be added, and
        are returned as they are.

    Raises:
        WebhookSignatureError: The delivery was not signed with the secret, or too long ago. Do not process it. Return 400.
        WebhookError: The body is not an event.
    """
    raw = body.encode() if isinstance(body, str) else bytes(body)
    verify(raw, _signature(headers), secret, tolerance=tolerance, now=now)
    try:
        event = json.loads(raw)
    except ValueError as error:
        raise WebhookError("The body is not JSON.") from error
    if not isinstance(event, dict) or not isinstance(event.get("type"), str):
        raise WebhookError("The body is not an event: it has no type.")
    return cast("WebhookEvent", event)


def is_unknown(event: WebhookEvent) -> TypeGuard[UnknownEvent]:
    """Report whether the event has a type that this version does not know."""
    return event["type"] not in EVENT_TYPES


def verify(body: bytes, signature: str, secret: str | Sequence[str], *, tolerance: int = TOLERANCE, now: float | None = None) -> None:
    """Verify the value of ``Service-Signature`` for a body, or raise WebhookSignatureError."""
    secrets = [secret] if isinstance(secret, str) else list(secret)
    if not secrets or not all(secrets):
        raise ValueError("secret must not be empty.")
    signed, given = "", []
    for part in signature.split(","):
        name, _, value = part.strip().partition("=")
        if name == "t":
            signed = value
        elif name == "v1" and _HEX.fullmatch(value):
            given.append(bytes.fromhex(value))
    if not _TIME.fullmatch(signed) or not given:
        raise WebhookSignatureError("The header Service-Signature must have the form t=<time>,v1=<signature>.")
    if abs((time.time() if now is None else now) - int(signed)) > tolerance:
        raise WebhookSignatureError(f"The time of the signature differs from your clock by more than {tolerance} seconds.")
    message = signed.encode() + b"." + body
    wanted = [hmac.digest(key.encode(), message, hashlib.sha256) for key in secrets]
    matches = [hmac.compare_digest(want, sum_) for want in wanted for sum_ in given]
    if not any(matches):
        raise WebhookSignatureError("No signature matches. Pass the body exactly as you received it, and the secret of this endpoint.")


def _signature(headers: Mapping[str, str]) -> str:
    for name, value in headers.items():
        if name.lower().replace("_", "-") in (_HEADER, "http-" + _HEADER):
            return value
    raise WebhookSignatureError("The header Service-Signature is missing.")
