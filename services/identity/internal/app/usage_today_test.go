package app_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
)

// The usage of the running day is the sum of all services for the tenant and each mode. It records nothing, and the recorded day equals it
// if nothing was added.
func TestUsageToday(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.began(t, usageDay, 3)
	tenant := domain.Tenant{ID: w.first(t), State: domain.State{Status: domain.TenantActive}}
	noon := usageDay.Add(12 * time.Hour)
	m, _, _ := newMetering(w, noon)
	day, rows, err := m.UsageToday(t.Context(), tenant)
	if err != nil || !day.Equal(usageDay) || len(rows) != 2 || rows[0].Livemode || !rows[1].Livemode {
		t.Fatalf("%s %+v, %v", day, rows, err)
	}
	if n := w.count(t, `select count(*) from usage_days`) + w.count(t, `select count(*) from usage_collections where leased_until is not null or rows > 0`); n != 0 {
		t.Errorf("it has recorded %d rows", n)
	}
	m, _, _ = newMetering(w, usageDay.Add(24*time.Hour+domain.UsageSettles))
	if err := m.RecordUsage(t.Context()); err != nil {
		t.Fatal(err)
	}
	recorded, _, err := m.TenantUsage(t.Context(), tenant.ID, usageDay, usageDay, nil)
	if err != nil || len(recorded) != 2 {
		t.Fatalf("%+v, %v", recorded, err)
	}
	for i, u := range recorded {
		if *u.StoredRows != 5 || rows[i].StoredRows != nil || rows[i].StoredBytes != nil || !rows[i].MeasuredAt.Equal(noon) || rows[i].Bookings != number(u) {
			t.Errorf("%+v, and recorded %+v", rows[i], u)
		}
		u.StoredRows, u.StoredBytes, u.MeasuredAt = nil, nil, rows[i].MeasuredAt
		if got, want := fmt.Sprintf("%+v", rows[i]), fmt.Sprintf("%+v", u); got != want {
			t.Errorf("%s, and recorded %s", got, want)
		}
	}
}

// wrong is a service whose rows of the running day are changed.
type wrong struct {
	*source

	change func([]domain.Usage) []domain.Usage
}

func (s wrong) Current(ctx context.Context, day time.Time) ([]domain.Usage, error) {
	rows, err := s.source.Current(ctx, day)
	return s.change(rows), err
}

// A service that does not respond is named in an error instead of a sum without its part. Rows of another tenant, or of one mode only, are
// refused too, and so is a tenant whose rows are being erased.
func TestUsageTodayIsComplete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, first, second := newMetering(w, usageDay)
	tenant := domain.Tenant{ID: ids.New[ids.TenantPrefix](), State: domain.State{Status: domain.TenantSuspended}}
	boom := errors.New("away")
	second.err.Store(&boom)
	if _, rows, err := m.UsageToday(t.Context(), tenant); !errors.Is(err, apperr.ErrUnavailable) || !strings.Contains(err.Error(), "two") || strings.Contains(err.Error(), "one") || rows != nil {
		t.Errorf("%+v, %v", rows, err)
	}
	second.err.Store(nil)
	for name, change := range map[string]func([]domain.Usage) []domain.Usage{
		"another tenant": func(rows []domain.Usage) []domain.Usage { rows[0].TenantID = ids.New[ids.TenantPrefix](); return rows },
		"one mode":       func(rows []domain.Usage) []domain.Usage { return rows[:1] },
		"a mode twice":   func(rows []domain.Usage) []domain.Usage { return slices.Repeat(rows[:1], 2) },
		"no rows":        func([]domain.Usage) []domain.Usage { return nil },
	} {
		m.Sources = map[string]app.UsageSource{"one": wrong{first, change}, "two": second}
		if _, rows, err := m.UsageToday(t.Context(), tenant); err == nil || rows != nil {
			t.Errorf("%s: %+v", name, rows)
		}
	}
	tenant.Status = domain.TenantErasing
	if _, _, err := m.UsageToday(t.Context(), tenant); !errors.Is(err, domain.ErrUsageNotRecorded) {
		t.Errorf("erasing: %v", err)
	}
}
