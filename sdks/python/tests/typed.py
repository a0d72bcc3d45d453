"""What mypy must accept and reject. mypy also fails if it does not report an error that a comment ignores."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import assert_type

from holdfast import (
    AsyncClient,
    AsyncEventStream,
    AsyncPages,
    Client,
    Download,
    Page,
    Pages,
    Response,
    SlotUnavailable,
    WriteOptions,
    types,
    webhooks,
)
from holdfast.errors import APIError, ConflictError


def synchronous(client: Client) -> None:
    booking = client.bookings.create({"event_date": "2030-06-01", "metadata": {"order": "17"}}, idempotency_key="x")
    assert_type(booking, types.Booking)
    assert_type(booking["total_amount"], types.Money)
    assert_type(booking["notes"], str | None)
    assert_type(client.bookings.list(status=["pending"]), Pages[types.Booking])
    assert_type(client.bookings.list(status="pending").page(), Page[types.Booking])
    assert_type([b["id"] for b in client.bookings.list()], list[str])
    assert_type(client.bookings.with_raw_response.get("bk_1"), Response[types.Booking])
    assert_type(client.bookings.with_raw_response.create({"event_date": "x"}, strict=False).data, types.Booking)
    assert_type(client.quotes.get_pdf("qt_1"), Download)
    for event in client.events.stream(type=["booking.created"]):
        assert_type(event, types.WebhookEvent)
    options: WriteOptions = {"idempotency_key": "x", "timeout": 3}
    client.customers.create({"first_name": "Ada", "email": "ada@example.com"}, **options)


def rejected(client: Client) -> None:
    client.bookings.create({"event_dat": "2030-06-01"})  # type: ignore[typeddict-unknown-key]
    client.bookings.create({"event_date": 1})  # type: ignore[typeddict-item]
    client.customers.create({"email": "ada@example.com"})  # type: ignore[typeddict-item]
    client.bookings.create()  # type: ignore[call-arg]
    client.bookings.list(status=["unknown"])  # type: ignore[list-item]
    client.bookings.get("bk_1", idempotency_key="x")  # type: ignore[call-arg]
    client.bookings.create({"event_date": "x"}, if_match="*")  # type: ignore[call-arg]
    client.bookings.with_raw_response.get(1)  # type: ignore[arg-type]
    client.bookings.get("bk_1")["nummer"]  # type: ignore[typeddict-item]
    Client(token_source=print)  # type: ignore[arg-type]


async def asynchronous(client: AsyncClient) -> None:
    assert_type(await client.bookings.get("bk_1"), types.Booking)
    assert_type(client.bookings.list(), AsyncPages[types.Booking])
    assert_type(await client.bookings.list().page(), Page[types.Booking])
    assert_type([b["id"] async for b in client.bookings.list()], list[str])
    assert_type(await client.bookings.with_raw_response.get("bk_1"), Response[types.Booking])
    assert_type(client.events.stream(), AsyncEventStream[types.WebhookEvent])
    get: Callable[[str], Awaitable[types.Booking]] = client.bookings.get
    await get("bk_1")


def events(body: bytes) -> None:
    event = webhooks.unwrap(body, {}, "whsec_x")
    if event["type"] == "booking.created":
        booking: types.Booking = event["data"]["object"]
        assert_type(booking["number"], str)
    elif event["type"] == "invoice.paid":
        invoice: types.Invoice = event["data"]["object"]
        invoice["lines"]  # type: ignore[typeddict-item]
    if webhooks.is_unknown(event):
        assert_type(event, types.UnknownEvent)
        assert_type(event["type"], str)


def failures(error: APIError) -> None:
    if isinstance(error, SlotUnavailable):
        conflict: ConflictError = error
        assert_type(conflict.param, str | None)
        assert_type(conflict.errors, dict[str, list[str]])
