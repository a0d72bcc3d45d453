package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	holdfast "holdfast.dev/sdks/go"

	_ "modernc.org/sqlite" // the driver
)

// remember is how long the IDs of events are kept. The platform can send an event again for 30 days.
const remember = 31 * 24 * time.Hour

const schema = `
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
);`

// store is the database.
type store struct{ db *sql.DB }

// open opens the database, and creates its tables.
func open(ctx context.Context, path string) (*store, error) {
	settings := url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: path, RawQuery: settings.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // SQLite has one writer
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), db.Close())
	}
	return &store{db}, nil
}

// add stores an event, and reports whether it is new. When add returns, the event survives a crash.
func (s *store) add(ctx context.Context, id string, body []byte) (bool, error) {
	result, err := s.db.ExecContext(ctx, `insert into events (id, received_at, body) values (?, ?, ?) on conflict (id) do nothing`,
		id, time.Now().Unix(), body)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n == 1, err
}

// process processes the event that has waited longest, and reports whether there was one. The effect and the mark that the event was
// processed are one transaction, so that a crash never repeats or skips the effect.
func (s *store) process(ctx context.Context) (found bool, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }()
	var id string
	var body []byte
	err = tx.QueryRowContext(ctx, `select id, body from events where body is not null order by received_at, rowid limit 1`).Scan(&id, &body)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	event, err := holdfast.ParseEvent(body)
	if err != nil {
		return true, fmt.Errorf("%s: %w", id, err)
	}
	if err := apply(ctx, tx, event); err != nil {
		return true, fmt.Errorf("%s: %w", id, err)
	}
	if _, err := tx.ExecContext(ctx, `update events set body = null where id = ?`, id); err != nil {
		return true, err
	}
	if _, err := tx.ExecContext(ctx, `delete from events where received_at < ? and body is null`, time.Now().Add(-remember).Unix()); err != nil {
		return true, err
	}
	return true, tx.Commit()
}

// apply is the effect of an event. Return nil for types that you do not handle, because new types can be added.
func apply(ctx context.Context, tx *sql.Tx, event holdfast.Event) error {
	switch e := event.(type) {
	case *holdfast.BookingCreatedEvent:
		return save(ctx, tx, e.Data.Object, e.ResourceVersion)
	case *holdfast.BookingUpdatedEvent:
		return save(ctx, tx, e.Data.Object, e.ResourceVersion)
	case *holdfast.BookingCancelledEvent:
		return save(ctx, tx, e.Data.Object, e.ResourceVersion)
	}
	return nil
}

// save stores a booking unless a newer version is stored, and counts the change. Counting twice would be wrong, so it shows that each
// event has its effect once.
func save(ctx context.Context, tx *sql.Tx, b holdfast.Booking, version int64) error {
	_, err := tx.ExecContext(ctx, `
		insert into bookings (id, version, number, status, date) values (?, ?, ?, ?, ?)
		on conflict (id) do update set version = excluded.version, number = excluded.number, status = excluded.status, date = excluded.date
		where bookings.version < excluded.version`, b.ID, version, b.Number, b.Status, b.EventLocalDate)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `update bookings set changes = changes + 1 where id = ?`, b.ID)
	return err
}

// list prints each booking as a line of JSON.
func (s *store) list(ctx context.Context, to io.Writer) error {
	rows, err := s.db.QueryContext(ctx, `select id, version, number, status, date, changes from bookings order by number`)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	lines := json.NewEncoder(to)
	for rows.Next() {
		var b struct {
			ID      string `json:"id"`
			Version int64  `json:"version"`
			Number  string `json:"number"`
			Status  string `json:"status"`
			Date    string `json:"date"`
			Changes int    `json:"changes"`
		}
		if err := rows.Scan(&b.ID, &b.Version, &b.Number, &b.Status, &b.Date, &b.Changes); err != nil {
			return err
		}
		if err := lines.Encode(b); err != nil {
			return err
		}
	}
	return rows.Err()
}
