package kafkax

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/segmentio/kafka-go"
)

// InstallationTopic contains the ID of the installation that uses the topics with the cluster's prefix: the first message of each
// service counts. Messages are not deleted. A lost topic is created again by the next service that starts.
const InstallationTopic = "installation"

// forever is the retention of a topic whose messages are not deleted.
const forever = -time.Millisecond

// ErrOtherInstallation reports that another installation uses the topics with the cluster's prefix.
var ErrOtherInstallation = errors.New("another installation uses the same Kafka topics")

// ClaimTopics records that the topics with the cluster's prefix belong to the database of a service with the given ID, if they belong to
// none yet. It returns ErrOtherInstallation if they belong to another one. A user without the right to read or write InstallationTopic
// only causes a warning.
func ClaimTopics(ctx context.Context, c Cluster, service, id string) error {
	ctx, cancel := context.WithTimeout(ctx, topicTimeout)
	defer cancel()
	owner, err := c.claim(ctx, service, id)
	switch {
	case errors.Is(err, kafka.TopicAuthorizationFailed), errors.Is(err, kafka.ClusterAuthorizationFailed):
		slog.WarnContext(ctx, "cannot check whether another installation uses the same Kafka topics: the user has no right to create, read or write the topic",
			slog.String("topic", c.Prefix+InstallationTopic), slog.Any("error", err))
		return nil
	case err != nil:
		return fmt.Errorf("check the installation of the topics: %w", err)
	case owner != id:
		return fmt.Errorf("%[1]w: topics %[2]s* belong to the database of %[3]s with the ID %[4]s, not %[5]s; set KAFKA_TOPIC_PREFIX to a prefix of its own, or, if the other installation no longer exists, delete all topics %[2]s*",
			ErrOtherInstallation, c.Prefix, service, owner, id)
	}
	return nil
}

// claim returns the ID that a service's topics belong to. If it is none, it writes id. Two installations can write at the same
// time, so it reads the topic again.
func (c Cluster) claim(ctx context.Context, service, id string) (string, error) {
	if err := c.ensureInstallationTopic(ctx); err != nil {
		return "", err
	}
	owner, err := c.owner(ctx, service)
	if err != nil || owner != "" {
		return owner, err
	}
	w := NewWriter(c)
	defer func() { _ = w.Close() }()
	if err := w.Produce(ctx, Message{Topic: InstallationTopic, Key: service, Value: []byte(id)}); err != nil {
		return "", err
	}
	return c.owner(ctx, service)
}

// ensureInstallationTopic is EnsureTopics that returns an authorization error without waiting.
func (c Cluster) ensureInstallationTopic(ctx context.Context) error {
	client := c.client()
	defer client.close()
	name := c.Prefix + InstallationTopic
	found, err := client.topics(ctx, name)
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	if err := failure(found.Topics[0].ErrorCode); err != nil && !errors.Is(err, kafka.UnknownTopicOrPartition) {
		return fmt.Errorf("topic %s: %w", name, err)
	}
	return EnsureTopics(ctx, c, []Topic{{Name: InstallationTopic, Partitions: 1, Retention: forever}})
}

// owner returns the first ID that a service wrote, or "". The topic has a message for each service, so it is read from its beginning.
func (c Cluster) owner(ctx context.Context, service string) (string, error) {
	client := c.client()
	defer client.close()
	at := place{topic: c.Prefix + InstallationTopic}
	b, err := client.bounds(ctx, at.topic)
	if err != nil {
		return "", err
	}
	for next := b.starts[at]; next < b.ends[at]; {
		var list []*record
		if list, next, err = client.read(ctx, at, next, fetchBytes); err != nil {
			return "", err
		}
		for _, r := range list {
			if string(r.key) == service {
				return string(r.value), nil
			}
		}
	}
	return "", nil
}
