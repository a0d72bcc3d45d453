package tools

import (
	"errors"
	"strings"
	"testing"
	"time"

	holdfast "holdfast.dev/sdks/go"
)

// TestLocal checks local times on the days on which the clocks change: a time that does not exist, and the first of a time that occurs twice.
func TestLocal(t *testing.T) {
	t.Parallel()
	tests := []struct{ zone, date, clock, want string }{
		{"America/New_York", "2031-07-05", "09:00", "2031-07-05T09:00:00-04:00"},
		{"America/New_York", "2031-03-09", "02:30", ""},
		{"America/New_York", "2031-03-09", "03:00", "2031-03-09T03:00:00-04:00"},
		{"America/New_York", "2031-11-02", "01:30", "2031-11-02T01:30:00-04:00"},
		{"America/New_York", "2031-11-02", "02:00", "2031-11-02T02:00:00-05:00"},
		{"Australia/Lord_Howe", "2031-04-06", "01:45", "2031-04-06T01:45:00+11:00"},
		{"Asia/Kathmandu", "2031-01-01", "00:00", "2031-01-01T00:00:00+05:45"},
		{"Pacific/Apia", "2031-01-01", "23:59", "2031-01-01T23:59:00+13:00"},
	}
	for _, test := range tests {
		zone, err := time.LoadLocation(test.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, ok, err := view{zone}.local(test.date, test.clock)
		if err != nil || ok != (test.want != "") || ok && at.Format(time.RFC3339) != test.want {
			t.Errorf("%s %s %s: %v %t %v, want %s", test.zone, test.date, test.clock, at, ok, err, test.want)
		}
	}
	for argument, given := range map[string][2]string{"date": {"5 July", "09:00"}, "start_time": {"2031-07-05", "9 am"}} {
		_, _, err := view{time.UTC}.local(given[0], given[1])
		if f := (*failure)(nil); !errors.As(err, &f) || f.Fields[argument] == "" {
			t.Errorf("%s: %v", argument, err)
		}
	}
}

// TestMoney checks amounts in currencies with two, zero and three decimals, in both directions.
func TestMoney(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]money{
		"25.00 USD": {2500, "USD"}, "0.05 USD": {5, "USD"}, "2500 JPY": {2500, "JPY"}, "2.500 KWD": {2500, "KWD"}, "999999999.99 USD": {99_999_999_999, "USD"},
	} {
		if got, err := want.MarshalYAML(); err != nil || got != text {
			t.Errorf("%v: %v %v, want %s", want, got, err, text)
		}
		decimal, code, _ := strings.Cut(text, " ")
		if got, err := minor("amount", decimal, code); err != nil || got != want.AmountMinor {
			t.Errorf("%s: %d %v", text, got, err)
		}
	}
	for _, wrong := range []string{"", "1,5", "1.234", "1e2", "+1", " 1", "1_0", ".5", "NaN", "99999999999999999999"} {
		if got, err := minor("amount", wrong, "USD"); err == nil {
			t.Errorf("%q is %d", wrong, got)
		}
	}
	if _, err := minor("amount", "1", "dollars"); err == nil {
		t.Error("dollars is a currency")
	}
	if got, err := minor("amount", "-1.00", "USD"); err != nil || got != -100 {
		t.Errorf("%d %v: the API rejects negative amounts where they are not allowed", got, err)
	}
}

// TestSlotText checks how slots are written for people.
func TestSlotText(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for want, times := range map[string][2]string{
		"09:00-11:00":            {"2031-07-05T07:00:00Z", "2031-07-05T09:00:00Z"},
		"22:00-02:00 (next day)": {"2031-07-05T20:00:00Z", "2031-07-06T00:00:00Z"},
		"whole day":              {"2031-07-04T22:00:00Z", "2031-07-05T22:00:00Z"},
	} {
		from, err := time.Parse(time.RFC3339, times[0])
		if err != nil {
			t.Fatal(err)
		}
		to, err := time.Parse(time.RFC3339, times[1])
		if err != nil {
			t.Fatal(err)
		}
		if got, err := (view{zone}).slot(holdfast.AvailabilitySlot{StartsAt: from, EndsAt: to}).MarshalYAML(); err != nil || got != want {
			t.Errorf("%v %v, want %s", got, err, want)
		}
	}
}
