package domain_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"

	"holdfast.dev/services/bookings/internal/domain"
)

func id[P ids.Prefix]() ids.ID[P] { return ids.New[P]() }

func given(s string) patch.Field[string] { return patch.Value(s) }

// fieldOf returns the first field that an error names, or "" if there is none.
func fieldOf(err error) string {
	var e *apperr.Error
	if err == nil || !errors.As(err, &e) || len(e.Fields) == 0 {
		return ""
	}
	return e.Fields[0].Field
}

func TestCatalogueChecks(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err   error
		field string
	}{
		{pack(1000, domain.DepositPercentage, 10_000).Check(), ""},
		{pack(1000, domain.DepositPercentage, 10_001).Check(), "deposit_value"},
		{pack(1000, domain.DepositFlat, 10_001).Check(), ""}, // limited to the total
		{pack(1000, domain.DepositNone, 10_001).Check(), ""},
		{rule("2026-05-10", "2026-05-10", 1).Check(), ""},
		{rule("2026-05-10", "2026-05-09", 1).Check(), "date_to"},
		{rule("2026-12-30", "2026-01-02", 1, yearly).Check(), ""},
	} {
		if fieldOf(tc.err) != tc.field || (tc.err == nil) != (tc.field == "") {
			t.Errorf("%v, want %q", tc.err, tc.field)
		}
	}
}

// TestYearlyRangeBackwards checks that a yearly range can have its end before its start, in any years.
func TestYearlyRangeBackwards(t *testing.T) {
	t.Parallel()
	newYear := rule("2028-12-30", "2020-01-02", 11000, yearly)
	spring := rule("2028-03-01", "2020-03-10", 11000, yearly)
	for _, tc := range []struct {
		rule domain.HolidayRule
		day  string
		want bool
	}{
		{newYear, "2026-12-30", true},
		{newYear, "2026-01-02", true},
		{newYear, "2026-01-03", false},
		{newYear, "2026-12-29", false},
		{spring, "2026-03-01", true},
		{spring, "2026-03-10", true},
		{spring, "2026-03-11", false},
		{spring, "2026-02-28", false},
	} {
		if got := tc.rule.Covers(date(tc.day)); got != tc.want {
			t.Errorf("%s–%s on %s: %v", tc.rule.From, tc.rule.To, tc.day, got)
		}
	}
	// Its length decides ties in the same way as that of a rule with its start first.
	forwards := rule("2025-12-30", "2026-01-05", 12000, yearly)
	if first := domain.Matching([]domain.HolidayRule{forwards, newYear}, pack(1, domain.DepositNone, 0), date("2026-01-01"))[0]; first.ID != newYear.ID {
		t.Error("the shorter range does not decide")
	}
	month := rule("2020-12-20", "2020-01-20", 12000, yearly)
	if first := domain.Matching([]domain.HolidayRule{month, forwards}, pack(1, domain.DepositNone, 0), date("2026-01-01"))[0]; first.ID != forwards.ID {
		t.Error("a range written backwards counts as the shorter")
	}
}

func TestTarget(t *testing.T) {
	t.Parallel()
	service, packages := id[domain.ServicePrefix](), id[domain.PackagePrefix]().String()
	for _, text := range []string{`"all"`, `{"service_ids":["` + service.String() + `"]}`, `{"package_ids":["` + packages + `"]}`} {
		target, err := domain.ParseTarget([]byte(" " + text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if raw, err := json.Marshal(domain.HolidayRule{ServiceIDs: target.ServiceIDs, PackageIDs: target.PackageIDs}.Target()); err != nil || string(raw) != text {
			t.Errorf("%s became %s, %v", text, raw, err)
		}
	}
	for text, want := range map[string]string{
		`"some"`: "applies_to", `null`: "applies_to", `{}`: "applies_to", `[]`: "applies_to", ``: "applies_to",
		`{"service_ids":[1]}`: "applies_to", `{"service_ids":["x"],"package_ids":["x"]}`: "applies_to",
		`{"service_ids":[]}`: "applies_to.service_ids", `{"package_ids":[]}`: "applies_to.package_ids",
		`{"service_ids":["` + service.String() + `","` + packages + `"]}`: "applies_to.service_ids.1",
	} {
		if _, err := domain.ParseTarget([]byte(text)); fieldOf(err) != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestPolicyBounds checks that the longest notice in a policy does not overflow into the past.
func TestPolicyBounds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 10, 12, 0, 0, 0, time.UTC)
	day := domain.Schedule{Day: date("2199-12-31")}
	if err := (domain.Policy{MinNoticeMinutes: new(math.MaxInt32)}).Refuses(day, now, time.UTC); fieldOf(err) != "event_date" {
		t.Errorf("notice: %v", err)
	}
	if err := (domain.Policy{MaxAdvanceDays: new(math.MaxInt32)}).Refuses(day, now, time.UTC); err != nil {
		t.Errorf("advance: %v", err)
	}
}

func TestSkips(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text, zone string
		want       bool
	}{
		{"2026-03-08T02:30:00-05:00", "America/New_York", true},
		{"2026-03-08t02:30:00-04:00", "America/New_York", true},
		{"2026-03-08T02:30:00+01:00", "America/New_York", false}, // the local time of another place
		{"2026-03-08T01:59:00-05:00", "America/New_York", false},
		{"2026-03-08T03:00:00-04:00", "America/New_York", false},
		{"2026-03-29T01:30:00+00:00", "Europe/London", true},
		{"2026-03-29T01:30:00Z", "Europe/London", false},
		{"2026-09-06T00:30:00-04:00", "America/Santiago", true},
		{"2011-12-30T12:00:00-10:00", "Pacific/Apia", true},
		{"2026-10-04T02:15:00+10:30", "Australia/Lord_Howe", true},
		{"2026-03-08", "America/New_York", false},
	} {
		if got := civil.Skips(tc.text, zone(t, tc.zone)); got != tc.want {
			t.Errorf("%s in %s: %v", tc.text, tc.zone, got)
		}
	}
}
