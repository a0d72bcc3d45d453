package app_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/patch"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
)

const hook = "http://receiver.test/hook"

// A receiver gets exactly the event's bytes once, signed with the endpoint's secret, and the log contains the attempt.
func TestDelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.endpoint(w.ctx, hook)
	sent := w.ingest(w.ctx, 1)[0]
	if n := w.drain(); n != 1 {
		t.Fatalf("%d attempts", n)
	}
	got := w.receivers.got("")[0]
	stored, err := store.Event(w.ctx, w.db.App.Read(w.ctx), sent.ID, w.Now())
	if err != nil || string(stored.Body) != string(got.Body) || !strings.Contains(string(got.Body), "Ada <&> 🎉") {
		t.Errorf("sent %s\nstored %s, %v", got.Body, stored.Body, err)
	}
	if err := domain.Verify(got.Headers["Service-Signature"], got.Body, e.Secret, w.Now()); err != nil {
		t.Errorf("signature: %v", err)
	}
	log := w.log(w.ctx, e.ID, store.DeliveryFilter{})
	if len(log) != 1 || log[0].Status != domain.Succeeded || len(log[0].Attempts) != 1 || log[0].NextAttemptAt != nil ||
		*log[0].Attempts[0].StatusCode != 200 || *log[0].Attempts[0].ResponseBody != "ok" || log[0].Attempts[0].Error != nil {
		t.Fatalf("log: %+v", log)
	}
	want := map[string]string{
		"Service-Event-Id": sent.ID.String(), "Service-Event-Type": "customer.created", "webhook-id": sent.ID.String(),
		"Service-Delivery-Id": log[0].ID.String(), "Service-Delivery-Attempt": "1", "webhook-timestamp": fmt.Sprint(w.Now().Unix()),
		"webhook-signature": domain.SignStandard(sent.ID.String(), got.Body, w.Now(), e.Secret),
	}
	for name, value := range want {
		if got.Headers[name] != value {
			t.Errorf("%s: %q, want %q", name, got.Headers[name], value)
		}
	}
	if left := w.texts(`select delivery_id::text from queue`); len(left) > 0 {
		t.Errorf("still queued: %v", left)
	}
}

// An endpoint gets only the events of its types, tenant and mode, while it is enabled.
func TestSubscriptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	live := w.caller(caller.FromContext(w.ctx).Tenant, caller.Live)
	other := w.caller(ids.New[ids.TenantPrefix](), caller.Test)
	to := func(types ...string) func(*domain.EndpointPatch) {
		return func(p *domain.EndpointPatch) { p.EventTypes = patch.Value(types) }
	}
	w.endpoint(w.ctx, "http://a/all")
	w.endpoint(w.ctx, "http://a/customers", to("customer.updated", "customer.created"))
	w.endpoint(w.ctx, "http://a/bookings", to("booking.created"))
	off := w.endpoint(w.ctx, "http://a/off")
	w.setStatus(off.ID, domain.Disabled)
	w.endpoint(live, "https://a/live")
	w.endpoint(other, "http://a/other")
	w.ingest(w.ctx, 1)
	w.drain()
	for url, want := range map[string]int{"http://a/all": 1, "http://a/customers": 1, "http://a/bookings": 0, "http://a/off": 0, "https://a/live": 0, "http://a/other": 0} {
		if got := len(w.receivers.got(url)); got != want {
			t.Errorf("%s got %d, want %d", url, got, want)
		}
	}
	if created := w.texts(`select id::text from deliveries`); len(created) != 2 {
		t.Errorf("%d deliveries were made", len(created))
	}
}

// Each attempt to an endpoint that always fails is made at the time in docs/guides/webhooks.md. The twentieth attempt is the last one, and
// the operator is notified twice.
func TestScheduleOfAttempts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.endpoint(w.ctx, hook)
	w.receivers.at(hook, status(503))
	w.ingest(w.ctx, 1)
	for n := 1; n <= domain.MaxAttempts; n++ {
		if got := w.drain(); got != 1 {
			t.Fatalf("attempt %d: %d were made", n, got)
		}
		if got := w.receivers.got("")[n-1].Headers["Service-Delivery-Attempt"]; got != fmt.Sprint(n) {
			t.Errorf("attempt %d says it is %s", n, got)
		}
		if n == domain.MaxAttempts {
			break
		}
		if got := w.get(w.ctx, e.ID); got.ConsecutiveFailures != n || got.Status != domain.Enabled {
			t.Fatalf("after %d: %+v", n, got)
		}
		if warning := w.get(w.ctx, e.ID).Warning(); (warning != nil) != (n >= domain.WarnAfter) {
			t.Errorf("after %d failures: %v", n, warning)
		}
		d := w.log(w.ctx, e.ID, store.DeliveryFilter{})[0]
		if d.FailureReason != nil {
			t.Errorf("a pending one failed: %s", *d.FailureReason)
		}
		wait := domain.Delay(n, .5)
		if d.Status != domain.Pending || !d.NextAttemptAt.Equal(w.Now().Add(wait)) {
			t.Fatalf("after %d: %s, next %v, want %v", n, d.Status, d.NextAttemptAt, w.Now().Add(wait))
		}
		w.Move(wait - time.Microsecond)
		if early := w.drain(); early != 0 {
			t.Fatalf("attempt %d came early", n+1)
		}
		w.Move(time.Microsecond)
	}
	d, got := w.log(w.ctx, e.ID, store.DeliveryFilter{})[0], w.get(w.ctx, e.ID)
	if d.Status != domain.Failed || len(d.Attempts) != 20 || d.NextAttemptAt != nil || *d.FailureReason != domain.AttemptsExhausted {
		t.Errorf("delivery: %s, %d attempts, %v", d.Status, len(d.Attempts), d.FailureReason)
	}
	if warning := got.Warning(); warning == nil || !strings.HasPrefix(*warning, "Disabled after 20 consecutive failed attempts. 0 pending deliveries failed.") {
		t.Errorf("warning: %v", warning)
	}
	if got.Status != domain.Disabled || *got.DisabledReason != domain.Failures || got.ConsecutiveFailures != 20 {
		t.Errorf("endpoint: %+v", got)
	}
	if events := w.operatorEvents(); events != "webhook_endpoint.failing 10 enabled, webhook_endpoint.disabled 20 disabled" {
		t.Errorf("events: %s", events)
	}
}

// operatorEvents returns the events for the operator, in order.
func (w *world) operatorEvents() string {
	w.t.Helper()
	var out []string
	for _, raw := range w.texts(`select encode(message, 'hex') from outbox order by seq`) {
		var message []byte
		if _, err := fmt.Sscanf(raw, "%x", &message); err != nil {
			w.t.Fatal(err)
		}
		e, err := outbox.Decode(message)
		if err == nil && len(e.GetObject()) == 0 { // a write
			continue
		}
		if err != nil || !e.GetInternal() || e.GetTenantId() != caller.FromContext(w.ctx).Tenant.String() {
			w.t.Fatalf("%v, %v", e, err)
		}
		state := decode[struct {
			ID       string `json:"id"`
			Status   string `json:"status"`
			Failures int    `json:"consecutive_failures"`
		}](w.t, e.GetObject())
		if state.ID != e.GetObjectId() {
			w.t.Errorf("%s is about %s", e.GetObjectId(), state.ID)
		}
		out = append(out, fmt.Sprintf("%s %d %s", e.GetType(), state.Failures, state.Status))
	}
	return strings.Join(out, ", ")
}

// A delivery fails after seven days, regardless of the number of attempts.
func TestSevenDays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.endpoint(w.ctx, hook)
	w.receivers.at(hook, func(domain.Outgoing) domain.Response {
		return domain.Response{Status: 429, RetryAfter: 100 * time.Hour}
	})
	w.ingest(w.ctx, 1)
	for range 14 { // Retry-After is honored up to 12 h
		if n := w.drain(); n != 1 {
			t.Fatalf("%d attempts after %s", n, w.Now())
		}
		w.Move(12*time.Hour - time.Second)
		if n := w.drain(); n != 0 {
			t.Fatal("Retry-After was not honoured")
		}
		w.Move(time.Second)
	}
	d := w.log(w.ctx, e.ID, store.DeliveryFilter{})[0]
	if d.Status != domain.Failed || len(d.Attempts) != 14 || *d.FailureReason != domain.Expired {
		t.Errorf("%s after %d attempts: %v", d.Status, len(d.Attempts), d.FailureReason)
	}
	if err := w.retry(e.ID, d.ID); err != nil {
		t.Fatal(err)
	}
	if d := w.log(w.ctx, e.ID, store.DeliveryFilter{})[0]; d.Status != domain.Pending || d.FailureReason != nil {
		t.Errorf("a retry is %s, %v", d.Status, d.FailureReason)
	}
}

// A 410 response disables the endpoint immediately. Its pending deliveries fail, no new ones are created, and a replay creates
// them later.
func TestGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.endpoint(w.ctx, hook, limits(1, domain.DefaultPerSecond))
	w.receivers.at(hook, status(http.StatusGone))
	w.ingest(w.ctx, 30)
	w.drain()
	got := w.get(w.ctx, e.ID)
	if got.Status != domain.Disabled || *got.DisabledReason != domain.Gone || got.ConsecutiveFailures != 1 {
		t.Fatalf("%+v", got)
	}
	if n := len(w.receivers.got("")); n != 1 {
		t.Errorf("%d attempts", n)
	}
	failed := w.log(w.ctx, e.ID, store.DeliveryFilter{Status: domain.Failed})
	if len(failed) != 30 || len(w.texts(`select delivery_id::text from queue`)) != 0 {
		t.Errorf("%d of 30 failed", len(failed))
	}
	for _, d := range failed { // including the delivery that got a response
		if *d.FailureReason != domain.EndpointDisabled {
			t.Errorf("after %d attempts: %s", len(d.Attempts), *d.FailureReason)
		}
	}
	if warning := got.Warning(); warning == nil || !strings.HasPrefix(*warning, "Disabled because it returned 410. 29 pending deliveries failed.") {
		t.Errorf("warning: %v", warning)
	}
	w.ingest(w.ctx, 5)
	if all := w.log(w.ctx, e.ID, store.DeliveryFilter{}); len(all) != 30 {
		t.Errorf("%d deliveries while disabled", len(all)-30)
	}
	w.receivers.at(hook, nil)
	w.setStatus(e.ID, domain.Enabled)
	if got := w.get(w.ctx, e.ID); got.ConsecutiveFailures != 0 || got.DisabledReason != nil || got.Warning() != nil {
		t.Errorf("enabled: %+v", got)
	}
	if n, err := w.replay(e.ID); err != nil || n != 35 {
		t.Fatalf("%d %v", n, err)
	}
	if n := w.drain(); n != 35 {
		t.Errorf("%d attempts of the replay", n)
	}
	if events := w.operatorEvents(); events != "webhook_endpoint.disabled 1 disabled" {
		t.Errorf("events: %s", events)
	}
}

// The deliveries to an endpoint that the operator disables fail. Deliveries that remain when it is enabled again are not sent.
func TestDisabling(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.endpoint(w.ctx, hook)
	w.ingest(w.ctx, 1500)
	w.setStatus(e.ID, domain.Disabled)
	if got := w.get(w.ctx, e.ID); *got.DisabledReason != domain.Requested || got.Warning() != nil {
		t.Errorf("%+v", got)
	}
	if left := len(w.texts(`select delivery_id::text from queue`)); left != 500 {
		t.Errorf("%d are left to the dispatcher", left)
	}
	w.setStatus(e.ID, domain.Enabled)
	if n := w.drain(); n != 0 {
		t.Errorf("%d were sent", n)
	}
	if events := w.operatorEvents(); events != "" {
		t.Errorf("the operator got an event of a change that the operator made: %s", events)
	}
	w.ingest(w.ctx, 1500)
	w.setStatus(e.ID, domain.Disabled)
	w.step()
	if left := w.texts(`select status from deliveries where status <> 'failed' or failure_reason <> 'endpoint_disabled'`); len(left) != 0 {
		t.Errorf("%d are not failed", len(left))
	}
}

// Twenty events are sent within a second to an endpoint that is being deployed. The breaker defers them, so that the endpoint
// is not disabled, and each is delivered later. Without the breaker the endpoint is disabled.
func TestBreaker(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{true, false} {
		t.Run(fmt.Sprint(on), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.dispatcher.Breaker = on
			e := w.endpoint(w.ctx, hook)
			w.markFast()
			w.receivers.at(hook, func(domain.Outgoing) domain.Response { return domain.Response{Err: "connection refused"} })
			w.ingest(w.ctx, 20)
			w.drain()
			got := w.get(w.ctx, e.ID)
			if !on {
				if got.Status != domain.Disabled {
					t.Errorf("%+v", got)
				}
				return
			}
			if got.Status != domain.Enabled || got.ConsecutiveFailures != 10 {
				t.Fatalf("after the first ten: %+v", got)
			}
			w.Move(29 * time.Second)
			if n := w.drain(); n != 0 {
				t.Errorf("%d attempts while they are deferred", n)
			}
			w.Move(time.Second)
			if n := w.drain(); n != 1 {
				t.Errorf("%d probing attempts", n)
			}
			w.receivers.at(hook, nil) // it works again
			w.Move(time.Minute)
			w.drain()
			if got := w.get(w.ctx, e.ID); got.ConsecutiveFailures != 0 || got.Status != domain.Enabled {
				t.Errorf("%+v", got)
			}
			w.Move(2 * time.Minute)
			w.drain()
			if n := len(w.log(w.ctx, e.ID, store.DeliveryFilter{Status: domain.Succeeded})); n != 20 {
				t.Errorf("%d of 20 delivered", n)
			}
		})
	}
}

// Deliveries are signed with all secrets of a rotation until the earlier ones expire.
func TestRotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.endpoint(w.ctx, hook)
	rotate := func(overlap time.Duration) string {
		t.Helper()
		return w.rotate(e.ID, overlap)
	}
	signedBy := func(secrets ...string) {
		t.Helper()
		w.ingest(w.ctx, 1)
		w.drain()
		came := w.receivers.got("")
		last := came[len(came)-1]
		if want := domain.Sign(last.Body, w.Now(), secrets...); last.Headers["Service-Signature"] != want {
			t.Errorf("signed %s, want %s", last.Headers["Service-Signature"], want)
		}
	}
	signedBy(e.Secret)
	second := rotate(time.Hour)
	signedBy(second, e.Secret)
	w.Move(time.Hour - time.Second)
	third := rotate(time.Hour)
	signedBy(third, second, e.Secret)
	w.Move(time.Second)
	signedBy(third, second)
	fourth := rotate(0)
	signedBy(fourth)
	all := []string{fourth}
	for range 6 {
		all = append([]string{rotate(time.Hour)}, all...)
	}
	signedBy(all[:domain.MaxSecrets]...)
	if plain := w.texts(`select encode(sealed, 'escape') from endpoint_secrets`); strings.Contains(strings.Join(plain, ""), "whsec_") {
		t.Error("the table has a secret in plain text")
	}
}

// A sealed secret that was copied into another row cannot be opened, and no delivery is sent unsigned.
func TestASecretBelongsToItsRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.endpoint(w.ctx, hook)
	other := w.endpoint(w.caller(ids.New[ids.TenantPrefix](), caller.Test), "http://b/")
	owner, err := pgx.Connect(t.Context(), w.db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = owner.Close(context.Background()) }()
	tag, err := owner.Exec(t.Context(), `update endpoint_secrets s set sealed = o.sealed from endpoint_secrets o
		where s.endpoint_id = $1 and o.endpoint_id = $2`, e.ID, other.ID)
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatal(tag, err)
	}
	w.ingest(w.ctx, 1)
	w.drain()
	if n := len(w.receivers.got("")); n != 0 {
		t.Errorf("%d deliveries were sent", n)
	}
	for range 30 { // a missing key is not the receiver's fault
		w.Move(time.Minute)
		w.drain()
	}
	d, at := w.log(w.ctx, e.ID, store.DeliveryFilter{})[0], w.get(w.ctx, e.ID)
	if d.Status != domain.Pending || len(d.Attempts) != 0 || at.ConsecutiveFailures != 0 || at.Status != domain.Enabled {
		t.Errorf("delivery %+v, endpoint %+v", d, at)
	}
	if tag, err := owner.Exec(t.Context(), `delete from endpoint_secrets where endpoint_id = $1`, e.ID); err != nil {
		t.Fatal(tag, err)
	}
	w.rotate(e.ID, 0)
	w.Move(time.Minute)
	w.drain()
	if got := w.receivers.got(hook); len(got) != 1 || got[0].Headers["Service-Delivery-Attempt"] != "1" {
		t.Errorf("%d deliveries with a new secret", len(got))
	}
}
