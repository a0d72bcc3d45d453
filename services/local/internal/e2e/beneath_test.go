package e2e

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

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
func (p *platform) messages(t *testing.T, topic string) []kafka.Message {
	t.Helper()
	var all []kafka.Message
	await(t, "topic "+topic+" can be read", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var err error
		all, err = readTopic(ctx, p.env["KAFKA_BROKERS"], "holdfast."+topic)
		return err == nil
	})
	return all
}

// readTopic reads the partitions in parallel.
func readTopic(ctx context.Context, broker, topic string) ([]kafka.Message, error) {
	conn, err := kafka.DialContext(ctx, "tcp", broker)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	end, _ := ctx.Deadline()
	if err := conn.SetDeadline(end); err != nil {
		return nil, err
	}
	partitions, err := conn.ReadPartitions(topic)
	if err != nil {
		return nil, err
	}
	found := make([][]kafka.Message, len(partitions))
	var all errgroup.Group
	for i, part := range partitions {
		all.Go(func() (err error) {
			found[i], err = readPartition(ctx, broker, topic, part.ID)
			return err
		})
	}
	err = all.Wait()
	return slices.Concat(found...), err
}

func readPartition(ctx context.Context, broker, topic string, partition int) ([]kafka.Message, error) {
	conn, err := kafka.DialLeader(ctx, "tcp", broker, topic, partition)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	end, _ := ctx.Deadline()
	if err := conn.SetDeadline(end); err != nil {
		return nil, err
	}
	first, last, err := conn.ReadOffsets()
	if err != nil {
		return nil, err
	}
	var out []kafka.Message
	for at := first; at < last; {
		if _, err := conn.Seek(at, kafka.SeekAbsolute); err != nil {
			return nil, err
		}
		batch := conn.ReadBatchWith(kafka.ReadBatchConfig{MinBytes: 1, MaxBytes: 4 << 20, MaxWait: time.Second})
		for {
			m, err := batch.ReadMessage()
			if err != nil { // the batch ended, or the next one returns the error
				break
			}
			at, out = m.Offset+1, append(out, m)
		}
		if err := batch.Close(); err != nil && ctx.Err() != nil {
			return nil, err
		}
	}
	return out, nil
}

// produce writes messages to a topic, without a service.
func (p *platform) produce(t *testing.T, topic string, messages ...kafka.Message) {
	t.Helper()
	w := &kafka.Writer{
		Addr: kafka.TCP(p.env["KAFKA_BROKERS"]), Topic: "holdfast." + topic, RequiredAcks: kafka.RequireAll, BatchTimeout: 5 * time.Millisecond,
		Balancer: kafka.BalancerFunc(func(m kafka.Message, _ ...int) int { return m.Partition }),
	}
	defer func() { _ = w.Close() }()
	if err := w.WriteMessages(t.Context(), messages...); err != nil {
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
		ids.InvoicePrefix{}.Prefix(): parseID[ids.InvoicePrefix],
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
