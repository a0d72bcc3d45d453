package outbox_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

var ledgerTable = fstest.MapFS{"00001_ledger.sql": {Data: []byte(`-- +goose Up
create table ledger (key text primary key);
-- +goose StatementBegin
do $$ begin execute format('grant select, insert on ledger to %I', app_role()); end $$;
-- +goose StatementEnd
`)}}

// ledger writes entries as a service writes objects: the row and its event in one transaction, and again with the same key until
// it is acknowledged.
type ledger struct {
	db    *pg.DB
	mu    sync.Mutex
	acked []string
	slow  time.Duration // the longest time until an acknowledgment
}

func (l *ledger) write(ctx context.Context, key string) {
	start := time.Now()
	for ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := l.db.Tx(try, func(ctx context.Context, tx pg.Tx) error {
			tag, err := tx.Exec(ctx, `insert into ledger values ($1) on conflict do nothing`, key)
			if err != nil || tag.RowsAffected() == 0 {
				return err // written by an attempt whose response was lost
			}
			return outbox.Add(ctx, tx, outbox.Event{Type: "customer.created", Topic: "customers", AggregateID: key, Version: 1, Object: []byte(`{}`)})
		})
		cancel()
		if err == nil {
			l.mu.Lock()
			l.acked, l.slow = append(l.acked, key), max(l.slow, time.Since(start))
			l.mu.Unlock()
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// A standby that is behind is promoted under load, after its primary was killed. With synchronous replication nothing that was acknowledged is lost,
// and each entry has its event. With asynchronous replication the test prints what was lost. Neither the pools nor the relay
// are restarted. The tests are not parallel, because they set the address of the server.
func TestPromotionOfAStandby(t *testing.T) {
	for name, synchronous := range map[string]bool{"synchronous": true, "asynchronous": false} {
		t.Run(name, func(t *testing.T) {
			pair := pgtest.StartPair(t, synchronous)
			t.Setenv("TEST_POSTGRES_URL", pair.URL)
			db := pgtest.New(t, ledgerTable)
			broker := &topic{}
			run(t, outbox.NewRelay(db.Worker, broker, slog.New(slog.DiscardHandler), nil).Run)
			l := &ledger{db: db.App}
			ctx, stop := context.WithCancel(pgtest.Ctx(t, caller.Live))
			defer stop()
			end := make(chan struct{})
			var writers sync.WaitGroup
			for w := range 6 {
				writers.Go(func() {
					for n := 0; ; n++ {
						select {
						case <-end:
							return
						default:
							l.write(ctx, fmt.Sprintf("%d-%d", w, n))
						}
					}
				})
			}
			await(t, "entries before", func() bool { return l.count() > 300 })
			before := l.count()
			pair.Delay()
			time.Sleep(300 * time.Millisecond)
			pair.Kill()
			killed := time.Now()
			pair.Promote()
			await(t, "entries after", func() bool { return l.count() > before+300 })
			outage := time.Since(killed)
			close(end)
			writers.Wait()
			await(t, "an empty outbox", func() bool { return left(t, db) == 0 })
			check(t, db, broker, l, synchronous)
			t.Logf("%d entries, 300 more %v after the kill, slowest %v", l.count(), outage.Round(time.Millisecond), l.slow.Round(time.Millisecond))
		})
	}
}

func check(t *testing.T, db *pgtest.DB, broker *topic, l *ledger, synchronous bool) {
	t.Helper()
	var rows []string
	err := db.App.Tx(pgtest.Ctx(t, caller.Live), func(ctx context.Context, tx pg.Tx) error {
		found, err := tx.Query(ctx, `select key from ledger`)
		if err != nil {
			return err
		}
		rows, err = pgx.CollectRows(found, pgx.RowTo[string])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	events := broker.versions(t)
	var lost, silent, phantom []string
	for _, key := range l.acked {
		if !slices.Contains(rows, key) {
			lost = append(lost, key)
		}
	}
	for _, key := range rows {
		if len(events[key]) == 0 {
			silent = append(silent, key)
		}
	}
	for key := range events {
		if !slices.Contains(rows, key) {
			phantom = append(phantom, key)
		}
	}
	t.Logf("of %d acknowledged entries %d are lost; %d entries without an event; %d events without an entry", len(l.acked), len(lost), len(silent), len(phantom))
	if synchronous && len(lost)+len(phantom) > 0 {
		t.Errorf("lost: %v, events without an entry: %v", lost, phantom)
	}
	if !synchronous && len(lost) == 0 {
		t.Error("nothing is lost: the standby was not behind, and the test shows nothing")
	}
	if len(silent) > 0 {
		t.Errorf("without an event: %v", silent)
	}
}
