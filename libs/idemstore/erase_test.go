package idemstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

// Responses about the resources are replaced, including sealed ones and those of every caller. The records do not change.
func TestErase(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, nil), pgtest.Ctx(t, caller.Test)
	box, err := crypt.NewBox("e1:" + strings.Repeat("5a", 32))
	if err != nil {
		t.Fatal(err)
	}
	s := &idemstore.Store{DB: db.App, Box: box, Now: time.Now}
	respond := func(ctx context.Context, key, resource string, secret bool) idem.Response {
		t.Helper()
		ctx = idem.WithRequest(ctx, idem.Request{Key: key, Fingerprint: idem.Fingerprint("POST", "/x", "", nil), Secret: secret})
		r, err := runOn(ctx, s, func(context.Context, pg.Tx) (idem.Response, error) {
			return idem.Response{Status: 201, Location: "/x", ETag: `"1"`, Resource: resource, Body: []byte("person " + resource)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	second := caller.FromContext(ctx)
	second.Credential = "key_second"
	others := caller.With(ctx, second)
	const many = 45 // several batches
	for i := range many {
		respond(ctx, fmt.Sprint("k", i), "a", false)
	}
	respond(others, "k0", "a", true)
	respond(ctx, "b", "b", false)
	respond(ctx, "c", "c", false)
	respond(pg.OtherMode(ctx), "k0", "a", false)
	erase := func(body []byte) ([]byte, error) {
		return []byte(strings.Replace(string(body), "person", "erased", 1)), nil
	}
	err = db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error { return s.Erase(ctx, tx, []string{"a", "b"}, erase) })
	if err != nil {
		t.Fatal(err)
	}
	for i := range many {
		r := respond(ctx, fmt.Sprint("k", i), "a", false)
		if string(r.Body) != "erased a" || !r.Replayed || r.Status != 201 || r.Location != "/x" || r.ETag != `"1"` || r.ExpiresAt.IsZero() {
			t.Errorf("k%d: %+v %s", i, r, r.Body)
		}
	}
	for want, r := range map[string]idem.Response{
		"erased a": respond(others, "k0", "a", true), "erased b": respond(ctx, "b", "b", false),
		"person c": respond(ctx, "c", "c", false), "person a": respond(pg.OtherMode(ctx), "k0", "a", false),
	} {
		if string(r.Body) != want || !r.Replayed {
			t.Errorf("%q, want %q", r.Body, want)
		}
	}
	boom := errors.New("boom")
	err = db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		return s.Erase(ctx, tx, []string{"c"}, func([]byte) ([]byte, error) { return nil, boom })
	})
	if r := respond(ctx, "c", "c", false); !errors.Is(err, boom) || string(r.Body) != "person c" {
		t.Errorf("%v, %s", err, r.Body)
	}
}
