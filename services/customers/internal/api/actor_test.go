package api_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

// actors returns "type actor" of each event after the first n, sorted.
func (w *world) actors(n int) (list []string) {
	w.T.Helper()
	for _, e := range w.Events()[n:] {
		list = append(list, fmt.Sprint(e.GetType(), " ", e.GetActor()))
	}
	slices.Sort(list)
	return list
}

// named returns ctx with a caller that has the credential.
func named(ctx context.Context, credential string) context.Context {
	return in(ctx, func(c *caller.Caller) { c.Credential = credential })
}

// left simulates a crash of bookings before its response, so that a completer must complete the operation.
func left(context.Context, string) error { return apperr.ErrUnavailable }

// TestACompletedAcceptNamesItsCaller checks that each event of an accept that a completer ends names the caller of the accept.
// Bookings receives that caller too.
func TestACompletedAcceptNamesItsCaller(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	id := w.sentQuote(named(ctx, "key_writer"), "").ID
	n := len(w.Events())
	w.bookings.After = left
	w.onQuote(named(ctx, "key_accepts"), id, "accept").is(503)
	w.bookings.After = nil
	var signer caller.Caller
	w.bookings.Before = func(ctx context.Context, _ string) error { signer = caller.FromContext(ctx); return nil }
	w.resumeAccepts(time.Minute)
	want := []string{"invoice.created key_accepts", "quote.accepted key_accepts"}
	if got := w.actors(n); !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	if signer.Actor() != "key_accepts" || signer.Credential != "svc:customers" {
		t.Errorf("bookings was called by %+v", signer)
	}
}

// TestACompletedConversionNamesItsCaller checks that the events of a conversion that a completer ends name the caller of the
// conversion.
func TestACompletedConversionNamesItsCaller(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		refused bool
		want    []string
	}{
		"made":    {false, []string{"customer.created key_converts", "lead.updated key_converts"}},
		"refused": {true, []string{"customer.erased key_converts"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, ctx := newWorld(t), converter(t)
			l := w.lead(ctx, withEmail)
			n := len(w.Events())
			w.bookings.After = left
			w.do(named(ctx, "key_converts"), "POST", "/leads/"+l.ID+"/convert", `{"booking":{"event_date":"2030-01-01"}}`).is(503)
			w.bookings.After = nil
			var signer caller.Caller
			w.bookings.Before = func(ctx context.Context, _ string) error {
				if signer = caller.FromContext(ctx); tc.refused {
					return apperr.New(apperr.Conflict, "slot_unavailable", "Taken.")
				}
				return nil
			}
			w.complete(time.Minute)
			if got := w.actors(n); !slices.Equal(got, tc.want) {
				t.Errorf("events %v, want %v", got, tc.want)
			}
			if signer.Actor() != "key_converts" {
				t.Errorf("bookings was called by %+v", signer)
			}
			if remaining := w.Count(`select count(*) from leads where converting_actor <> ''`); remaining != 0 {
				t.Errorf("%d leads still have a caller", remaining)
			}
		})
	}
}

// TestExpiryNamesTheService checks that the event of an automatic expiry names the service.
func TestExpiryNamesTheService(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	w.sentQuote(ctx, "")
	n := len(w.Events())
	w.clock.move(100 * 24 * time.Hour)
	if err := w.expiry.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.actors(n); !slices.Equal(got, []string{"quote.updated svc:customers"}) {
		t.Errorf("events %v", got)
	}
}
