package peers

import (
	"context"
	"net/http"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/peer"
	"holdfast.dev/libs/usage"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
)

// measureTimeout is how long a service has for a part of the tenants. It counts for seconds.
const measureTimeout = 55 * time.Second

// Usage measures the usage of tenants in another service.
type Usage struct{ Client *peer.Client }

// Measure asks the service. It returns no rows if writes of the day can still come.
func (u *Usage) Measure(ctx context.Context, day time.Time, tenants []ids.Tenant) ([]domain.Usage, error) {
	in := internalapi.UsageQuery{Day: day.Format(time.DateOnly), Tenants: make([]string, len(tenants))}
	for i, tenant := range tenants {
		in.Tenants[i] = tenant.String()
	}
	var out internalapi.UsagePage
	if err := u.Client.Do(ctx, http.MethodPost, "/internal/v1/usage", in, &out, peer.Within(measureTimeout)); err != nil {
		return nil, err
	}
	return measured(out)
}

// Current asks the service for the usage of the caller's tenant on the running day.
func (u *Usage) Current(ctx context.Context, day time.Time) ([]domain.Usage, error) {
	var out internalapi.CurrentUsage
	if err := u.Client.Do(ctx, http.MethodGet, "/internal/v1/usage/current?day="+day.Format(time.DateOnly), nil, &out); err != nil {
		return nil, err
	}
	return measurements(out.Data)
}

// Work asks the service what waits for the caller's tenant.
func (u *Usage) Work(ctx context.Context) ([]domain.Waiting, error) {
	var out internalapi.WaitingWork
	if err := u.Client.Do(ctx, http.MethodGet, "/internal/v1/background-work", nil, &out); err != nil {
		return nil, err
	}
	return waiting(out.Data), nil
}

// OwnUsage measures the usage of tenants in this service.
type OwnUsage struct{ Source *usage.Source }

// Measure is like that of Usage.
func (u *OwnUsage) Measure(ctx context.Context, day time.Time, tenants []ids.Tenant) ([]domain.Usage, error) {
	out, err := u.Source.Measure(ctx, usage.DayOf(civil.DateOf(day)), tenants)
	if err != nil {
		return nil, err
	}
	return measured(out)
}

// Current is like that of Usage.
func (u *OwnUsage) Current(ctx context.Context, day time.Time) ([]domain.Usage, error) {
	data, err := u.Source.Current(ctx, usage.DayOf(civil.DateOf(day)))
	if err != nil {
		return nil, err
	}
	return measurements(data)
}

// Work is like that of Usage.
func (u *OwnUsage) Work(ctx context.Context) ([]domain.Waiting, error) {
	data, err := u.Source.Work(ctx)
	return waiting(data), err
}

func measured(page internalapi.UsagePage) ([]domain.Usage, error) {
	if !page.Settled {
		return nil, nil
	}
	return measurements(page.Data)
}

func measurements(data []internalapi.TenantUsage) ([]domain.Usage, error) {
	out := make([]domain.Usage, len(data))
	for i, m := range data {
		tenant, err := ids.Parse[ids.TenantPrefix](m.TenantID)
		if err != nil {
			return nil, err
		}
		out[i] = domain.Usage{
			TenantID: tenant, Livemode: m.Mode == string(caller.Live),
			RequestsRead: m.RequestsRead, RequestsWrite: m.RequestsWrite, RequestsExport: m.RequestsExport, RequestsStream: m.RequestsStream,
			RequestsRejected: m.RequestsRejected, Bookings: m.Bookings, Events: m.Events, Deliveries: m.Deliveries,
			StoredRows: m.StoredRows, StoredBytes: m.StoredBytes, RequestsUnauthenticated: m.RequestsUnauthenticated,
		}
		for _, v := range m.Payments {
			out[i].Payments = append(out[i].Payments, domain.Volume(v))
		}
	}
	return out, nil
}

func waiting(list []internalapi.WaitingItem) []domain.Waiting {
	out := make([]domain.Waiting, len(list))
	for i, w := range list {
		out[i] = domain.Waiting{Kind: w.Kind, Livemode: w.Mode == string(caller.Live), Count: w.Count, More: w.More, OldestAt: w.OldestAt}
	}
	return out
}
