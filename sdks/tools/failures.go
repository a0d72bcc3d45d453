package tools

import (
	"context"
	"errors"
	"time"

	holdfast "holdfast.dev/sdks/go"
)

// The bounds of list_failures.
const (
	maxFailures = 10 // of each kind; half of it for the deliveries of an endpoint with a status
	failureDays = 7
)

// since are the arguments of list_failures.
type since struct {
	Days int `json:"days,omitempty" jsonschema:"how far to look back; default 7" min:"1" max:"30"`
}

// failures are what failed, newest first.
type failures struct {
	TimeZone  string            `json:"time_zone"`
	Since     *moment           `json:"since"`
	Payments  []failedPayment   `json:"payments"`
	Refunds   []failedRefund    `json:"refunds"`
	Endpoints []failingEndpoint `json:"webhook_endpoints"`
	Requests  []failedRequest   `json:"requests"`
	NotShown  []string          `json:"not_shown,omitempty"`

	limit int
}

// failedPayment is an attempt to pay by card that was refused.
type failedPayment struct {
	At         *moment `json:"at"`
	ID         string  `json:"payment_intent_id"`
	BookingID  string  `json:"booking_id"`
	Amount     money   `json:"amount"`
	Reason     string  `json:"reason"`
	Message    string  `json:"message,omitempty"`
	StatusThen string  `json:"status_then"`
}

// failedRefund is a refund that failed.
type failedRefund struct {
	At        *moment `json:"at"`
	ID        string  `json:"refund_id"`
	BookingID string  `json:"booking_id"`
	Amount    money   `json:"amount"`
	Message   string  `json:"message,omitempty"`
}

// failedRequest is a request to the API that was rejected or failed.
type failedRequest struct {
	At           *moment `json:"at"`
	ID           string  `json:"request_id"`
	Request      string  `json:"request"` // method and path
	Status       int     `json:"status"`
	Code         string  `json:"code,omitempty"`
	Param        string  `json:"param,omitempty"`
	CredentialID string  `json:"credential_id"`
	ObjectID     string  `json:"object_id,omitempty"`
}

// failingEndpoint is a webhook endpoint that is disabled or has failed deliveries.
type failingEndpoint struct {
	ID         string           `json:"endpoint_id"`
	URL        string           `json:"url"`
	Status     string           `json:"status"`
	Disabled   string           `json:"disabled_reason,omitempty"`
	Failures   int              `json:"consecutive_failures"`
	Warning    string           `json:"warning,omitempty"`
	Deliveries []failedDelivery `json:"deliveries,omitempty"`
}

// failedDelivery is a delivery that failed, or whose attempts have failed so far.
type failedDelivery struct {
	ID        string  `json:"delivery_id"`
	EventID   string  `json:"event_id"`
	EventType string  `json:"event_type"`
	Status    string  `json:"status"`
	Reason    string  `json:"failure_reason,omitempty"`
	Attempts  int     `json:"attempts"`
	LastAt    *moment `json:"last_attempt_at,omitempty"`
	LastError string  `json:"last_error,omitempty"`
	NextAt    *moment `json:"next_attempt_at,omitempty"`
}

func (t *toolbox) listFailures(ctx context.Context, in since) (any, error) {
	v, err := t.view(ctx)
	if err != nil {
		return nil, err
	}
	days := in.Days
	if days == 0 {
		days = failureDays
	}
	from := time.Now().AddDate(0, 0, -days)
	for limit := maxFailures; ; limit /= 2 {
		f := failures{TimeZone: v.name(), Since: v.at(&from), Payments: []failedPayment{}, Refunds: []failedRefund{}, Endpoints: []failingEndpoint{}, Requests: []failedRequest{}, limit: limit}
		if err := t.collect(ctx, v, &f, from); err != nil {
			return nil, err
		}
		if fits(f) || limit == 1 {
			return f, nil
		}
	}
}

// collect adds each kind of failures that the credential can read.
func (t *toolbox) collect(ctx context.Context, v view, f *failures, from time.Time) error {
	for _, kind := range []struct {
		name string
		add  func(context.Context, view, *failures, time.Time) error
	}{{"payments", t.failedPayments}, {"refunds", t.failedRefunds}, {"webhook_endpoints", t.failingEndpoints}, {"requests", t.failedRequests}} {
		err := kind.add(ctx, v, f, from)
		if api := (*holdfast.Error)(nil); errors.As(err, &api) && api.Code == holdfast.ErrInsufficientScope {
			f.NotShown = append(f.NotShown, kind.name+": "+api.Message)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// failedPayments adds the events of refused payments.
func (t *toolbox) failedPayments(ctx context.Context, v view, f *failures, from time.Time) error {
	page, err := t.client.Events.ListPage(ctx, holdfast.EventsListParams{Limit: f.limit, CreatedAfter: from, Type: []holdfast.EventType{holdfast.EventTypePaymentFailed}})
	if err != nil {
		return err
	}
	for _, event := range page.Data {
		e, ok := event.(*holdfast.PaymentFailedEvent)
		if !ok {
			continue
		}
		intent, at := e.Data.Object, e.CreatedAt
		p := failedPayment{At: v.at(&at), ID: intent.ID, BookingID: intent.BookingID, Amount: money{intent.Amount, intent.Currency}, StatusThen: string(intent.Status)}
		if intent.Failure != nil {
			p.Reason, p.Message = or(value(intent.Failure.DeclineCode), intent.Failure.Code), cut(intent.Failure.Message, shortText)
		}
		f.Payments = append(f.Payments, p)
	}
	f.more(page.HasMore, "payments")
	return nil
}

// failedRefunds adds the refunds that failed.
func (t *toolbox) failedRefunds(ctx context.Context, v view, f *failures, from time.Time) error {
	page, err := t.client.Refunds.ListPage(ctx, holdfast.RefundsListParams{Limit: f.limit, CreatedAfter: from, Status: []holdfast.RefundStatus{holdfast.RefundStatusFailed}})
	if err != nil {
		return err
	}
	for _, refund := range page.Data {
		r := failedRefund{At: v.at(&refund.CreatedAt), ID: refund.ID, BookingID: refund.BookingID, Amount: money{refund.Amount, refund.Currency}}
		for _, part := range refund.Allocations {
			if part.Failure != nil {
				r.Message = cut(part.Failure.Message, shortText)
			}
		}
		f.Refunds = append(f.Refunds, r)
	}
	f.more(page.HasMore, "refunds")
	return nil
}

// failingEndpoints adds the endpoints that are disabled or have failed deliveries.
func (t *toolbox) failingEndpoints(ctx context.Context, v view, f *failures, from time.Time) error {
	page, err := t.client.WebhookEndpoints.ListPage(ctx, holdfast.WebhookEndpointsListParams{Limit: f.limit})
	if err != nil {
		return err
	}
	for _, endpoint := range page.Data {
		e := failingEndpoint{
			ID: endpoint.ID, URL: cut(endpoint.URL, shortText), Status: string(endpoint.Status), Disabled: string(value(endpoint.DisabledReason)),
			Failures: endpoint.ConsecutiveFailures, Warning: cut(value(endpoint.Warning), shortText),
		}
		for _, status := range []holdfast.DeliveryStatus{holdfast.DeliveryStatusFailed, holdfast.DeliveryStatusPending} {
			deliveries, err := t.client.WebhookEndpoints.ListDeliveriesPage(ctx, endpoint.ID, holdfast.WebhookEndpointsListDeliveriesParams{
				Limit: max(1, f.limit/2), Status: status, CreatedAfter: from,
			})
			if err != nil {
				return err
			}
			for _, d := range deliveries.Data {
				if len(d.Attempts) > 0 || status == holdfast.DeliveryStatusFailed {
					e.Deliveries = append(e.Deliveries, v.delivery(d))
				}
			}
			f.more(deliveries.HasMore, string(status)+" deliveries of "+e.ID)
		}
		if endpoint.Status == holdfast.WebhookEndpointStatusDisabled || e.Failures > 0 || len(e.Deliveries) > 0 {
			f.Endpoints = append(f.Endpoints, e)
		}
	}
	f.more(page.HasMore, "webhook endpoints")
	return nil
}

// delivery returns a delivery with its last attempt.
func (v view) delivery(d holdfast.Delivery) failedDelivery {
	r := failedDelivery{
		ID: d.ID, EventID: d.EventID, EventType: d.EventType, Status: string(d.Status), Reason: string(value(d.FailureReason)), Attempts: len(d.Attempts),
		NextAt: v.at(d.NextAttemptAt),
	}
	if len(d.Attempts) > 0 {
		last := d.Attempts[len(d.Attempts)-1]
		r.LastAt, r.LastError = v.at(&last.At), cut(value(last.Error), shortText)
	}
	return r
}

// failedRequests adds the newest requests that failed in the platform, and those that it rejected.
func (t *toolbox) failedRequests(ctx context.Context, v view, f *failures, from time.Time) error {
	for _, class := range []string{"5xx", "4xx"} {
		page, err := t.client.RequestLogs.ListPage(ctx, holdfast.RequestLogsListParams{Limit: f.limit, CreatedAfter: from, Status: class})
		if err != nil {
			return err
		}
		for _, r := range page.Data {
			f.Requests = append(f.Requests, failedRequest{
				At: v.at(&r.CreatedAt), ID: r.ID, Request: cut(string(r.Method)+" "+r.Path, shortText), Status: r.Status, Code: value(r.Code),
				Param: cut(value(r.Param), lineText), CredentialID: r.CredentialID, ObjectID: value(r.ObjectID),
			})
		}
		f.more(page.HasMore, class+" requests")
	}
	return nil
}

// more notes that a section does not show everything.
func (f *failures) more(has bool, what string) {
	if has {
		f.NotShown = append(f.NotShown, "there are more "+what+": ask for fewer days, or see the console")
	}
}
