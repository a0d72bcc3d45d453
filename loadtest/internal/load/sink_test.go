package load

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestSinkMeasuresFromTheEvent checks that a delivery is measured from the creation of its event, not from that of its
// object, and that a repeated attempt is not counted.
func TestSinkMeasuresFromTheEvent(t *testing.T) {
	t.Parallel()
	s, err := Listen(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	begin := time.Now()
	body := `{"id":"evt_1","object":"event","type":"customer.created","data":{"object":{"created_at":"2020-01-01T00:00:00Z"}},"created_at":"` +
		begin.Add(-time.Second).Format(time.RFC3339Nano) + `"}`
	for _, attempt := range []string{"1", "2"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Service-Delivery-Attempt", attempt)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
	}
	sample, err := s.Await(t.Context(), begin, 1, time.Second)
	if took := sample.Percentile(50); err != nil || sample.Requests != 1 || took < time.Second || took > time.Minute {
		t.Errorf("%d deliveries after %v: %v", sample.Requests, took, err)
	}
}
