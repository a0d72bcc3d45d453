package domain_test

import (
	"testing"
	"time"

	"holdfast.dev/services/logs/internal/domain"
)

func TestParseStatus(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]domain.StatusFilter{"": {}, "409": {Exact: 409}, "200": {Exact: 200}, "4xx": {Class: 4}, "5xx": {Class: 5}} {
		if got := domain.ParseStatus(text); got != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestStores(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_900_000_000, 0)
	for at, want := range map[time.Duration]bool{
		0: true, -time.Hour: true, -time.Hour - time.Second: false, domain.MaxAhead - time.Second: true, domain.MaxAhead: false,
	} {
		if domain.Stores(now.Add(at), now, time.Hour) != want {
			t.Errorf("%s: not %v", at, want)
		}
	}
}
