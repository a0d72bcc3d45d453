package kafkax_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"holdfast.dev/libs/kafkatest"
	"holdfast.dev/libs/kafkax"
)

// Topics belong to the first installation that claims them. Another one is refused with what to do. After Kafka has lost its topics,
// they belong to the next one.
func TestTopicsOfAnotherInstallation(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		c := kafkax.Cluster{Brokers: brokers, Prefix: kafkatest.Prefix(t)}
		claim := func(service, id string) error { return kafkax.ClaimTopics(t.Context(), c, service, id) }
		for range 2 {
			if err := errors.Join(claim("bookings", "id-1"), claim("customers", "id-2")); err != nil {
				t.Fatal(err)
			}
		}
		err := claim("customers", "id-3")
		if !errors.Is(err, kafkax.ErrOtherInstallation) {
			t.Fatalf("another installation: %v", err)
		}
		for _, part := range []string{"topics " + c.Prefix + "*", "customers", "id-2", "not id-3", "set KAFKA_TOPIC_PREFIX"} {
			if !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v does not contain %s in one line", err, part)
			}
		}
		other := c
		other.Prefix = kafkatest.Prefix(t)
		if err := kafkax.ClaimTopics(t.Context(), other, "customers", "id-3"); err != nil {
			t.Errorf("with a prefix of its own: %v", err)
		}
		client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if _, err := kadm.NewClient(client).DeleteTopic(t.Context(), c.Prefix+kafkax.InstallationTopic); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the loss of the topic", func() bool { // Apache Kafka deletes it in the background
			err = claim("customers", "id-3")
			return !errors.Is(err, kafkax.ErrOtherInstallation)
		})
		if err != nil {
			t.Errorf("after the loss of the topic: %v", err)
		}
	})
}

// Of two installations that start at the same time, exactly one uses the topics.
func TestInstallationsClaimAtTheSameTime(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		c := kafkax.Cluster{Brokers: brokers, Prefix: kafkatest.Prefix(t)}
		ids := []string{"id-1", "id-2", "id-3", "id-4"}
		results := make([]error, len(ids))
		var all sync.WaitGroup
		for i, id := range ids {
			all.Go(func() { results[i] = kafkax.ClaimTopics(t.Context(), c, "bookings", id) })
		}
		all.Wait()
		accepted := 0
		for _, err := range results {
			if err == nil {
				accepted++
			} else if !errors.Is(err, kafkax.ErrOtherInstallation) {
				t.Error(err)
			}
		}
		if accepted != 1 {
			t.Errorf("%d installations use the topics: %v", accepted, results)
		}
	})
}
