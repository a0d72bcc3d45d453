package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/outbox"
	eventsv1 "holdfast.dev/proto/events/v1"
)

// database connects to a service's database as administrator, without row-level security.
func (p *platform) database(t *testing.T, service string) *pgx.Conn {
	t.Helper()
	u, err := url.Parse(p.env["POSTGRES_URL"])
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/holdfast_" + service
	conn, err := pgx.Connect(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// rows returns the values of a text column.
func rows(t *testing.T, conn *pgx.Conn, sql string, args ...any) []string {
	t.Helper()
	found, err := conn.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func execute(t *testing.T, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func (p *platform) redis(t *testing.T) *redis.Client {
	t.Helper()
	opt, err := redis.ParseURL(p.env["REDIS_URL"])
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(opt)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// events returns the events of a topic by the id of their object, each event once.
func (p *platform) events(t *testing.T, topic string) map[string][]*eventsv1.Event {
	t.Helper()
	seen := map[string]bool{}
	out := map[string][]*eventsv1.Event{}
	for _, m := range p.messages(t, topic) {
		e, err := outbox.Decode(m.Value)
		if err != nil || seen[e.GetId()] { // a poison message from a test, or a duplicate, which is allowed
			continue
		}
		seen[e.GetId()] = true
		out[e.GetObjectId()] = append(out[e.GetObjectId()], e)
	}
	return out
}

// ofType counts the events of a type.
func ofType(events []*eventsv1.Event, kind string) int {
	n := 0
	for _, e := range events {
		if e.GetType() == kind {
			n++
		}
	}
	return n
}

// messages returns all messages of a topic. It waits for a broker that is restarting.
func (p *platform) messages(t *testing.T, topic string) []*kgo.Record {
	t.Helper()
	var all []*kgo.Record
	await(t, "topic "+topic+" can be read", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var err error
		all, err = readTopic(ctx, p.env["KAFKA_BROKERS"], "holdfast."+topic)
		return err == nil
	})
	return all
}

// readTopic reads all partitions up to their present ends.
func readTopic(ctx context.Context, brokers, topic string) ([]*kgo.Record, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(brokers, ",")...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	starts, err := admin.ListStartOffsets(ctx, topic)
	if err = errors.Join(err, ends.Error(), starts.Error()); err != nil {
		return nil, err
	}
	left := map[int32]bool{}
	ends.Each(func(end kadm.ListedOffset) {
		if start, _ := starts.Lookup(topic, end.Partition); start.Offset < end.Offset {
			left[end.Partition] = true
		}
	})
	var out []*kgo.Record
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		for _, r := range fetches.Records() {
			out = append(out, r)
			if end, _ := ends.Lookup(topic, r.Partition); r.Offset+1 >= end.Offset {
				delete(left, r.Partition)
			}
		}
	}
	return out, nil
}

// produce writes messages to the partitions that they name, without a service.
func (p *platform) produce(t *testing.T, topic string, messages ...*kgo.Record) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(p.env["KAFKA_BROKERS"]), kgo.DefaultProduceTopic("holdfast."+topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(t.Context(), messages...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// uuidOf returns the UUID of a public id, as stored in the databases.
func uuidOf(t *testing.T, id string) string {
	t.Helper()
	kind, _, _ := strings.Cut(id, "_")
	parse := map[string]func(string) ([16]byte, error){
		ids.CustomerPrefix{}.Prefix(): parseID[ids.CustomerPrefix], ids.EventPrefix{}.Prefix(): parseID[ids.EventPrefix],
		ids.LeadPrefix{}.Prefix(): parseID[ids.LeadPrefix], ids.QuotePrefix{}.Prefix(): parseID[ids.QuotePrefix],
		ids.InvoicePrefix{}.Prefix(): parseID[ids.InvoicePrefix], ids.UnitPrefix{}.Prefix(): parseID[ids.UnitPrefix],
	}[kind]
	if parse == nil {
		t.Fatalf("%s is of no kind that is known here", id)
	}
	raw, err := parse(id)
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	return fmt.Sprintf("%x", raw)
}

func parseID[P ids.Prefix](text string) ([16]byte, error) {
	id, err := ids.Parse[P](text)
	return id.UUID(), err
}
