package domain_test

import (
	"slices"
	"testing"
	"time"

	"holdfast.dev/services/customers/internal/domain"
)

func place(t *testing.T, zone, now string) domain.DocumentContext {
	t.Helper()
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse(time.RFC3339, now)
	if err != nil {
		t.Fatal(err)
	}
	return domain.DocumentContext{Currency: "USD", Zone: loc, Now: at}
}

func TestOverdueIsByTheOperatorsDate(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		zone, due, now string
		want           bool
	}{
		{"UTC", "2030-05-01T00:00:00Z", "2030-05-01T23:59:59Z", false}, // due at some time today
		{"UTC", "2030-05-01T23:59:59Z", "2030-05-02T00:00:00Z", true},
		{"UTC", "2030-05-03T00:00:00Z", "2030-05-02T00:00:00Z", false},
		{"America/New_York", "2030-05-01T12:00:00Z", "2030-05-02T03:59:59Z", false}, // 23:59 on May 1
		{"America/New_York", "2030-05-01T12:00:00Z", "2030-05-02T04:00:00Z", true},
		{"Asia/Tokyo", "2030-05-01T12:00:00Z", "2030-05-01T15:00:00Z", true},
		{"America/Santiago", "2026-09-06T03:59:59Z", "2026-09-06T03:59:59Z", false},
		{"America/Santiago", "2026-09-06T03:59:59Z", "2026-09-06T04:00:00Z", true}, // the day begins at 01:00
	} {
		at := place(t, tc.zone, tc.now)
		due, err := time.Parse(time.RFC3339, tc.due)
		if err != nil {
			t.Fatal(err)
		}
		for _, status := range []domain.InvoiceStatus{
			domain.InvoiceDraft, domain.InvoiceOpen, domain.InvoicePartiallyPaid, domain.InvoicePaid, domain.InvoiceUncollectible, domain.InvoiceVoid,
		} {
			got := domain.Invoice{Status: status, DueAt: &due}.At(at).Overdue
			if want := tc.want && status.Owes(); got != want {
				t.Errorf("%s, due %s, now %s, %s: %v", tc.zone, tc.due, tc.now, status, got)
			}
		}
		if (domain.Invoice{Status: domain.InvoiceOpen}).At(at).Overdue {
			t.Error("overdue without a date")
		}
	}
}

func TestNumberPrefix(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		zone, now string
		info      domain.Invoicing
		want      string
	}{
		{"UTC", "2030-01-01T00:00:00Z", domain.Invoicing{Prefix: "INV-"}, "INV-"},
		{"UTC", "2030-01-01T00:00:00Z", domain.Invoicing{Prefix: "INV-", Year: true}, "INV-2030-"},
		{"America/New_York", "2030-01-01T04:59:59Z", domain.Invoicing{Prefix: "A", Year: true}, "A2029-"},
		{"Asia/Tokyo", "2029-12-31T15:00:00Z", domain.Invoicing{Year: true}, "2030-"},
	} {
		if got := tc.info.NumberPrefix(place(t, tc.zone, tc.now)); got != tc.want {
			t.Errorf("%+v: got %q", tc, got)
		}
	}
}

// TestInvoiceCounters checks that, for any prefix and year, the counter is among the possible counters of a number.
func TestInvoiceCounters(t *testing.T) {
	t.Parallel()
	for number, want := range map[string][]int64{
		"INV-000001": {1}, "INV-2030-000017": {17}, "INV-1234567": {234567, 1234567}, "R2000001": {1, 2000001}, "RE/20000017": {17, 20000017},
		"000000": {0}, "12345": {}, "INV-": {}, "": {}, "INV-000001x": {}, "ä000002": {2},
		"99999999999999999999": {
			999999, 9999999, 99999999, 999999999, 9999999999, 99999999999, 999999999999, 9999999999999, 99999999999999,
			999999999999999, 9999999999999999, 99999999999999999, 999999999999999999,
		},
	} {
		if got := domain.InvoiceCounters(number); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", number, got, want)
		}
	}
}
