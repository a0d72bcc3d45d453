package api_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/bookings/internal/app"
	"holdfast.dev/services/bookings/internal/peers/peerstest"
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
	credentials := &peerstest.Credentials{}
	holders := &app.FeedHolders{
		Feeds: app.NewFeeds(w.DB.App, func() {}, "https://api.test", time.Now), Worker: w.DB.Worker, Credentials: credentials, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
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
	w.Exec(`update calendar_feeds set created_by = null, holder = null where name = 'd'`) // as if created by an earlier version
	run()
	for _, f := range []feed{key, rotated, grant, operator, otherTenant} {
		w.read(f).is(200)
	}
	credentials.End(tenant, "key_a", "")
	credentials.End(tenant, "key_b", "key_c")
	credentials.End(tenant, "op_a", "")
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
	run()
	w.read(rotated).is(404, "calendar_feed_not_found")
	w.read(grant).is(404, "calendar_feed_not_found")
	if n := w.Count(`select count(*) from outbox where strpos(encode(message, 'escape'), 'calendar_feed.deleted') > 0`); n != 3 {
		t.Errorf("%d events", n)
	}
}
