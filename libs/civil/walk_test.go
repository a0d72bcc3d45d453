package civil_test

import (
	_ "embed"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/civil"
)

// zones contains the names in Go's embedded time zone database.
//
//go:embed testdata/zones.txt
var zones string

// TestEachDateOnce checks 40 years of every zone, and 12 years beyond the tables of the zones. Each date occurs once. It starts at
// the first instant with that date, where the previous date ends. A date without a start was skipped by the clock. TEST_SCALE=full
// checks all dates.
func TestEachDateOnce(t *testing.T) {
	t.Parallel()
	names := strings.Fields(zones)
	if len(names) < 590 {
		t.Fatalf("%d zones", len(names))
	}
	if os.Getenv("TEST_SCALE") != "full" {
		var some []string
		for i := 0; i < len(names); i += 8 {
			some = append(some, names[i])
		}
		names = append(some, "Pacific/Apia", "America/Santiago", "America/St_Johns", "Australia/Lord_Howe", "America/New_York", "Pacific/Kwajalein")
	}
	skipped := 0
	for _, name := range names {
		n, days := walk(t, name, date("1990-01-01"), date("2030-01-01"))
		if days+n != 14610 { // 40 years of 365 days and 10 leap days
			t.Errorf("%s: %d days and %d that were skipped", name, days, n)
		}
		skipped += n
		if n, days = walk(t, name, date("2037-01-01"), date("2049-01-01")); days != 4383 || n != 0 {
			t.Errorf("%s: %d days and %d that were skipped after 2036", name, days, n)
		}
	}
	if skipped == 0 {
		t.Error("no zone skipped a day, not even Apia")
	}
}

func walk(t *testing.T, name string, from, to civil.Date) (skipped, days int) {
	t.Helper()
	loc := zone(t, name)
	end, before := from.AddDays(-1).End(loc), from.AddDays(-1)
	for d := from; d.Before(to); d = d.AddDays(1) {
		start, ok := d.Start(loc)
		if !ok {
			skipped++
			continue
		}
		days++
		if !start.Equal(end) || civil.DateOf(start.In(loc)) != d {
			t.Fatalf("%s: %s starts at %s, %s ended at %s", name, d, start, before, end)
		}
		// The dates between the previous existing date and this one were on no clock.
		if last := civil.DateOf(start.Add(-time.Nanosecond).In(loc)); last != before {
			t.Fatalf("%s: %s comes after %s, want %s", name, d, last, before)
		}
		if end, before = d.End(loc), d; !start.Before(end) {
			t.Fatalf("%s: %s ends at %s, before it starts", name, d, end)
		}
	}
	return skipped, days
}
