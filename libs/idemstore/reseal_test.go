package idemstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/reseal"
)

// boxes returns the keys before a rotation, during it, and after it.
func boxes(t *testing.T) (before, during, after *crypt.Box) {
	t.Helper()
	old, fresh := "old:"+strings.Repeat("ab", 32), "new:"+strings.Repeat("cd", 32)
	list := make([]*crypt.Box, 3)
	for i, keys := range []string{old, fresh + "," + old, fresh} {
		var err error
		if list[i], err = crypt.NewBox(keys); err != nil {
			t.Fatal(err)
		}
	}
	return list[0], list[1], list[2]
}

// writer ends a context at the first write.
type writer struct {
	strings.Builder
	end func()
}

func (w *writer) Write(b []byte) (int, error) {
	if w.end != nil {
		w.end()
	}
	return w.Builder.Write(b)
}

// Responses of all tenants and modes are sealed again, in batches, regardless of how often the command is interrupted. Responses
// without a secret are not changed. A response that no key opens is reported and not changed.
func TestReseal(t *testing.T) {
	t.Parallel()
	const responses = 250
	before, during, after := boxes(t)
	db := pgtest.New(t, nil)
	var spaces []context.Context
	for i := range responses {
		mode := caller.Test
		if i%2 == 0 {
			mode = caller.Live
		}
		spaces = append(spaces, idem.WithRequest(pgtest.Ctx(t, mode), idem.Request{Key: fmt.Sprint("k", i), Secret: i != 7}))
	}
	run := func(ctx context.Context, box *crypt.Box, i int) (idem.Response, error) {
		s := &idemstore.Store{DB: db.App, Box: box, Now: time.Now}
		return runOn(ctx, s, func(context.Context, pg.Tx) (idem.Response, error) {
			return idem.Response{Status: 201, Body: fmt.Appendf(nil, `{"secret":%d}`, i)}, nil
		})
	}
	for i, ctx := range spaces {
		if _, err := run(ctx, before, i); err != nil {
			t.Fatal(err)
		}
	}
	cut, cancel := context.WithCancel(t.Context())
	out := &writer{end: cancel}
	if err := idemstore.Reseal(cut, db.Worker, during, out); !errors.Is(err, context.Canceled) || !strings.Contains(out.String(), "idempotency_keys: 100 encrypted again\n") {
		t.Errorf("cut off after its first batch: %v, %q", err, out.String())
	}
	for _, want := range []string{"idempotency_keys: 149 encrypted again\n", "idempotency_keys: 0 encrypted again\n"} {
		out := &writer{}
		if err := idemstore.Reseal(t.Context(), db.Worker, during, out); err != nil || !strings.HasSuffix(out.String(), want) {
			t.Errorf("%v, %q, want %q", err, out.String(), want)
		}
	}
	for i, ctx := range spaces {
		got, err := run(ctx, after, i)
		if want := fmt.Sprintf(`{"secret":%d}`, i); err != nil || !got.Replayed || string(got.Body) != want {
			t.Fatalf("response %d without the old key: %+v, %v", i, got, err)
		}
	}
	unreadable := idem.WithRequest(pgtest.Ctx(t, caller.Test), idem.Request{Key: "lost", Secret: true})
	if _, err := run(unreadable, before, 0); err != nil {
		t.Fatal(err)
	}
	out = &writer{}
	if err := idemstore.Reseal(t.Context(), db.Worker, after, out); !errors.Is(err, reseal.ErrLeft) || !strings.Contains(out.String(), `no key opens key "lost"`) {
		t.Errorf("a response under a key that is gone: %v, %q", err, out.String())
	}
	if err := idemstore.Reseal(t.Context(), db.Worker, during, io.Discard); err != nil {
		t.Errorf("with the key again: %v", err)
	}
}
