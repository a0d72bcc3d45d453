"""Receives webhooks and keeps a copy of the operator's bookings in a SQLite database. The README explains the steps."""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from holdfast import webhooks
from holdfast.errors import WebhookError

if TYPE_CHECKING:
    from holdfast.types import Booking, WebhookEvent

MAX_BODY = 4 << 20
"""The largest body that is read, in bytes. Events are smaller."""

REMEMBER = 31 * 24 * 60 * 60
"""How many seconds the IDs of events are kept. The platform can send an event again for 30 days."""

SCHEMA = """
create table if not exists events (
    id text primary key,
    received_at integer not null, -- Unix seconds
    body blob                     -- null after the event was processed
);
create index if not exists events_waiting on events (received_at) where body is not null;
create index if not exists events_received on events (received_at);
create table if not exists bookings (
    id text primary key,
    version integer not null,
    number text not null,
    status text not null,
    date text not null,
    changes integer not null default 0 -- the number of events
);
"""


class Store:
    """The database. Each thread has its own store."""

    def __init__(self, path: str) -> None:
        self.db = sqlite3.connect(path, timeout=5, isolation_level="IMMEDIATE")
        self.db.execute("pragma journal_mode = wal")
        self.db.execute("pragma synchronous = full")
        self.db.executescript(SCHEMA)

    def close(self) -> None:
        """Close the database."""
        self.db.close()

    def add(self, event_id: str, body: bytes) -> bool:
        """Store an event, and report whether it is new. When add returns, the event survives a crash."""
        with self.db:
            sql = "insert into events (id, received_at, body) values (?, ?, ?) on conflict (id) do nothing"
            added = self.db.execute(sql, (event_id, int(time.time()), body)).rowcount
        return bool(added)

    def process(self) -> bool:
        """Process the event that has waited longest, and report whether there was one.

        The effect and the mark that the event was processed are one transaction, so that a crash never repeats or skips the effect.
        """
        with self.db:
            self.db.execute("begin immediate")
            row = self.db.execute("select id, body from events where body is not null order by received_at, rowid limit 1").fetchone()
            if row is None:
                return False
            event_id, body = row
            self.apply(json.loads(body))
            self.db.execute("update events set body = null where id = ?", (event_id,))
            self.db.execute("delete from events where received_at < ? and body is null", (int(time.time()) - REMEMBER,))
        return True

    def apply(self, event: WebhookEvent) -> None:
        """Apply the effect of an event. Ignore types that you do not handle, because new types can be added."""
        if event["type"] == "booking.created" or event["type"] == "booking.updated" or event["type"] == "booking.cancelled":
            self.save(event["data"]["object"], event["resource_version"])

    def save(self, booking: Booking, version: int) -> None:
        """Store a booking unless a newer version is stored, and count the change.

        Counting twice would be wrong, so it shows that each event has its effect once.
        """
        row = (booking["id"], version, booking["number"], booking["status"], booking["event_local_date"])
        self.db.execute(
            """
            insert into bookings (id, version, number, status, date) values (?, ?, ?, ?, ?)
            on conflict (id) do update
            set version = excluded.version, number = excluded.number, status = excluded.status, date = excluded.date
            where bookings.version < excluded.version
            """,
            row,
        )
        self.db.execute("update bookings set changes = changes + 1 where id = ?", (booking["id"],))

    def list(self) -> None:
        """Print each booking as a line of JSON."""
        names = ("id", "version", "number", "status", "date", "changes")
        for row in self.db.execute(f"select {', '.join(names)} from bookings order by number"):  # noqa: S608
            print(json.dumps(dict(zip(names, row, strict=True))))


class Receiver:
    """A WSGI application that receives deliveries."""

    def __init__(self, path: str, secret: str) -> None:
        self.path, self.secret = path, secret
        self.stored = threading.Event()
        threading.Thread(target=self.work, daemon=True).start()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Respond to a request."""
        status, text = self.receive(environ)
        start_response(status, [("Content-Type", "text/plain; charset=utf-8")] if text else [])
        return [text.encode()]

    def receive(self, environ: dict[str, Any]) -> tuple[str, str]:
        """Verify a delivery, store its event, and respond. The event is processed afterwards, so that the response does not wait."""
        if environ["PATH_INFO"] != "/hooks":
            return "404 Not Found", "Send deliveries to /hooks."
        if environ["REQUEST_METHOD"] != "POST":
            return "405 Method Not Allowed", "Send deliveries with POST."
        length = int(environ.get("CONTENT_LENGTH") or 0)
        if length > MAX_BODY:
            return "413 Content Too Large", f"The body has more than {MAX_BODY} bytes."
        body = environ["wsgi.input"].read(length)
        headers = {name: value for name, value in environ.items() if name.startswith("HTTP_")}
        try:
            event = webhooks.unwrap(body, headers, self.secret)
        except WebhookError as error:
            log(f"rejected: {error}")
            return "400 Bad Request", str(error)
        try:
            with closing(Store(self.path)) as store:
                added = store.add(event["id"], body)
        except sqlite3.Error as error:  # the platform delivers the event again
            log(f"{event['id']}: {error}")
            return "503 Service Unavailable", "The event cannot be stored now."
        if not added:
            log(f"{event['id']} is a duplicate")
        self.stored.set()
        return "204 No Content", ""

    def work(self) -> None:
        """Process the stored events, also those of an earlier run."""
        store = Store(self.path)
        while True:
            self.stored.clear()
            try:
                while store.process():
                    pass
            except sqlite3.Error as error:
                log(f"processing: {error}")
            self.stored.wait(timeout=1)  # try again after an error


class Server(ThreadingMixIn, WSGIServer):
    """A server for development. In production, use a WSGI server such as gunicorn."""

    daemon_threads = True


class Handler(WSGIRequestHandler):
    """Closes connections that are silent for 10 seconds, and logs no requests."""

    timeout = 10

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing."""


def log(text: str) -> None:
    """Print a line to the log."""
    print(text, file=sys.stderr, flush=True)


def application(database: str = "receiver.db") -> Receiver:
    """Return the application. Its database is a file."""
    secret = os.environ.get("HOLDFAST_WEBHOOK_SECRET")
    if not secret:
        sys.exit("receiver: HOLDFAST_WEBHOOK_SECRET must be set to the secret of the webhook endpoint, whsec_…")
    return Receiver(database, secret)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", default="receiver.db", help="file of the database")
    parser.add_argument("--address", default="127.0.0.1:3000", help="address to listen on")
    parser.add_argument("--list", action="store_true", help="print the bookings and exit")
    options = parser.parse_args()
    if options.list:
        with closing(Store(options.database)) as store:
            store.list()
        return
    host, _, port = options.address.rpartition(":")
    with make_server(host, int(port), application(options.database), Server, Handler) as server:
        log(f"waiting on http://{host}:{server.server_port}/hooks")
        with suppress(KeyboardInterrupt):
            server.serve_forever()


if __name__ == "__main__":
    main()
