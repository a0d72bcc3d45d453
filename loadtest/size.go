package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/redis/go-redis/v9"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
	"holdfast.dev/loadtest/internal/stack"
)

// sizes are bytes, and the number of commands that Redis ran, at one time.
type sizes struct{ booking, record, wal, topic, redis, commands int64 }

// sizeBookings is the number of the first slot that size books, after those of cores.
const sizeBookings = 4_000_000

// size measures what a booking adds to PostgreSQL, Kafka and Redis, and the memory of the processes.
func (b *bench) size(ctx context.Context, s *shop) error {
	if err := b.platform.Drain(ctx); err != nil {
		return err
	}
	before, err := b.sizes(ctx, s)
	if err != nil {
		return err
	}
	ours := &served{name: "size", target: load.Target{Addr: s.addr, Status: http.StatusCreated, Nth: func(n int) []byte {
		n += sizeBookings
		return load.Request(http.MethodPost, "/api/v1/bookings", s.headers(s.key, fmt.Sprintf("bench-size-%d", n)), nthBooking(s, n))
	}}}
	if _, err := ours.send(ctx, connections, b.slice()); err != nil {
		return err
	}
	if err := b.platform.Drain(ctx); err != nil {
		return err
	}
	after, err := b.sizes(ctx, s)
	if err != nil {
		return err
	}
	for _, one := range []struct {
		what  string
		bytes int64
	}{
		{"its row and its claim in PostgreSQL, with their indexes", after.booking - before.booking},
		{"the record of its Idempotency-Key, kept for 24 hours", after.record - before.record},
		{"write-ahead log of all databases", after.wal - before.wal},
		{"its event in Kafka, with the other events that follow", after.topic - before.topic},
		{"its cached response and counters in Redis", after.redis - before.redis},
	} {
		each := report.Quantity{Value: report.Ratio(float64(one.bytes)/1024, float64(ours.sent)), Unit: "KiB"}
		b.table.Add(report.Row{Figure: "a booking: " + one.what, Value: each, Show: "size"})
	}
	commands := report.Quantity{Value: report.Ratio(float64(after.commands-before.commands), float64(ours.sent))}
	b.table.Add(report.Row{Figure: "a booking: commands that Redis runs", Value: commands, Show: "size"})
	return b.noteMemory()
}

// sizes reads the sizes as they are now.
func (b *bench) sizes(ctx context.Context, s *shop) (n sizes, err error) {
	const relation = `select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint from pg_class c
		where c.relkind = 'r' and c.relname ~ $1`
	if err := s.admin.QueryRow(ctx, relation, "^(bookings|unit_claims)$").Scan(&n.booking); err != nil {
		return n, err
	}
	if err := s.admin.QueryRow(ctx, relation, "^idempotency").Scan(&n.record); err != nil {
		return n, err
	}
	if err := s.admin.QueryRow(ctx, "select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint").Scan(&n.wal); err != nil {
		return n, err
	}
	if n.topic, err = b.platform.TopicBytes(ctx); err != nil {
		return n, err
	}
	n.redis, n.commands, err = redisSize(ctx, b.platform.Env["REDIS_URL"])
	return n, err
}

// redisSize returns the memory of Redis's data in bytes, and the number of commands that it ran.
func redisSize(ctx context.Context, url string) (used, commands int64, err error) {
	opt, err := redis.ParseURL(url)
	if err != nil {
		return 0, 0, err
	}
	c := redis.NewClient(opt)
	defer func() { _ = c.Close() }()
	info, err := c.Info(ctx, "memory", "stats").Result()
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(info) {
		_, _ = fmt.Sscanf(line, "used_memory_dataset:%d", &used)
		_, _ = fmt.Sscanf(line, "total_commands_processed:%d", &commands)
	}
	return used, commands, nil
}

// noteMemory adds a note with the resident memory of each process.
func (b *bench) noteMemory() error {
	files, err := filepath.Glob(filepath.Join(b.platform.Dir, ".run", "pids", "*"))
	if err != nil {
		return err
	}
	var parts []string
	for _, file := range files {
		name := filepath.Base(file)
		if name == postgres {
			continue // its server processes share their memory
		}
		pid, err := b.platform.PID(name)
		if err != nil {
			return err
		}
		now, _, err := stack.Resident(pid)
		if err != nil {
			return err
		}
		parts = append(parts, fmt.Sprintf("%s %d", name, now>>20))
	}
	b.table.Note("resident memory after the bookings, MiB: %s", strings.Join(parts, ", "))
	return nil
}
