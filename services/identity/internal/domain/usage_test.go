package domain_test

import (
	"testing"
	"time"

	"holdfast.dev/libs/ids"

	"holdfast.dev/services/identity/internal/domain"
)

// The stored rows of a tenant are unknown if one service could not count them. The other measures are sums.
func TestUsageWithUnknownRows(t *testing.T) {
	t.Parallel()
	sum := domain.NoUsage(ids.New[ids.TenantPrefix](), true, time.Now())
	sum.Add(domain.Usage{Bookings: 1, StoredRows: new(int64(2)), StoredBytes: new(int64(3))})
	if *sum.StoredRows != 2 || *sum.StoredBytes != 3 {
		t.Errorf("%d rows of %d bytes", *sum.StoredRows, *sum.StoredBytes)
	}
	sum.Add(domain.Usage{Bookings: 4})
	sum.Add(domain.Usage{Events: 5, StoredRows: new(int64(6)), StoredBytes: new(int64(7))})
	if sum.StoredRows != nil || sum.StoredBytes != nil || sum.Bookings != 5 || sum.Events != 5 {
		t.Errorf("%+v", sum)
	}
}
