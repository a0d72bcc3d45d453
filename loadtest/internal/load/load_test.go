package load

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestPercentileIsTheNearestRank(t *testing.T) {
	t.Parallel()
	ms := func(n ...int) (out []time.Duration) {
		for _, v := range n {
			out = append(out, time.Duration(v)*time.Millisecond)
		}
		return out
	}
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = 100 - i // deliberately unsorted
	}
	for _, c := range []struct {
		times []time.Duration
		p     float64
		want  int
	}{
		{nil, 50, 0},
		{ms(7), 0, 7},
		{ms(7), 99, 7},
		{ms(3, 1, 2), 50, 2},
		{ms(4, 1, 3, 2), 50, 2},
		{ms(hundred...), 50, 50},
		{ms(hundred...), 99, 99},
		{ms(hundred...), 99.1, 100},
		{ms(hundred...), 100, 100},
	} {
		if got := newSample(c.times, time.Second).Percentile(c.p); got != time.Duration(c.want)*time.Millisecond {
			t.Errorf("p%v of %d values is %v, want %d ms", c.p, len(c.times), got, c.want)
		}
	}
	if got := newSample(ms(1, 1, 1), 2*time.Second).Rate(); got != 1.5 {
		t.Errorf("rate %v, want 1.5", got)
	}
	both := newSample(ms(9, 1), time.Second).Join(newSample(ms(5, 3, 7, 2), 2*time.Second))
	if both.Rate() != 2 || both.Requests != 6 || both.Percentile(50) != 3*time.Millisecond || both.Percentile(100) != 9*time.Millisecond {
		t.Errorf("two runs as one: %+v", both)
	}
}

func TestScheduleIsConstantAndDoesNotDrift(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rate, n int
		want    time.Duration
	}{
		{1000, 0, 0},
		{1000, 1, time.Millisecond},
		{250, 3, 12 * time.Millisecond},
		{3, 3, time.Second}, // three thirds are a whole: rounding errors do not add up
		{3, 3_000_000, 1_000_000 * time.Second},
	} {
		if got := (Pace{Rate: c.rate}).due(c.n); got != c.want {
			t.Errorf("request %d of %d/s is due at %v, want %v", c.n, c.rate, got, c.want)
		}
	}
	s, err := Each(t.Context(), Pace{Conns: 1, Rate: 250}, 500*time.Millisecond, func(context.Context, int, int) error { return nil })
	if err != nil || s.Requests != 125 {
		t.Errorf("%d requests in 0.5 s, want 125: %v", s.Requests, err)
	}
}

// stalling responds immediately, except for its fifth response, which takes 300 ms.
func stalling(t *testing.T) Target {
	t.Helper()
	var seen atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if seen.Add(1) == 5 {
			time.Sleep(300 * time.Millisecond)
		}
	}))
	t.Cleanup(s.Close)
	get := Request(http.MethodGet, "/", nil, "")
	return Target{Addr: strings.TrimPrefix(s.URL, "http://"), Nth: func(int) []byte { return get }}
}

func TestOpenCountsAStallForAllThatWereDue(t *testing.T) {
	t.Parallel()
	s, err := Send(t.Context(), stalling(t), Pace{Conns: 1, Rate: 200}, 500*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if s.Requests != 100 {
		t.Errorf("%d requests, want 100", s.Requests)
	}
	// About 60 requests were due during the stall. The 40th slowest of 100 waited about 100 ms.
	if p := s.Percentile(60); p < 50*time.Millisecond {
		t.Errorf("p60 is %v: the requests that were due during the stall are not counted from their time", p)
	}
}

func TestOpenContinuesWhileAResponseIsLate(t *testing.T) {
	t.Parallel()
	s, err := Send(t.Context(), stalling(t), Pace{Conns: 8, Rate: 200}, 500*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if p := s.Percentile(50); p > 50*time.Millisecond {
		t.Errorf("p50 is %v: one late response delayed the others", p)
	}
	if p := s.Percentile(100); p < 300*time.Millisecond {
		t.Errorf("the slowest took %v, want 300 ms", p)
	}
}

func TestClosedWaitsForEachResponse(t *testing.T) {
	t.Parallel()
	s, err := Send(t.Context(), stalling(t), Pace{Conns: 1}, 400*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if late := s.Percentile(100); late < 300*time.Millisecond || s.Percentile(50) > 50*time.Millisecond {
		t.Errorf("slowest %v, p50 %v", late, s.Percentile(50))
	}
}

func TestUnexpectedStatusEndsTheRun(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	get := Request(http.MethodGet, "/", nil, "")
	target := Target{Addr: strings.TrimPrefix(s.URL, "http://"), Nth: func(int) []byte { return get }}
	_, err := Send(t.Context(), target, Pace{Conns: 2}, time.Minute)
	if err == nil || !strings.Contains(err.Error(), "status 404") {
		t.Errorf("error %v", err)
	}
	if _, err := Send(t.Context(), target, Pace{Conns: 2, Rate: 100}, 200*time.Millisecond); err == nil {
		t.Error("the open model takes any status")
	}
	target.Refused = http.StatusNotFound
	if _, err := Send(t.Context(), target, Pace{Conns: 2}, 100*time.Millisecond); err != nil {
		t.Errorf("a status that is expected: %v", err)
	}
}

func TestRequestOnTheWire(t *testing.T) {
	t.Parallel()
	got := string(Request("POST", "/x", []string{"A: b"}, `{}`))
	want := "POST /x HTTP/1.1\r\nHost: localhost\r\nA: b\r\nContent-Type: application/json\r\nPrefer: handling=strict\r\nContent-Length: 2\r\n\r\n{}"
	if got != want {
		t.Errorf("got %q", got)
	}
	form := string(Request("POST", "/x", []string{"Content-Type: application/x-www-form-urlencoded"}, "a=b"))
	if !strings.HasSuffix(form, "urlencoded\r\nContent-Length: 3\r\n\r\na=b") {
		t.Errorf("got %q", form)
	}
}
