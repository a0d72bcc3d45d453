// Package kafkatest provides real brokers for tests: Apache Kafka, and the embedded broker for development.
package kafkatest

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"

	"holdfast.dev/libs/testservers"
)

// Brokers returns the brokers of TEST_KAFKA_BROKERS.
func Brokers(t testing.TB) []string {
	t.Helper()
	return brokers(t, "TEST_KAFKA_BROKERS")
}

// Any returns the brokers of one Kafka: Apache Kafka if it runs, otherwise the embedded broker.
func Any(t testing.TB) []string {
	t.Helper()
	if os.Getenv("TEST_KAFKA_BROKERS") == "" && os.Getenv("TEST_KAFKA_BROKERS_EMBEDDED") != "" {
		return brokers(t, "TEST_KAFKA_BROKERS_EMBEDDED")
	}
	return Brokers(t)
}

// Each runs the test on Apache Kafka and on the embedded broker in parallel. On a machine without a JDK, only the embedded broker
// runs and only TEST_KAFKA_BROKERS_EMBEDDED is set. If neither is set, the test runs on the broker that testservers starts.
func Each(t *testing.T, test func(t *testing.T, brokers []string)) {
	t.Helper()
	ran := false
	for name, variable := range map[string]string{"apache": "TEST_KAFKA_BROKERS", "embedded": "TEST_KAFKA_BROKERS_EMBEDDED"} {
		if os.Getenv(variable) == "" {
			continue
		}
		ran = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, brokers(t, variable))
		})
	}
	if !ran {
		test(t, Brokers(t))
	}
}

// Prefix returns a prefix of topics and groups that no other test uses.
func Prefix(t testing.TB) string {
	t.Helper()
	return "test." + strings.ToLower(rand.Text()) + "."
}

func brokers(t testing.TB, variable string) []string {
	t.Helper()
	return strings.Split(testservers.Getenv(t, variable), ",")
}
