package domain

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/lease"
	"holdfast.dev/libs/patch"
)

func TestQuoteTransitions(t *testing.T) {
	t.Parallel()
	want := map[QuoteStatus]string{
		QuoteDraft: "cancelled sent", QuoteSent: "accepted cancelled declined expired",
		QuoteAccepted: "", QuoteDeclined: "", QuoteExpired: "", QuoteCancelled: "",
	}
	if len(quoteTransitions) != len(want) {
		t.Errorf("%d states have a row", len(quoteTransitions))
	}
	for from, row := range quoteTransitions {
		var to []string
		for action, next := range row {
			to = append(to, string(next))
			if got, err := from.Next(action); err != nil || got != next {
				t.Errorf("%s by %s: %s, %v", from, action, got, err)
			}
		}
		slices.Sort(to)
		if strings.Join(to, " ") != want[from] || from.Final() != (len(row) == 0) {
			t.Errorf("%s leads to %v, final %v", from, to, from.Final())
		}
		for _, a := range []QuoteAction{SendQuote, AcceptQuote, DeclineQuote, ExpireQuote, CancelQuote} {
			if _, ok := row[a]; ok {
				continue
			}
			if got, err := from.Next(a); !errors.Is(err, ErrTransition) || got != from {
				t.Errorf("%s by %s: %s, %v", from, a, got, err)
			}
		}
	}
}

// TestQuoteDiagram checks that the diagram in the README equals the table.
func TestQuoteDiagram(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "### Quote\n")
	_, rest, _ = strings.Cut(rest, "stateDiagram-v2\n")
	diagram, _, _ := strings.Cut(rest, "```")
	var drawn []string
	for line := range strings.Lines(diagram) {
		if line = strings.TrimSpace(line); line != "" {
			drawn = append(drawn, line)
		}
	}
	want := []string{"[*] --> draft"}
	for from, row := range quoteTransitions {
		for action, to := range row {
			want = append(want, fmt.Sprintf("%s --> %s: %s", from, to, action))
		}
		if from.Final() {
			want = append(want, fmt.Sprintf("%s --> [*]", from))
		}
	}
	slices.Sort(drawn)
	slices.Sort(want)
	if !slices.Equal(drawn, want) {
		t.Errorf("the README draws\n%s\nthe table is\n%s", strings.Join(drawn, "\n"), strings.Join(want, "\n"))
	}
}

// TestAccepting checks that the numbers of attempts only increase, that the lease belongs to the last attempt, and that pauses
// double up to a limit.
func TestAccepting(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	first := Accepting{Lease: lease.Lease{Attempt: 7}}.Begin(now, "req_1", "key_1")
	if first.Attempt != 8 || !first.Held(now.Add(Lease-1)) || first.Held(now.Add(Lease)) || !first.Next.Equal(now.Add(Lease)) || first.Request != "req_1" {
		t.Errorf("first: %+v", first)
	}
	var pauses []time.Duration
	a := first
	for range 11 {
		a = a.Begin(now, "req_2", "key_2")
		pauses = append(pauses, a.Next.Sub(*a.Until))
	}
	if a.Attempt != 19 || a.Request != "req_1" {
		t.Errorf("resumed: %+v", a)
	}
	if want := "[1s 2s 4s 8s 16s 32s 1m4s 2m8s 4m16s 5m0s 5m0s]"; fmt.Sprint(pauses) != want {
		t.Errorf("pauses %v, want %s", pauses, want)
	}
	if end := a.End(); end.UnderWay() || end.Attempt != 19 || end.Request != "" || end.Begin(now, "req_3", "key_3").Request != "req_3" {
		t.Errorf("ended: %+v", end)
	}
}

// TestQuoteAt checks that a quote lapses at the instant of its expiry, only in the state sent, and not while it is being accepted.
func TestQuoteAt(t *testing.T) {
	t.Parallel()
	at := time.Unix(100, 0)
	for status := range quoteTransitions {
		q := Quote{Status: status, Version: 3, ExpiresAt: &at}
		if got := q.At(at.Add(-1)); got.Status != status || got.Version != 3 {
			t.Errorf("%s before: %+v", status, got)
		}
		want, version := status, int64(3)
		if status == QuoteSent {
			want, version = QuoteExpired, 4
		}
		if got := q.At(at); got.Status != want || got.Version != version {
			t.Errorf("%s: %s, version %d", status, got.Status, got.Version)
		}
		q.Accepting = q.Accepting.Begin(at, "", "")
		if got := q.At(at.Add(time.Hour)); got.Status != status {
			t.Errorf("%s amid an accept: %s", status, got.Status)
		}
	}
}

func TestQuoteTimes(t *testing.T) {
	t.Parallel()
	loc, err := civil.Location("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ day, start, end, field string }{
		{"2031-05-01", "", "", ""},
		{"2031-05-01", "10:00", "", ""},
		{"2031-05-01", "22:00", "02:00", ""},
		{"2031-05-01", "10:00", "10:00", ""},
		{"2031-05-01", "", "10:00", "event_end_time"},
		{"", "10:00", "", "event_date"},
		{"2031-03-09", "02:30", "", "event_start_time"}, // skipped by the clock
		{"2031-03-09", "01:00", "02:30", "event_end_time"},
		{"2031-03-08", "23:00", "02:30", "event_end_time"},
		{"1899-12-31", "", "", "event_date"},
		{"2031-02-30", "", "", "event_date"},
	} {
		in := QuoteInput{Start: given(tc.start), End: given(tc.end), EventDate: given(tc.day)}
		q := Quote{Loc: loc}
		if got := q.schedule(in); fieldOf(got) != tc.field {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}

func given(s string) patch.Field[string] {
	if s == "" {
		return patch.Field[string]{}
	}
	return patch.Value(s)
}

func fieldOf(err error) string {
	var e *apperr.Error
	if !errors.As(err, &e) || len(e.Fields) == 0 {
		return ""
	}
	return e.Fields[0].Field
}

// TestDefaultValidityOfAQuote checks that a quote without expires_at is valid until the end of a day in its time zone, never after its
// event begins.
func TestDefaultValidityOfAQuote(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2030, 3, 20, 15, 0, 0, 0, berlin)
	start := func(s string) *civil.Clock { return new(civil.Clock(s)) }
	for _, tc := range []struct {
		day   string
		start *civil.Clock
		want  string
	}{
		{"2030-12-01", nil, "2030-04-04 00:00"}, // summer time begins in between
		{"2030-04-04", nil, "2030-04-04 00:00"},
		{"2030-04-03", start("09:00"), "2030-04-03 00:00"},
		{"2030-03-21", nil, "2030-03-21 00:00"},
		{"2030-03-20", nil, "2030-03-21 00:00"},
		{"2030-03-20", start("18:00"), "2030-03-20 18:00"},
		{"2030-03-01", nil, "2030-04-04 00:00"}, // recorded afterwards
	} {
		day, err := civil.ParseDate(tc.day)
		if err != nil {
			t.Fatal(err)
		}
		q, err := Quote{Status: QuoteDraft, Loc: berlin, QuoteEvent: QuoteEvent{Day: &day, Start: tc.start}}.Send(now)
		if err != nil {
			t.Fatal(err)
		}
		if got := q.ExpiresAt.In(berlin).Format("2006-01-02 15:04"); got != tc.want {
			t.Errorf("event on %s: valid until %s, want %s", tc.day, got, tc.want)
		}
	}
}
