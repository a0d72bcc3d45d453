package consume_test

import (
	"strings"
	"testing"

	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/memtest"
	eventsv1 "holdfast.dev/proto/events/v1"
)

// TestLargestBatchesFitIntoThePod checks that full batches of the largest events fit into a small pod, because a decoded event
// does not outlive its record. The test is not parallel, because it measures the memory of the whole process.
func TestLargestBatchesFitIntoThePod(t *testing.T) {
	const largest, limit = 640 << 10, 24 << 20
	w := newWorld(t)
	tenant := w.tenant(t)
	large := []byte(`{"notes":"` + strings.Repeat("x", largest/2) + `"}`)
	batch := func() (list []kafkax.Message) {
		for range kafkax.DefaultBatchBytes / largest {
			list = append(list, written(t, "customers", tenant.ID, func(e *eventsv1.Event) { e.Object, e.PreviousAttributes = large, large }))
		}
		return list
	}
	const batches = 5
	memtest.Under(t, limit, func() {
		for range batches {
			if err := w.HandleBatch(t.Context(), batch()); err != nil {
				t.Error(err)
			}
		}
	})
	if n := len(w.log(t, tenant)); n != batches*len(batch()) {
		t.Errorf("%d records", n)
	}
}
