package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/testservers"

	"holdfast.dev/loadtest/internal/sqlbench"
)

// slotTable is the part of the bookings table that determines whether a slot is free.
const slotTable = `create extension btree_gist;
	create table bookings (tenant_id uuid, livemode bool, id uuid primary key, number text unique, unit_id uuid, day date, during tstzrange,
		exclude using gist (unit_id with =, during with &&))`

// TestPgbenchNeverRunsOutOfSlots checks that pgbench never books a taken slot, regardless of earlier bookings. The
// recorded booking can take several attempts, each of which leaves a booking. Then pgbench runs the script several
// times.
func TestPgbenchNeverRunsOutOfSlots(t *testing.T) {
	t.Parallel()
	address := scratchDatabase(t)
	admin, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(context.Background()) }()
	if _, err := admin.Exec(t.Context(), slotTable); err != nil {
		t.Fatal(err)
	}
	s := &shop{}
	const insert = `insert into bookings (tenant_id, livemode, id, number, unit_id, day, during) values ($1, false, $2, $3, $4, $5, tstzrange($6, $7))`
	var last sqlbench.Statement
	var booking string
	for try := range 3 {
		day := recordedOn(try)
		id := ids.New[ids.BookingPrefix]()
		booking = id.String()
		last = sqlbench.Statement{SQL: insert}
		args := []any{uuidText(s.id), uuidText(id.UUID()), fmt.Sprintf("B-%d", try), uuidText(rowUUID(unitPrefix, 0)), day.Format(time.DateOnly), slot(day, 15), slot(day, 19)}
		for _, a := range args {
			last.Params = append(last.Params, sqlbench.Param{Text: a.(string)})
		}
		if _, err := admin.Exec(t.Context(), strings.NewReplacer("$6", "$6::text::timestamptz", "$7", "$7::text::timestamptz", "$5", "$5::text::date").Replace(insert), args...); err != nil {
			t.Fatal(err)
		}
	}
	vary, err := varyPost(booking, "B-2", "key")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := sqlbench.Script([]sqlbench.Statement{last}, vary, beginsTrip)
	script := filepath.Join(t.TempDir(), "slots.pgbench")
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	bare := &replayed{script: script, url: address, start: s.freeSlots}
	for range 3 {
		if _, err := bare.run(t.Context(), admin, time.Second); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	var days int
	if err := admin.QueryRow(t.Context(), `select count(distinct day) from bookings where day > $1`, recordedOn(2)).Scan(&days); err != nil || days == 0 {
		t.Errorf("pgbench booked %d days (%v)", days, err)
	}
}

func slot(day time.Time, hour int) string {
	return day.Add(time.Duration(hour) * time.Hour).Format("2006-01-02 15:04:05-07")
}

// scratchDatabase returns the URL of an empty database that is dropped at the end of the test.
func scratchDatabase(t *testing.T) string {
	t.Helper()
	server := testservers.Getenv(t, "TEST_POSTGRES_URL")
	name := fmt.Sprintf("loadtest_%d_%d", os.Getpid(), time.Now().UnixNano())
	run := func(sql string) {
		c, err := pgx.Connect(context.Background(), server)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close(context.Background()) }()
		if _, err := c.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	run("create database " + name)
	t.Cleanup(func() { run("drop database " + name + " with (force)") })
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}
