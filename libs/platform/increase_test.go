package platform_test

import (
	"io"
	"strconv"
	"strings"
	"testing"

	"holdfast.dev/libs/kafkatest"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/service"
)

// TestIncreaseWithoutOutbox checks that logs increases the topic of the gateway, which has no commands for topics.
func TestIncreaseWithoutOutbox(t *testing.T) { // not parallel: it sets the environment
	cluster := kafkax.Cluster{Brokers: kafkatest.Any(t), Prefix: kafkatest.Prefix(t)}
	t.Setenv("KAFKA_BROKERS", strings.Join(cluster.Brokers, ","))
	t.Setenv("KAFKA_TOPIC_PREFIX", cluster.Prefix)
	for _, step := range []struct {
		partitions int
		args       []string
	}{{2, []string{"topics"}}, {4, []string{"topics", "--increase"}}} {
		t.Setenv("KAFKA_PARTITIONS", strconv.Itoa(step.partitions))
		app := service.App{Name: "logs", Config: &struct{}{}, Commands: platform.Commands("logs", platform.Migrate(nil))}
		if err := service.Run(t.Context(), app, step.args, io.Discard); err != nil {
			t.Fatal(err)
		}
		if n, err := kafkax.Partitions(t.Context(), cluster, "requests"); n != step.partitions || err != nil {
			t.Errorf("after %v: %d partitions, want %d, %v", step.args, n, step.partitions, err)
		}
	}
}
