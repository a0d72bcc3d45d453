package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
)

// maxBrowsers is the maximum number of known browsers of an operator. One more replaces the least recently used one.
const maxBrowsers = 20

// Attempt counts an attempt to sign in as a failure before its password is checked, so that parallel attempts cannot pass together.
// An invitation is counted in the same way. Attempt returns the number of failures including this one. If the next attempt is not
// allowed yet, it counts nothing and returns how long to wait. ForgetAttempts and Forgive undo the count of a successful attempt.
func Attempt(ctx context.Context, tx pg.Tx, kind string, hash []byte, limit domain.Throttle, now time.Time) (failures int, wait time.Duration, err error) {
	type row struct {
		Failures  int
		AllowedAt time.Time
	}
	old, err := pg.One(ctx, tx, pgx.RowToStructByName[row], pgx.ErrNoRows, `insert into sign_in_attempts as a (kind, hash, failures, last_at, allowed_at)
		values ($1, $2, 0, $3, $3)
		on conflict (kind, hash) do update set failures = case when a.last_at < $4 then 0 else a.failures end
		returning failures, allowed_at`, kind, hash, now, now.Add(-domain.ThrottleMemory))
	if err != nil {
		return 0, 0, fmt.Errorf("count an attempt: %w", err)
	}
	if wait := old.AllowedAt.Sub(now); wait > 0 {
		return old.Failures, wait, nil
	}
	failures = old.Failures + 1
	_, err = tx.Exec(ctx, `update sign_in_attempts set failures = $3, last_at = $4, allowed_at = $5 where kind = $1 and hash = $2`,
		kind, hash, failures, now, now.Add(limit.Wait(failures)))
	if err != nil {
		return 0, 0, fmt.Errorf("count an attempt: %w", err)
	}
	return failures, 0, nil
}

// Forgive undoes the last failure of a successful attempt, because many people can share an address.
func Forgive(ctx context.Context, tx pg.Tx, kind string, hash []byte, now time.Time) error {
	return pg.Exec(ctx, tx, "forgive an attempt", `update sign_in_attempts set failures = greatest(failures - 1, 0), allowed_at = $3 where kind = $1 and hash = $2`, kind, hash, now)
}

// ForgetAttempts deletes the failures of an account or a browser after a sign-in.
func ForgetAttempts(ctx context.Context, tx pg.Tx, kind string, hash []byte) error {
	return pg.Exec(ctx, tx, "forget attempts", `delete from sign_in_attempts where kind = $1 and hash = $2`, kind, hash)
}

// KnowsBrowser reports whether an operator has signed in with the browser before.
func KnowsBrowser(ctx context.Context, q pg.Q, id domain.OperatorID, hash []byte) (bool, error) {
	return pg.One(ctx, q, pgx.RowTo[bool], pgx.ErrNoRows, `select exists (select from known_browsers where operator_id = $1 and hash = $2)`, id, hash)
}

// AddBrowser records that an operator signed in with a browser.
func AddBrowser(ctx context.Context, tx pg.Tx, id domain.OperatorID, hash []byte, now time.Time) error {
	b := &pgx.Batch{}
	b.Queue(`insert into known_browsers (operator_id, hash, used_at) values ($1, $2, $3)
		on conflict (operator_id, hash) do update set used_at = excluded.used_at`, id, hash, now)
	b.Queue(`delete from known_browsers where operator_id = $1
		and hash not in (select hash from known_browsers where operator_id = $1 order by used_at desc limit $2)`, id, maxBrowsers)
	return pg.Send(ctx, tx, b, "note a browser")
}

// SweepSignIns deletes a batch of expired sessions, counts, and drafts, and returns their number. tx has the worker role.
func SweepSignIns(ctx context.Context, tx pg.Tx, now time.Time, limit int) (int, error) {
	deleted := 0
	for _, s := range []struct {
		sql string
		at  time.Time
	}{
		{`delete from operator_sessions where hash in (select hash from operator_sessions where expires_at <= $1 limit $2)`, now},
		{`delete from sign_in_attempts where (kind, hash) in (select kind, hash from sign_in_attempts where last_at <= $1 limit $2)`, now.Add(-domain.ThrottleMemory)},
		{`delete from form_drafts where (operator_id, key) in (select operator_id, key from form_drafts where created_at <= $1 limit $2)`, now.Add(-domain.DraftLifetime)},
	} {
		tag, err := tx.Exec(ctx, s.sql, s.at, limit)
		if err != nil {
			return deleted, fmt.Errorf("sweep sign-ins: %w", err)
		}
		deleted += int(tag.RowsAffected())
	}
	return deleted, nil
}
