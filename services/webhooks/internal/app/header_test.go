package app_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
)

// withHeaders returns a change of an endpoint's own headers.
func withHeaders(h domain.EndpointHeaders) func(*domain.EndpointPatch) {
	return func(p *domain.EndpointPatch) { p.Headers = patch.Value(h) }
}

// setHeaders replaces the headers of an endpoint.
func (w *world) setHeaders(id domain.EndpointID, h domain.EndpointHeaders) {
	w.t.Helper()
	write, err := w.endpoints.Prepare(w.ctx, domain.EndpointPatch{Headers: patch.Value(h)})
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = use(w.ctx, w.db.App, func(ctx context.Context, tx pg.Tx) (domain.Endpoint, error) {
		return w.endpoints.Update(ctx, tx, id, write, httpx.Match{})
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// resend redelivers an event to an endpoint.
func (w *world) resend(event ids.Event, endpoint domain.EndpointID) error {
	_, err := use(w.ctx, w.db.App, func(ctx context.Context, tx pg.Tx) (domain.Delivery, error) {
		return w.deliveries.Resend(ctx, tx, event, endpoint.String())
	})
	return err
}

// TestHeadersAreSent checks that every kind of request to an endpoint contains its current headers, and that requests to another
// endpoint do not. The largest headers that the contract allows are sent too.
func TestHeadersAreSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	own := domain.EndpointHeaders{"X-Env": "a", "Authorization": "Bearer b c"}
	e := w.endpoint(w.ctx, hook, withHeaders(own))
	w.endpoint(w.ctx, "http://other/")
	event := w.ingest(w.ctx, 1)[0].ID
	sent := func(name string, want domain.EndpointHeaders, act func() error) {
		t.Helper()
		before := len(w.receivers.got(hook))
		if err := act(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		w.drain()
		got := w.receivers.got(hook)
		if len(got) != before+1 || !maps.Equal(got[before].Own, want) {
			t.Errorf("%s: %d requests, headers %v", name, len(got)-before, got[len(got)-1].Own)
		}
	}
	delivery := func() domain.DeliveryID {
		return w.log(w.ctx, e.ID, store.DeliveryFilter{Type: "customer.created"})[0].ID
	}
	sent("delivery", own, func() error { return nil })
	sent("test", own, func() error { return w.test(e.ID, "booking.created") })
	sent("retry", own, func() error { return w.retry(e.ID, delivery()) })
	sent("resend", own, func() error { return w.resend(event, e.ID) })
	sent("replay", own, func() error { _, err := w.replay(e.ID); return err })
	largest := domain.EndpointHeaders{}
	for i := range 10 {
		largest[fmt.Sprintf("%s%02d", strings.Repeat("x", 62), i)] = strings.Repeat("~", 500)
	}
	w.setHeaders(e.ID, largest)
	sent("the largest", largest, func() error { return w.resend(event, e.ID) })
	w.setHeaders(e.ID, domain.EndpointHeaders{})
	sent("none", nil, func() error { return w.resend(event, e.ID) })
	for _, d := range w.receivers.got("http://other/") {
		if len(d.Own) != 0 {
			t.Errorf("another endpoint receives %v", d.Own)
		}
	}
}

// TestHeadersBelongToTheirRow checks that headers that were copied from another endpoint cannot be opened, that nothing is sent without
// them, and that they can be set again.
func TestHeadersBelongToTheirRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mine := domain.EndpointHeaders{"X-Env": "mine"}
	e := w.endpoint(w.ctx, hook, withHeaders(mine))
	other := w.endpoint(w.caller(ids.New[ids.TenantPrefix](), caller.Test), "http://b/", withHeaders(domain.EndpointHeaders{"X-Env": "other"}))
	owner, err := pgx.Connect(t.Context(), w.db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = owner.Close(context.Background()) }()
	tag, err := owner.Exec(t.Context(), `update endpoints e set sealed_headers = o.sealed_headers from endpoints o where e.id = $1 and o.id = $2`, e.ID, other.ID)
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatal(tag, err)
	}
	w.ingest(w.ctx, 1)
	w.drain()
	d, at := w.log(w.ctx, e.ID, store.DeliveryFilter{})[0], w.get(w.ctx, e.ID)
	if n := len(w.receivers.got("")); n != 0 || d.Status != domain.Pending || len(d.Attempts) != 0 || at.ConsecutiveFailures != 0 {
		t.Errorf("%d requests, delivery %+v, endpoint %+v", n, d, at)
	}
	w.setHeaders(e.ID, mine)
	w.Move(time.Minute)
	w.drain()
	if got := w.receivers.got(hook); len(got) != 1 || !maps.Equal(got[0].Own, mine) {
		t.Errorf("got %v", got)
	}
}
