package view

import (
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/proto/api"
	"holdfast.dev/proto/internalapi"
	"holdfast.dev/proto/platformapi"

	"holdfast.dev/services/identity/internal/domain"
)

// UsageRecorded renders the object of the event about a recorded day.
func UsageRecorded(c domain.UsageCollection, at time.Time) internalapi.UsageRecorded {
	return internalapi.UsageRecorded{Object: "usage_recorded", Day: c.Day.Format(time.DateOnly), Rows: c.Rows, RecordedAt: at.UTC()}
}

// Usage renders the usage of a tenant on a day.
func Usage(u domain.Usage) platformapi.Usage {
	out := platformapi.Usage{
		Object: "usage", TenantID: u.TenantID.String(), Day: u.Day.Format(time.DateOnly), Mode: platformapi.Mode(caller.ModeOf(u.Livemode)),
		RequestsRead: u.RequestsRead, RequestsWrite: u.RequestsWrite, RequestsExport: u.RequestsExport, RequestsStream: u.RequestsStream,
		RequestsRejected: u.RequestsRejected, Bookings: u.Bookings, Events: u.Events, Deliveries: u.Deliveries,
		StoredRows: api.OrNull(u.StoredRows), StoredBytes: api.OrNull(u.StoredBytes), Payments: make([]platformapi.PaymentVolume, len(u.Payments)), MeasuredAt: u.MeasuredAt.UTC(),
		RequestsUnauthenticated: u.RequestsUnauthenticated,
	}
	for i, v := range u.Payments {
		out.Payments[i] = platformapi.PaymentVolume(v)
	}
	return out
}

// Usages renders rows.
func Usages(list []domain.Usage) []platformapi.Usage {
	out := make([]platformapi.Usage, len(list))
	for i, u := range list {
		out[i] = Usage(u)
	}
	return out
}

// TenantUsage renders the usage of a tenant. through is the last recorded day, or nil.
func TenantUsage(list []domain.Usage, through *time.Time) platformapi.UsageList {
	out := platformapi.UsageList{Data: Usages(list), RecordedThrough: api.Null[string]()}
	if through != nil {
		out.RecordedThrough.Set(through.Format(time.DateOnly))
	}
	return out
}

// UsageToday renders the usage of a tenant on the running day.
func UsageToday(day time.Time, list []domain.Usage) platformapi.UsageToday {
	return platformapi.UsageToday{Day: day.Format(time.DateOnly), Data: Usages(list)}
}

// UsagePage renders a page of the usage of a day. next is the cursor of the next page, or "".
func UsagePage(list []domain.Usage, next string) platformapi.UsagePage {
	out := platformapi.UsagePage{Data: Usages(list), HasMore: next != "", NextCursor: api.Null[string]()}
	if next != "" {
		out.NextCursor.Set(next)
	}
	return out
}

// BackgroundWork renders what waits for a tenant. services are the names in work, in order.
func BackgroundWork(services []string, work map[string][]domain.Waiting, unavailable []string) platformapi.BackgroundWork {
	out := platformapi.BackgroundWork{Object: "background_work", Data: []platformapi.WaitingItem{}, Unavailable: append([]string{}, unavailable...)}
	for _, service := range services {
		for _, w := range work[service] {
			out.Data = append(out.Data, platformapi.WaitingItem{
				Service: service, Kind: w.Kind, Mode: platformapi.Mode(caller.ModeOf(w.Livemode)), Count: w.Count, More: w.More, OldestAt: api.OrNull(utc(w.OldestAt)),
			})
		}
	}
	return out
}
