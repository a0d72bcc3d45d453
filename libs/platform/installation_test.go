package platform_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/kafkatest"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

// takeTopics makes the topics belong to another installation.
func takeTopics(t *testing.T, c kafkax.Cluster) {
	t.Helper()
	if err := kafkax.ClaimTopics(t.Context(), c, name, "another"); err != nil {
		t.Fatal(err)
	}
}

// A service and its command topics refuse topics of another installation: the service stops with an error that says what to do.
func TestServiceRefusesTopicsOfAnotherInstallation(t *testing.T) { // not parallel: it sets the environment
	cluster := settings(t)
	takeTopics(t, cluster)
	for _, command := range []string{"topics", "serve"} {
		_, err := newTiny().run(t.Context(), command)
		if !errors.Is(err, kafkax.ErrOtherInstallation) || !strings.Contains(err.Error(), "set KAFKA_TOPIC_PREFIX") {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// A service starts again with its own topics, and with a Kafka that lost them. The command topics needs no database.
func TestServiceStartsAgainWithItsTopics(t *testing.T) { // not parallel: it sets the environment
	cluster := settings(t)
	if _, err := newTiny().run(t.Context(), "migrate"); err != nil {
		t.Fatal(err)
	}
	serves(t, cluster) // it creates the topics
	if _, err := newTiny().run(t.Context(), "topics"); err != nil {
		t.Fatal(err)
	}
	serves(t, cluster)
	cluster.Prefix = kafkatest.Prefix(t) // without topics
	t.Setenv("KAFKA_TOPIC_PREFIX", cluster.Prefix)
	serves(t, cluster)
	t.Setenv("MIGRATE_DATABASE_URL", "")
	if _, err := newTiny().run(t.Context(), "topics"); err != nil {
		t.Errorf("topics without a database: %v", err)
	}
}

// serves starts the service and stops it after an event has arrived in Kafka.
func serves(t *testing.T, cluster kafkax.Cluster) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s, done := newTiny(), make(chan error, 1)
	go func() { _, err := s.run(ctx, "serve"); done <- err }()
	if got := get(t, s.base(t, done), "/api/v1/me", "gateway"); got != http.StatusOK {
		t.Errorf("a call: %d\n%s", got, s.log.String())
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // the service creates the topic
		if _, err := kafkax.Partitions(t.Context(), cluster, name); err == nil {
			break
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	relayed(t, cluster)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The copy of a database has its ID, like a restored one. A database of an older release has none.
func TestInstallationOfADatabase(t *testing.T) {
	t.Parallel()
	ids := map[string]int{}
	for range 2 {
		db := pgtest.New(t, nil)
		id, err := pg.Installation(t.Context(), db.Worker.Read(t.Context()))
		if err != nil || len(id) != 36 {
			t.Errorf("%q, %v", id, err)
		}
		ids[id]++
		conn, err := pgx.Connect(t.Context(), db.OwnerURL)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), `drop table installation`); err != nil {
			t.Fatal(err)
		}
		_ = conn.Close(t.Context())
		if id, err := pg.Installation(t.Context(), db.Worker.Read(t.Context())); id != "" || err != nil {
			t.Errorf("an older release: %q, %v", id, err)
		}
	}
	if len(ids) != 1 {
		t.Errorf("copies have the IDs %v", ids)
	}
}
