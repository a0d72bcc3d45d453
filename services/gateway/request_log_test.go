package main

import (
	"context"
	"crypto/sha256"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkatest"
	"holdfast.dev/libs/kafkax"
	eventsv1 "holdfast.dev/proto/events/v1"
)

// logged starts a gateway whose request log is in Kafka, with the given share of reads. The returned function waits until the log
// has n entries, and returns them by request id.
func (w *world) logged(t *testing.T, reads float64) (*gateway, func(n int) map[string]*eventsv1.RequestLog) {
	t.Helper()
	settings := kafkax.Settings{Brokers: kafkatest.Any(t), Prefix: kafkatest.Prefix(t), Partitions: 2}
	g := w.start(t, func(c *Config) { c.Kafka, c.RequestLogReads = settings, reads })
	all := map[string]*eventsv1.RequestLog{}
	return g, func(n int) map[string]*eventsv1.RequestLog {
		t.Helper()
		eventually(t, "the topic exists", func() bool { return count(g.server.Pipeline.Metrics.RequestLogs.WithLabelValues("sent")) >= float64(n) })
		client, err := kgo.NewClient(kgo.SeedBrokers(settings.Brokers...), kgo.ConsumeTopics(settings.Prefix+"requests"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(t.Context(), maxWait)
		defer cancel()
		for len(all) < n && ctx.Err() == nil {
			client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
				var message eventsv1.RequestLogs
				if err := proto.Unmarshal(r.Value, &message); err != nil {
					t.Error(err)
				}
				for _, e := range message.GetEntries() {
					all[e.GetId()] = e
				}
			})
		}
		if len(all) != n {
			t.Errorf("%d entries, want %d: %v", len(all), n, slices.Sorted(maps.Keys(all)))
		}
		return all
	}
}

// A write is logged with the object that it created, and never with its body, the values of its query, or its key.
func TestRequestLogOfAWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, entries := w.logged(t, 0)
	key := w.identity.newKey()
	agent := "holdfast-go/1.2.3 (linux)"
	const body = `{"name":"Ada","email":"ada@example.com"}`
	edits := []edit{bearer(key), header("Idempotency-Key", "secret-key"), header("User-Agent", agent)}
	first := g.send(t, "POST", customers, body, edits...)
	want(t, first, 201, "")
	eventually(t, "the response is cached", func() bool {
		again := g.send(t, "POST", customers, body, edits...)
		return again.Header.Get("Idempotent-Replayed") == "true"
	})
	want(t, g.send(t, "GET", oneCu, "", bearer(key)), 200, "") // not logged
	id := first.Header.Get("X-Request-Id")
	sent := count(g.server.Pipeline.Metrics.RequestLogs.WithLabelValues("sent"))
	eventually(t, "the entries are written", func() bool {
		sent = count(g.server.Pipeline.Metrics.RequestLogs.WithLabelValues("sent"))
		return sent >= 2
	})
	all := entries(int(sent))
	e := all[id]
	principal := w.identity.change(key, nil)
	var tenant ids.Tenant
	if err := tenant.UnmarshalText([]byte(principal.TenantID)); err != nil {
		t.Fatal(err)
	}
	uuid := tenant.UUID()
	sum := sha256.Sum256([]byte("secret-key"))
	expected := &eventsv1.RequestLog{
		Id: id, TenantUuid: uuid[:], Status: 201, Method: "POST", Route: "/customers", Path: "/customers", CredentialId: principal.ID,
		CredentialType: "api_key", ObjectId: first.Header.Get("Location")[len("/api/v1/customers/"):], DurationMs: e.GetDurationMs(),
		ClientNetwork: "127.0.0.0/24", UserAgent: agent, SdkVersion: "holdfast-go/1.2.3", IdempotencyKeyHash: sum[:],
	}
	if !proto.Equal(e, expected) {
		t.Errorf("logged %v\nwant %v", e, expected)
	}
	replays := 0
	for _, e := range all {
		if e.GetReplayed() {
			replays++
		}
		if text := e.String(); strings.Contains(text, "Ada") || strings.Contains(text, "ada@") || strings.Contains(text, "secret-key") {
			t.Errorf("logged %s", text)
		}
	}
	if replays == 0 || replays != len(all)-1 {
		t.Errorf("%d of %d are replays", replays, len(all))
	}
}

// Each error of an identified tenant is logged with its code and field: an error of the gateway, of a service, and of a stream. A
// request without a known credential belongs to no tenant.
func TestRequestLogOfErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, entries := w.logged(t, 0)
	key, reader := w.identity.newKey(), w.identity.newKey("read:units")
	w.service.handle = func(rw http.ResponseWriter, r *http.Request) bool {
		err := apperr.New(apperr.NotFound, "customer_not_found", "Customer not found.")
		if r.URL.Path != oneCu {
			err = apperr.Field("limit", "must be greater than 0.")
		}
		httpx.WriteError(rw, publicURL, r.Header.Get("X-Request-Id"), err)
		return true
	}
	cases := []struct {
		response    *response
		route       string
		code, param string
		names       []string
	}{
		{g.send(t, "GET", oneCu, "", bearer(key)), "/customers/{id}", "customer_not_found", "", nil},
		{g.send(t, "GET", customers+"?limit=0&email=ada%40example.com", "", bearer(key)), "/customers", "invalid_request", "limit", []string{"limit", "email"}},
		{g.send(t, "GET", customers+"?limit=0", "", bearer(key), header("Accept", "text/csv")), "/customers", "invalid_request", "limit", []string{"limit"}},
		{g.send(t, "GET", oneCu, "", bearer(reader)), "/customers/{id}", "insufficient_scope", "", nil},
		{g.send(t, "POST", customers, `{`, bearer(key)), "/customers", "malformed_json", "", nil},
		{g.send(t, "GET", oneCu+"?api_key=x", "", bearer(key)), "", "query_api_key_unsupported", "", nil},
		{g.send(t, "GET", oneCu, "", bearer(apikey.New(caller.Test))), "", "invalid_credential", "", nil},
		{g.send(t, "GET", oneCu, ""), "", "missing_credential", "", nil},
	}
	all := entries(5)
	for _, tc := range cases {
		if tc.response.code() != tc.code {
			t.Errorf("the response is %d %s, want %s", tc.response.StatusCode, tc.response.body, tc.code)
		}
		e := all[tc.response.Header.Get("X-Request-Id")]
		if (e == nil) != (tc.route == "") {
			t.Errorf("%s: logged %v", tc.code, e)
		}
		if e != nil && (e.GetRoute() != tc.route || e.GetCode() != tc.code || e.GetParam() != tc.param || int(e.GetStatus()) != tc.response.StatusCode || !slices.Equal(e.GetQueryNames(), tc.names)) {
			t.Errorf("%s: logged %v", tc.code, e)
		}
	}
}

// The setting decides how many successful reads are logged.
func TestRequestLogOfReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, entries := w.logged(t, 1)
	key := w.identity.newKey()
	for range 3 {
		want(t, g.send(t, "GET", oneCu, "", bearer(key)), 200, "")
	}
	for _, e := range entries(3) {
		if e.GetObjectId() != oneCu[len("/api/v1/customers/"):] || e.GetPath() != strings.TrimPrefix(oneCu, "/api/v1") || e.GetStatus() != 200 {
			t.Errorf("logged %v", e)
		}
	}
}

// Without Kafka, requests are answered as usual, their entries are dropped and counted, and the gateway stops without delay.
func TestRequestLogWithoutKafka(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	key := w.identity.newKey()
	start := time.Now()
	for range 20 {
		want(t, g.send(t, "POST", customers, `{"name":"x"}`, bearer(key)), 201, "")
	}
	if took := time.Since(start); took > writesTook {
		t.Errorf("20 writes took %s", took)
	}
	failed := g.server.Pipeline.Metrics.RequestLogs.WithLabelValues("failed")
	eventually(t, "the entries are dropped", func() bool { return count(failed) >= 20 })
	if !strings.Contains(g.log.String(), "request log entries dropped") {
		t.Errorf("no line: %s", g.log)
	}
}

// writesTook is far below the time-out of a write to Kafka for each request.
const writesTook = 15 * time.Second

func TestRequestLogSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, share := range []float64{-0.1, 1.1} {
		w.cfg.RequestLogReads = share
		if _, _, err := build(w.cfg, nil, nil, nil, nil, prometheus.NewRegistry()); err == nil || !strings.Contains(err.Error(), "REQUEST_LOG_READS") {
			t.Errorf("%g: %v", share, err)
		}
	}
}
