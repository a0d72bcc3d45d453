package idemstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

func with(ctx context.Context, key, body string) context.Context {
	canonical, err := contract.Canonical([]byte(body))
	if err != nil {
		panic(err)
	}
	return idem.WithRequest(ctx, idem.Request{Key: key, Fingerprint: idem.Fingerprint(http.MethodPost, "/api/v1/x", "", canonical)})
}

// effect inserts an inbox row, so that the rows count how often the verb was committed.
func effect(ctx context.Context, tx pg.Tx) (idem.Response, error) {
	c := caller.FromContext(ctx)
	id := ids.New[ids.EventPrefix]()
	_, err := tx.Exec(ctx, `insert into inbox values ($1, $2, 'test', $3, now())`, c.Tenant, c.Live(), id)
	return idem.Response{Status: 201, Location: "/api/v1/x/" + id.String(), Body: []byte(`{"id":"` + id.String() + `"}`)}, err
}

func store(db *pgtest.DB) *idemstore.Store { return &idemstore.Store{DB: db.App, Now: time.Now} }

// runOn runs a verb that creates its response itself.
func runOn(ctx context.Context, s *idemstore.Store, verb func(ctx context.Context, tx pg.Tx) (idem.Response, error)) (idem.Response, error) {
	return idemstore.Run(ctx, s, verb, func(_ context.Context, r idem.Response) (idem.Response, error) { return r, nil })
}

func TestTwentyConcurrentRequestsHaveOneEffect(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, nil)
	ctx := with(pgtest.Ctx(t, caller.Test), "k", `{"a":1}`)
	var ran atomic.Int32
	bodies := make([][]byte, 20)
	var wg sync.WaitGroup
	for i := range bodies {
		wg.Go(func() {
			r, err := runOn(ctx, store(db), func(ctx context.Context, tx pg.Tx) (idem.Response, error) {
				r, err := effect(ctx, tx)
				if err == nil {
					ran.Add(1)
				}
				return r, err
			})
			if err != nil {
				t.Errorf("request %d: %v", i, err)
			}
			bodies[i] = r.Body
		})
	}
	wg.Wait()
	if ran.Load() != 1 {
		t.Errorf("the effect ran %d times", ran.Load())
	}
	for i, b := range bodies {
		if !bytes.Equal(b, bodies[0]) {
			t.Errorf("request %d got %s, the first %s", i, b, bodies[0])
		}
	}
}

func TestIdentityOfAKey(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, nil)
	base := pgtest.Ctx(t, caller.Test)
	first, err := runOn(with(base, "k", `{"a":1,"b":2}`), store(db), effect)
	if err != nil {
		t.Fatal(err)
	}
	other := caller.FromContext(base)
	other.Credential = "key_other"
	live := pg.OtherMode(base)
	for name, tc := range map[string]struct {
		ctx    context.Context
		replay bool
		err    error
	}{
		"same body in another order and spacing": {with(base, "k", ` {"b":2, "a":1}`), true, nil},
		"another body":                           {with(base, "k", `{"a":1,"b":3}`), false, apperr.ErrMismatch},
		"another number lexeme":                  {with(base, "k", `{"a":1.0,"b":2}`), false, apperr.ErrMismatch},
		"another key":                            {with(base, "k2", `{"a":1,"b":2}`), false, nil},
		"another credential":                     {with(caller.With(base, other), "k", `{"a":1,"b":2}`), false, nil},
		"the other mode":                         {with(live, "k", `{"a":1,"b":2}`), false, nil},
		"another tenant":                         {with(pgtest.Ctx(t, caller.Test), "k", `{"a":1,"b":2}`), false, nil},
	} {
		got, err := runOn(tc.ctx, store(db), effect)
		if !errors.Is(err, tc.err) {
			t.Errorf("%s: error %v, want %v", name, err, tc.err)
		}
		if tc.err == nil && (bytes.Equal(got.Body, first.Body) != tc.replay || got.Replayed != tc.replay) {
			t.Errorf("%s: got %s (replayed %v), first %s", name, got.Body, got.Replayed, first.Body)
		}
	}
}

func TestAnErrorFreesTheKey(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, nil)
	ctx := with(pgtest.Ctx(t, caller.Test), "k", `{}`)
	boom := errors.New("boom")
	if _, err := runOn(ctx, store(db), func(context.Context, pg.Tx) (idem.Response, error) { return idem.Response{}, boom }); !errors.Is(err, boom) {
		t.Fatal(err)
	}
	if r, err := store(db).Check(ctx); r != nil || err != nil {
		t.Fatalf("a failed request left %v, %v", r, err)
	}
	if _, err := runOn(with(ctx, "k", `{"other":1}`), store(db), effect); err != nil {
		t.Fatalf("the key is not free after an error: %v", err)
	}
}

func TestAKeyIsFreshAfterADay(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, nil)
	ctx := with(pgtest.Ctx(t, caller.Test), "k", `{}`)
	s := store(db)
	first, err := runOn(ctx, s, effect)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		after  time.Duration
		replay bool
	}{{idem.Lifetime - time.Minute, true}, {idem.Lifetime + time.Minute, false}} {
		s.Now = func() time.Time { return time.Now().Add(tc.after) }
		got, err := runOn(ctx, s, effect)
		if err != nil || bytes.Equal(got.Body, first.Body) != tc.replay {
			t.Errorf("after %v: %s, %v; want a replay: %v", tc.after, got.Body, err, tc.replay)
		}
	}
}

// A stored response takes precedence over an error of a verb that sends no statement.
func TestAResponsePrecedesAnErrorWithoutAStatement(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, nil)
	ctx := with(pgtest.Ctx(t, caller.Test), "k", `{}`)
	first, err := runOn(ctx, store(db), effect)
	if err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	fails := func(context.Context, pg.Tx) (idem.Response, error) { return idem.Response{}, boom }
	if got, err := runOn(ctx, store(db), fails); err != nil || !bytes.Equal(got.Body, first.Body) {
		t.Errorf("%s, %v", got.Body, err)
	}
	if _, err := runOn(with(ctx, "k", `{"other":1}`), store(db), fails); !errors.Is(err, apperr.ErrMismatch) {
		t.Errorf("another request with the key: %v", err)
	}
	if _, err := runOn(with(ctx, "free", `{}`), store(db), fails); !errors.Is(err, boom) {
		t.Errorf("a free key: %v", err)
	}
	none := func(context.Context, pg.Tx) (idem.Response, error) {
		return idem.Response{Status: 200, Body: []byte("none")}, nil
	}
	for range 2 {
		if got, err := runOn(with(ctx, "none", `{}`), store(db), none); err != nil || string(got.Body) != "none" {
			t.Errorf("a verb without a statement: %s, %v", got.Body, err)
		}
	}
	if got, err := runOn(ctx, store(db), none); err != nil || !bytes.Equal(got.Body, first.Body) {
		t.Errorf("a verb without a statement and with a stored response: %s, %v", got.Body, err)
	}
}

func TestSecondRequestWaitsThenGetsRetry(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, nil)
	impatient, err := pg.Open(t.Context(), db.AppURL, pg.Options{LockTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer impatient.Close()
	ctx := with(pgtest.Ctx(t, caller.Test), "k", `{}`)
	_, err = runOn(ctx, store(db), func(ctx context.Context, tx pg.Tx) (idem.Response, error) {
		response, err := effect(ctx, tx)
		second := idemstore.Store{DB: impatient, Now: time.Now}
		if _, err := runOn(ctx, &second, effect); !errors.Is(err, apperr.ErrInProgress) {
			t.Errorf("the second got %v while the first ran", err)
		}
		return response, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSecretResponsesAreSealedAtRest(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, nil)
	box, err := crypt.NewBox("k1:" + strings.Repeat("ab", 32))
	if err != nil {
		t.Fatal(err)
	}
	s := store(db)
	s.Box = box
	ctx := idem.WithRequest(pgtest.Ctx(t, caller.Test), idem.Request{Key: "k", Secret: true})
	verb := func(context.Context, pg.Tx) (idem.Response, error) {
		return idem.Response{Status: 201, Body: []byte(`{"secret":"whsec_visible"}`)}, nil
	}
	for i := range 2 {
		got, err := runOn(ctx, s, verb)
		if err != nil || string(got.Body) != `{"secret":"whsec_visible"}` || got.Replayed != (i == 1) || !got.Secret {
			t.Fatalf("run %d: %+v, %v", i, got, err)
		}
	}
	err = db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		tag, err := tx.Exec(ctx, `select from idempotency_keys where position('whsec'::bytea in body) > 0`)
		if tag.RowsAffected() != 0 {
			t.Error("the secret stands in the table in the clear")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func count(ctx context.Context, t *testing.T, db *pgtest.DB, table string) int64 {
	t.Helper()
	var n int64
	err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		tag, err := tx.Exec(ctx, `select from `+table)
		n = tag.RowsAffected()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSweepDeletesOnlyExpired(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, nil)
	ctx := pgtest.Ctx(t, caller.Test)
	s := store(db)
	for i := range 3 {
		if _, err := runOn(with(ctx, fmt.Sprint(i), `{}`), s, effect); err != nil {
			t.Fatal(err)
		}
		s.Now = func() time.Time { return time.Now().Add(-2 * idem.Lifetime) } // the records expired long ago
	}
	if err := idemstore.Sweep(t.Context(), db.Worker); err != nil {
		t.Fatal(err)
	}
	s.Now = time.Now
	for i, stored := range []bool{true, false, false} {
		if r, err := s.Check(with(ctx, fmt.Sprint(i), `{}`)); err != nil || (r != nil) != stored {
			t.Errorf("record %d: %v, %v; want it stored: %v", i, r, err, stored)
		}
	}
	if left := count(ctx, t, db, "idempotency_keys"); left != 1 {
		t.Errorf("%d records are left, want 1", left)
	}
}

// The record of a key contains the operation that began with it, until the request has a response or the operation is freed. The
// same request finds it, and another request is a mismatch. While the operation is held, the key does not expire.
func TestOperationOfAKey(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, nil)
	now := time.Now()
	s := &idemstore.Store{DB: db.App, Now: func() time.Time { return now }}
	base := pgtest.Ctx(t, caller.Test)
	other := caller.FromContext(base)
	other.Credential = "svc:completer"
	mine, worker := with(base, "k", `{}`), caller.With(base, other)
	tx := func(ctx context.Context, do func(ctx context.Context, tx pg.Tx) error) {
		t.Helper()
		if err := db.App.Tx(ctx, do); err != nil {
			t.Fatal(err)
		}
	}
	claims := func(ctx context.Context, wantOperation string, wantResponded bool, begin string) {
		t.Helper()
		tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			operation, responded, err := s.Claim(ctx, tx)
			if operation != wantOperation || responded != wantResponded {
				t.Errorf("operation %q, responded %v; want %q, %v", operation, responded, wantOperation, wantResponded)
			}
			if err != nil || begin == "" {
				return err
			}
			s.Begin(ctx, tx, begin)
			return nil
		})
	}
	mismatch := func(ctx context.Context) {
		t.Helper()
		err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			_, _, err := s.Claim(ctx, tx)
			return err
		})
		if !errors.Is(err, apperr.ErrMismatch) {
			t.Errorf("another request: %v", err)
		}
	}
	claims(base, "", false, "without a key")
	claims(mine, "", false, "")
	claims(mine, "", false, "a")
	claims(mine, "a", false, "")
	claims(with(pg.OtherMode(base), "k", `{}`), "", false, "")
	mismatch(with(base, "k", `{"other":1}`))
	for range 3 { // the operation takes days
		now = now.Add(23 * time.Hour)
		tx(worker, func(ctx context.Context, tx pg.Tx) error { return s.Hold(ctx, tx, "a") })
	}
	now = now.Add(23 * time.Hour)
	mismatch(with(base, "k", `{"other":1}`))
	claims(mine, "a", false, "")
	now = now.Add(24 * time.Hour)
	claims(mine, "", false, "b") // the operation ended long ago
	for _, wrong := range []string{"", "a", "c"} {
		tx(worker, func(ctx context.Context, tx pg.Tx) error { return s.Free(ctx, tx, wrong) })
	}
	tx(pg.OtherMode(worker), func(ctx context.Context, tx pg.Tx) error { return s.Free(ctx, tx, "b") })
	mismatch(with(base, "k", `{"other":1}`))
	tx(worker, func(ctx context.Context, tx pg.Tx) error { return s.Free(ctx, tx, "b") })
	claims(with(base, "k", `{"other":1}`), "", false, "d")
	if _, err := runOn(with(base, "k", `{"other":1}`), s, effect); err != nil {
		t.Fatal(err)
	}
	tx(worker, func(ctx context.Context, tx pg.Tx) error { // a stored response is not an operation
		return errors.Join(s.Free(ctx, tx, "d"), s.Free(ctx, tx, ""), s.Hold(ctx, tx, ""))
	})
	claims(with(base, "k", `{"other":1}`), "", true, "")
	now = now.Add(24 * time.Hour)
	claims(mine, "", false, "")
}
