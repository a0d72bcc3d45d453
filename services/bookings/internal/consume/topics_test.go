package consume_test

import (
	"maps"
	"slices"
	"testing"

	"holdfast.dev/proto"

	"holdfast.dev/services/bookings/internal/consume"
)

// TestEachTopicHasAHandler checks that exactly the topics that proto/services.yaml lets the service read have a handler.
func TestEachTopicHasAHandler(t *testing.T) {
	t.Parallel()
	listed, _ := proto.ServiceNamed("bookings")
	reads := slices.Sorted(slices.Values(listed.Reads))
	if got := slices.Sorted(maps.Keys(consume.New(nil, nil, nil, nil))); len(reads) == 0 || !slices.Equal(got, reads) {
		t.Errorf("handlers of %v, and proto/services.yaml lists %v", got, reads)
	}
}
