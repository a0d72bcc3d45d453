package e2e

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"holdfast.dev/libs/outbox"

	"holdfast.dev/services/local/internal/history"
)

// eventLog follows the topics from now on.
type eventLog struct {
	mu       sync.Mutex
	byObject map[string][]history.Event
	byKey    map[string][]string // objects
	arrived  map[string]time.Time
}

// historyTopics are the topics of the objects' owners.
var historyTopics = []string{"bookings", "customers", "payments"}

func follow(t *testing.T, p *platform) *eventLog {
	t.Helper()
	l := &eventLog{byObject: map[string][]history.Event{}, byKey: map[string][]string{}, arrived: map[string]time.Time{}}
	var topics []string
	for _, topic := range historyTopics {
		topics = append(topics, "holdfast."+topic)
	}
	consumer, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(p.env["KAFKA_BROKERS"], ",")...), kgo.ConsumeTopics(topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(consumer.Close)
	go func() {
		for {
			fetches := consumer.PollFetches(t.Context())
			if t.Context().Err() != nil || fetches.IsClientClosed() {
				return
			}
			fetches.EachRecord(func(r *kgo.Record) {
				message, err := outbox.Decode(r.Value)
				if err != nil {
					t.Errorf("%s: %v", r.Topic, err)
					return
				}
				if message.GetType() == "customer.erased" { // a request to delete copies; customer.updated is the event
					return
				}
				e, err := history.EventOf(strings.TrimPrefix(r.Topic, "holdfast."), message)
				if err != nil {
					t.Error(err)
					return
				}
				l.add(e)
			})
		}
	}()
	return l
}

func (l *eventLog) add(e history.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byObject[e.Object] = append(l.byObject[e.Object], e)
	l.arrived[e.Object] = time.Now()
	if e.Key != "" {
		l.byKey[e.Key] = append(l.byKey[e.Key], e.Object)
	}
}

// take waits for the events of all versions that an epoch saw. It returns all events of its objects and of those that its operations
// changed, and forgets them, and what is too old to be of an epoch.
func (l *eventLog) take(e *epoch, patience time.Duration) (events []history.Event, took time.Duration) {
	begin := time.Now()
	for end := begin.Add(patience); !l.complete(e) && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
	}
	took = time.Since(begin)
	l.mu.Lock()
	defer l.mu.Unlock()
	selected := map[string]bool{}
	for id := range e.versions {
		selected[id] = true
	}
	for _, op := range e.ops {
		for _, id := range l.byKey[op.Key] {
			selected[id] = true
		}
		delete(l.byKey, op.Key)
	}
	for id := range selected {
		events = append(events, l.byObject[id]...)
	}
	for id, at := range l.arrived {
		if selected[id] || time.Since(at) > 10*time.Minute {
			for _, e := range l.byObject[id] {
				delete(l.byKey, e.Key)
			}
			delete(l.byObject, id)
			delete(l.arrived, id)
		}
	}
	return events, took
}

func (l *eventLog) complete(e *epoch) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, version := range e.versions {
		seen := map[int64]bool{}
		for _, event := range l.byObject[id] {
			seen[event.Version] = true
		}
		for v := int64(1); v <= version; v++ {
			if !seen[v] {
				return false
			}
		}
	}
	return true
}
