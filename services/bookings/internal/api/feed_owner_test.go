package api_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/bookings/internal/app"
)

// credential returns ctx with another credential and its scopes.
func credential(ctx context.Context, id string, scopes ...string) context.Context {
	who := caller.FromContext(ctx)
	who.Credential, who.Scopes = id, scopes
	return caller.With(ctx, who)
}

// TestReadersCreateNoFeeds checks that a read-only credential neither creates nor deletes a feed, and that a credential without
// the customers scope cannot create a feed that shows customers.
func TestReadersCreateNoFeeds(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	writer := credential(ctx, "key_w", "read:bookings", "write:bookings")
	w.do(writer, "POST", "/calendar-feeds", `{"name":"x","include_details":true}`).is(403, "insufficient_scope")
	f := w.feed(writer, `{"name":"x"}`)
	w.feed(credential(ctx, "key_d", "write:bookings", "read:customers"), `{"name":"x","include_details":true}`)
	var got struct {
		CreatedBy string `json:"created_by"`
	}
	if got = decode[struct {
		CreatedBy string `json:"created_by"`
	}](w.do(writer, "GET", "/calendar-feeds/"+f.ID, "").is(200)); got.CreatedBy != "key_w" {
		t.Errorf("%+v", got)
	}
}

// TestAFeedEndsWithItsCredential checks that a feed ends with the credential that created it. A rotation transfers the feed, and
// another tenant's credential with the same id changes nothing. While identity is unavailable, the feeds stay. They end as soon as
// it responds.
func TestAFeedEndsWithItsCredential(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, other := pgtest.Ctx(t, caller.Live), pgtest.Ctx(t, caller.Live)
	tenant := caller.FromContext(ctx).Tenant
	credentials := w.credentials
	holders := &app.FeedHolders{Feeds: w.feeds, Worker: w.DB.Worker, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	run := func() {
		t.Helper()
		if err := holders.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	scopes := []string{"read:bookings", "write:bookings"}
	key, rotated := w.feed(credential(ctx, "key_a", scopes...), `{"name":"a"}`), w.feed(credential(ctx, "key_b", scopes...), `{"name":"b"}`)
	grant, operator := w.feed(credential(ctx, "gr_a", scopes...), `{"name":"c"}`), w.feed(credential(ctx, "op_a", scopes...), `{"name":"d"}`)
	otherTenant := w.feed(credential(other, "key_a", scopes...), `{"name":"e"}`)
	run()
	for _, f := range []feed{key, rotated, grant, operator, otherTenant} {
		w.read(f).is(200)
	}
	credentials.End(tenant, "key_a", "")
	credentials.End(tenant, "key_b", "key_c")
	credentials.Fail(errors.New("identity is away"))
	run()
	w.read(key).is(200)
	credentials.Fail(nil)
	run()
	run()
	w.read(key).is(404, "calendar_feed_not_found")
	w.do(ctx, "GET", "/calendar-feeds/"+key.ID, "").is(404, "calendar_feed_not_found")
	for _, f := range []feed{rotated, grant, operator, otherTenant} {
		w.read(f).is(200)
	}
	credentials.End(tenant, "key_c", "")
	credentials.End(tenant, "gr_a", "")
	credentials.End(tenant, "op_a", "")
	run()
	for _, f := range []feed{rotated, grant, operator} {
		w.read(f).is(404, "calendar_feed_not_found")
	}
	w.read(otherTenant).is(200)
	if n := w.Count(`select count(*) from outbox where strpos(encode(message, 'escape'), 'calendar_feed.deleted') > 0`); n != 4 {
		t.Errorf("%d events", n)
	}
}

// TestAnEndedCredentialEndsItsCalendarAtOnce checks that the next read of a calendar returns 404 after the credential of its feed has
// ended, before the worker deletes the feed. The credential of another tenant changes nothing. A rotated key passes the calendar on to
// its successor, until that one ends too. While identity does not respond, the calendar stays readable.
func TestAnEndedCredentialEndsItsCalendarAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, other := pgtest.Ctx(t, caller.Live), pgtest.Ctx(t, caller.Live)
	tenant := caller.FromContext(ctx).Tenant
	scopes := []string{"read:bookings", "write:bookings"}
	of := func(ctx context.Context, id string) feed {
		return w.feed(credential(ctx, id, scopes...), `{"name":"x"}`)
	}
	key, rotated, grant, operator, otherTenant := of(ctx, "key_a"), of(ctx, "key_b"), of(ctx, "gr_a"), of(ctx, "op_a"), of(other, "key_a")
	tag := w.read(key).is(200).Header.Get("ETag")
	for _, id := range []string{"key_a", "gr_a", "op_a"} {
		w.credentials.End(tenant, id, "")
	}
	w.credentials.End(tenant, "key_b", "key_c")
	w.credentials.Fail(errors.New("identity is away"))
	w.read(key).is(200)
	w.credentials.Fail(nil)
	w.read(key).is(404, "calendar_feed_not_found")
	w.read(key, header("If-None-Match: "+tag)).is(404, "calendar_feed_not_found")
	w.read(grant).is(404, "calendar_feed_not_found")
	w.read(operator).is(404, "calendar_feed_not_found")
	w.read(otherTenant).is(200)
	w.read(rotated).is(200)
	w.credentials.End(tenant, "key_c", "key_d")
	w.read(rotated).is(200)
	w.credentials.End(tenant, "key_d", "")
	w.read(rotated).is(404, "calendar_feed_not_found")
	w.credentials.Hang(true)
	w.read(rotated).is(200)
}
