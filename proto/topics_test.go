package proto_test

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"testing"

	"holdfast.dev/proto"
)

var topicConstant = regexp.MustCompile(`(?m)^const topic = "(.*)"$`)

// TestEachServiceWritesItsTopic checks that each service writes the topic in the list, which is the constant topic of its events.
func TestEachServiceWritesItsTopic(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range proto.Services() {
		// The path is not cleaned, so that go test runs again when the file changes.
		text, err := os.ReadFile(here + "/../services/" + s.Name + "/internal/app/events.go")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		var topics []string
		for _, m := range topicConstant.FindAllStringSubmatch(string(text), -1) {
			topics = append(topics, m[1])
		}
		if !slices.Equal(topics, s.Topics) {
			t.Errorf("%s: the constants topic of events.go are %q, and services.yaml lists %q", s.Name, topics, s.Topics)
		}
	}
}
