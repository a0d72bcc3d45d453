package platform_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkatest"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/service"
	"holdfast.dev/libs/testservers"
	"holdfast.dev/proto"
)

const (
	name = "identity" // a service of proto/services.yaml that writes one topic and reads another
	addr = "127.0.0.1:0"
)

var secret = strings.Repeat("ab", 32)

type config struct {
	Platform platform.Config
}

// tiny is a service of a few lines. Its only write adds a note and an event, and it records the messages that it reads.
type tiny struct {
	cfg     config
	log     safeBuffer
	started chan *service.Runtime
	handled chan string
	mended  atomic.Bool // the bad message can now be handled
	idle    bool        // it does not call Consume
}

func newTiny() *tiny {
	return &tiny{started: make(chan *service.Runtime, 1), handled: make(chan string, 10)}
}

func (s *tiny) run(ctx context.Context, args ...string) (string, error) {
	migrations := fstest.MapFS{"00001_notes.sql": {Data: []byte(`-- +goose ENVSUB ON
-- +goose Up
create table notes (note text not null);
grant insert on notes to ${APP_ROLE};
`)}}
	app := service.App{Name: name, Config: &s.cfg, Serve: s.wire, Commands: platform.Commands(name, platform.Migrate(migrations))}
	var out bytes.Buffer
	if len(args) > 0 && args[0] == "serve" {
		return "", service.Run(ctx, app, args, &s.log)
	}
	err := service.Run(ctx, app, args, &out)
	return out.String(), err
}

func (s *tiny) wire(ctx context.Context, rt *service.Runtime) error {
	p, err := platform.Open(ctx, rt, s.cfg.Platform, platform.Spec{})
	if err != nil {
		return err
	}
	rt.Go("own worker", func(ctx context.Context) error { <-ctx.Done(); return nil })
	if !s.idle {
		p.Consume(s.handle)
	}
	defer func() { s.started <- rt }()
	return p.Serve(func(e *gin.Engine) error {
		return p.Server.Mount(e, map[string]httpx.Route{
			"getMe": {Handle: func(c *gin.Context) error {
				defer p.Relay.Wake()
				return errors.Join(p.DB.Tx(c.Request.Context(), note), httpx.JSON(c, http.StatusOK, "", []byte(`{}`)))
			}},
			"getTenant": {Handle: func(*gin.Context) error { return httpx.ErrNotFound }},
		})
	})
}

func note(ctx context.Context, tx pg.Tx) error {
	if _, err := tx.Exec(ctx, `insert into notes values ('written')`); err != nil {
		return err
	}
	return outbox.Add(ctx, tx, outbox.Event{Type: "tenant.updated", Topic: name, AggregateID: "tn_1", Version: 1, Object: json.RawMessage(`{}`)})
}

// handle rejects the bad message until mended is set.
func (s *tiny) handle(_ context.Context, m kafkax.Message) error {
	if string(m.Value) == "bad" && !s.mended.Load() {
		return kafkax.Poison(errors.New("refused"))
	}
	s.handled <- string(m.Value)
	return nil
}

// settings sets the environment for the test's own database and topics.
func settings(t *testing.T) kafkax.Cluster {
	t.Helper()
	db := pgtest.New(t, nil)
	allow(t, db)
	cluster := kafkax.Cluster{Brokers: kafkatest.Any(t), Prefix: kafkatest.Prefix(t)}
	for key, value := range map[string]string{
		"DATABASE_URL": db.AppURL, "WORKER_DATABASE_URL": db.WorkerURL, "MIGRATE_DATABASE_URL": db.OwnerURL,
		"APP_ROLE": user(t, db.AppURL), "WORKER_ROLE": user(t, db.WorkerURL),
		"KAFKA_BROKERS": strings.Join(cluster.Brokers, ","), "KAFKA_TOPIC_PREFIX": cluster.Prefix, "KAFKA_PARTITIONS": "2",
		"CALLER_VERIFY_KEYS": "gateway=k1:" + secret, "HTTP_ADDR": addr, "LOG_LEVEL": "debug",
	} {
		t.Setenv(key, value)
	}
	return cluster
}

// allow lets the owner of the database's tables create others.
func allow(t *testing.T, db *pgtest.DB) {
	t.Helper()
	admin, err := url.Parse(testservers.Getenv(t, "TEST_POSTGRES_URL"))
	if err != nil {
		t.Fatal(err)
	}
	owner, err := url.Parse(db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	admin.Path = owner.Path
	conn, err := pgx.Connect(t.Context(), admin.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), `grant create on schema public to `+owner.User.Username()); err != nil {
		t.Fatal(err)
	}
}

func user(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.User.Username()
}

func TestService(t *testing.T) { testService(t, settings(t)) }

// Behind a pooler, a service works the same: requests, relay, consumer and sweepers.
func TestServiceThroughAPooler(t *testing.T) {
	cluster := settings(t)
	for _, name := range []string{"DATABASE_URL", "WORKER_DATABASE_URL"} {
		t.Setenv(name, pgtest.Pooled(t, os.Getenv(name)))
	}
	t.Setenv("DATABASE_POOLER", "true")
	testService(t, cluster)
}

func testService(t *testing.T, cluster kafkax.Cluster) {
	t.Helper()
	s := newTiny()
	for _, command := range []string{"migrate", "migrate", "topics", "topics"} { // each is safe to repeat
		if out, err := s.run(t.Context(), command); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := s.run(ctx, "serve"); done <- err }()
	stop := sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = stop() })

	base := s.base(t, done)
	s.checkCalls(t, base)
	relayed(t, cluster)
	s.consumes(t, cluster)
	if err := stop(); err != nil {
		t.Error(err)
	}
	s.stoppedInOrder(t)
}

// base returns the address of the service once it listens.
func (s *tiny) base(t *testing.T, done <-chan error) string {
	t.Helper()
	select {
	case rt := <-s.started:
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if a := rt.Addr(addr); a != nil {
				return "http://" + a.String()
			}
		}
	case err := <-done:
		t.Fatalf("the start: %v\n%s", err, s.log.String())
	}
	t.Fatal("the service never listens")
	return ""
}

func (s *tiny) checkCalls(t *testing.T, base string) {
	t.Helper()
	if got := get(t, base, "/readyz", ""); got != http.StatusOK {
		t.Errorf("readyz: %d", got)
	}
	if got := get(t, base, "/api/v1/me", "gateway"); got != http.StatusOK {
		t.Errorf("a signed call: %d\n%s", got, s.log.String())
	}
	for _, from := range []string{"", "bookings"} {
		if got := get(t, base, "/api/v1/me", from); got != http.StatusUnauthorized {
			t.Errorf("a call of %q: %d, want 401", from, got)
		}
	}
}

// get sends a request signed by the service from, for a new tenant.
func get(t *testing.T, base, path, from string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if from != "" {
		keys, err := caller.ParseKeys(name + "=k1:" + secret)
		if err != nil {
			t.Fatal(err)
		}
		c := caller.Service(from, ids.New[ids.TenantPrefix](), caller.Test)
		signed, err := (&caller.Signer{From: from, Keys: keys}).Sign(c, name, http.MethodGet, path, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(caller.Header, signed)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// relayed waits for the event in Kafka.
func relayed(t *testing.T, cluster kafkax.Cluster) {
	t.Helper()
	events := make(chan kafkax.Message, 10)
	reader := &kafkax.Consumer{
		Cluster: cluster, Group: "reader", Topics: []string{name}, Log: slog.New(slog.DiscardHandler),
		Handle: func(_ context.Context, m kafkax.Message) error { events <- m; return nil },
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- reader.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	select {
	case m := <-events:
		if e, err := outbox.Decode(m.Value); err != nil || e.GetType() != "tenant.updated" || m.Key != "tn_1" {
			t.Errorf("%v, key %q: %v", e, m.Key, err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the event never reached Kafka")
	}
}

// consumes sends a bad message and a good one after it: the bad one becomes a dead letter, and redrive sends it back.
func (s *tiny) consumes(t *testing.T, cluster kafkax.Cluster) {
	t.Helper()
	writer := kafkax.NewWriter(cluster)
	defer writer.Close() // Each Produce has waited for its response.
	for _, value := range []string{"bad", "good"} {
		if err := writer.Produce(t.Context(), kafkax.Message{Topic: "webhooks", Key: "one", Value: []byte(value)}); err != nil {
			t.Fatal(err)
		}
	}
	s.handles(t, "good")
	s.mended.Store(true)
	if out, err := s.run(t.Context(), "redrive"); err != nil || out != "1 sent back\n" {
		t.Fatalf("redrive: %q, %v", out, err)
	}
	s.handles(t, "bad")
}

func (s *tiny) handles(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-s.handled:
		if got != want {
			t.Errorf("handled %q, want %q", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatalf("%q never arrived\n%s", want, s.log.String())
	}
}

// stoppedInOrder reads the log: the part that was registered last stops first, under the names that the log has always
// had.
func (s *tiny) stoppedInOrder(t *testing.T) {
	t.Helper()
	var got []string
	for line := range strings.Lines(s.log.String()) {
		var l struct{ Msg, Part string }
		if json.Unmarshal([]byte(line), &l) == nil && l.Msg == "stopped" {
			got = append(got, l.Part)
		}
	}
	want := []string{
		"http " + addr, "consumer", "own worker", "inbox sweeper", "erasure sweeper", "idempotency sweeper", "relay", "kafka", "postgres worker", "postgres",
	}
	if !slices.Equal(got, want) {
		t.Errorf("stopped %q, want %q\n%s", got, want, s.log.String())
	}
}

// A service whose topics nothing consumes does not start.
func TestReadsWithoutConsume(t *testing.T) {
	settings(t)
	s := newTiny()
	s.idle = true
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	listed, _ := proto.ServiceNamed("identity")
	want := fmt.Sprintf("identity reads %v in proto/services.yaml: call Consume", listed.Reads)
	if _, err := s.run(ctx, "serve"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}

// A start without settings lists everything that is missing in one line.
func TestMissingSettings(t *testing.T) {
	for _, name := range []string{"DATABASE_URL", "WORKER_DATABASE_URL", "KAFKA_BROKERS", "CALLER_VERIFY_KEYS"} {
		t.Setenv(name, "")
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	_, err := newTiny().run(t.Context(), "serve")
	if err == nil || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got %v", err)
	}
	for _, name := range []string{"DATABASE_URL", "WORKER_DATABASE_URL", "KAFKA_BROKERS", "CALLER_VERIFY_KEYS"} {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(err.Error()) {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
}

// With an invalid setting the start fails before a connection is made, and the error names the setting.
func TestWrongSettings(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://127.0.0.1:1/none")
	t.Setenv("WORKER_DATABASE_URL", "postgres://127.0.0.1:1/none")
	t.Setenv("KAFKA_BROKERS", "127.0.0.1:1")
	t.Setenv("CALLER_VERIFY_KEYS", "gateway")
	if _, err := newTiny().run(t.Context(), "serve"); err == nil || !strings.Contains(err.Error(), "CALLER_VERIFY_KEYS: ") {
		t.Errorf("wrong keys: %v", err)
	}
	t.Setenv("CALLER_VERIFY_KEYS", "gateway=k1:"+secret)
	t.Setenv("KAFKA_SASL_MECHANISM", "none")
	if _, err := newTiny().run(t.Context(), "serve"); err == nil || !strings.Contains(err.Error(), "KAFKA_SASL_MECHANISM") {
		t.Errorf("wrong mechanism: %v", err)
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"identity": {"migrate", "topics", "outbox", "redrive"}, "customers": {"migrate", "topics", "outbox", "redrive"}, "gateway": {"migrate", "topics"}, // it reads no topic
	} {
		var got []string
		for _, c := range platform.Commands(name, platform.Migrate(nil)) {
			got = append(got, c.Name())
			if c.Short == "" {
				t.Errorf("%s %s has no help", name, c.Name())
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// safeBuffer is a log that a running service writes and the test reads.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
