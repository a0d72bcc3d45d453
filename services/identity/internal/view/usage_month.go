package view

import (
	"time"

	"holdfast.dev/proto/api"
	"holdfast.dev/proto/platformapi"

	"holdfast.dev/services/identity/internal/domain"
)

// UsageMonths renders months. through is the last recorded day.
func UsageMonths(list []domain.UsageMonth, through time.Time) []platformapi.UsageMonth {
	out := make([]platformapi.UsageMonth, len(list))
	for i, m := range list {
		u := Usage(m.Usage)
		out[i] = platformapi.UsageMonth{
			Object: "usage_month", TenantID: u.TenantID, Month: m.Day.Format("2006-01"), Mode: u.Mode, Days: m.Days, Complete: m.Complete(through),
			RequestsRead: u.RequestsRead, RequestsWrite: u.RequestsWrite, RequestsExport: u.RequestsExport, RequestsStream: u.RequestsStream,
			RequestsRejected: u.RequestsRejected, RequestsUnauthenticated: u.RequestsUnauthenticated, Bookings: u.Bookings, Events: u.Events,
			Deliveries: u.Deliveries, StoredRows: u.StoredRows, StoredBytes: u.StoredBytes, Payments: u.Payments, MeasuredAt: u.MeasuredAt,
		}
	}
	return out
}

// TenantUsageMonths renders the months of a tenant. through is the last recorded day, or nil.
func TenantUsageMonths(list []domain.UsageMonth, through *time.Time) platformapi.UsageMonthList {
	out := platformapi.UsageMonthList{Data: []platformapi.UsageMonth{}, RecordedThrough: api.Null[string]()}
	if through != nil {
		out.Data = UsageMonths(list, *through)
		out.RecordedThrough.Set(through.Format(time.DateOnly))
	}
	return out
}

// UsageMonthPage renders a page of a month. next is the cursor of the next page, or "".
func UsageMonthPage(list []platformapi.UsageMonth, next string) platformapi.UsageMonthPage {
	out := platformapi.UsageMonthPage{Data: list, HasMore: next != "", NextCursor: api.Null[string]()}
	if next != "" {
		out.NextCursor.Set(next)
	}
	return out
}
