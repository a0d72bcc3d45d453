// Package view creates the public bodies of payment intents and refunds.
package view

import (
	"encoding/json"
	"time"

	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/ids"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/payments/internal/domain"
)

// Intent returns the public body of an intent in the caller's mode, without its client secret.
func Intent(p domain.Intent, mode api.Mode) api.PaymentIntent {
	return api.PaymentIntent{
		Id:               string(p.GatewayID),
		Object:           api.PaymentIntentObjectPaymentIntent,
		Status:           api.PaymentIntentStatus(p.Status),
		Amount:           p.Amount.Minor,
		Currency:         p.Amount.Currency,
		AmountReceived:   p.Received,
		AmountCapturable: p.Capturable,
		AmountRefunded:   p.Refunded,
		BookingId:        p.BookingID.String(),
		BookingStatus:    p.BookingStatus,
		InvoiceId:        idOrNull(p.InvoiceID),
		CustomerId:       idOrNull(p.CustomerID),
		ClientSecret:     api.Null[string](),
		CaptureMethod:    api.CaptureMethod(p.CaptureMethod),
		Description:      api.OrNull(p.Description),
		ReceiptEmail:     api.OrNull(p.ReceiptEmail),
		Failure:          failure(p.Failure),
		Disputed:         p.Disputed,
		Metadata:         orEmpty(p.Metadata),
		Mode:             mode,
		Version:          p.Version,
		CreatedAt:        p.CreatedAt.UTC(),
		UpdatedAt:        p.UpdatedAt.UTC(),
		SucceededAt:      timeOrNull(p.SucceededAt),
		CanceledAt:       timeOrNull(p.CanceledAt),
	}
}

// Erased is the remainder of an erased resource.
type Erased struct {
	ID     string `json:"id"`
	Object string `json:"object"`
	Erased bool   `json:"erased"`
}

// ErasedIntent returns the object of the event payment_intent.erased.
func ErasedIntent(id domain.GatewayID) Erased {
	return Erased{ID: string(id), Object: string(api.PaymentIntentObjectPaymentIntent), Erased: true}
}

// NewIntent is Intent with the client secret, for the response to the creation.
func NewIntent(p domain.Intent, mode api.Mode) api.PaymentIntent {
	body := Intent(p, mode)
	body.ClientSecret = nullable.NewNullableWithValue(string(p.ClientSecret))
	return body
}

func failure(f *domain.Failure) nullable.Nullable[api.PaymentFailure] {
	if f == nil {
		return api.Null[api.PaymentFailure]()
	}
	return nullable.NewNullableWithValue(api.PaymentFailure{Code: f.Code, DeclineCode: api.OrNull(f.DeclineCode), Message: f.Message})
}

func idOrNull[P ids.Prefix](id ids.ID[P]) nullable.Nullable[string] {
	if id.IsZero() {
		return api.Null[string]()
	}
	return nullable.NewNullableWithValue(id.String())
}

func timeOrNull(t *time.Time) nullable.Nullable[time.Time] {
	if t == nil {
		return api.Null[time.Time]()
	}
	return nullable.NewNullableWithValue(t.UTC())
}

func orEmpty(metadata json.RawMessage) json.RawMessage {
	if len(metadata) == 0 {
		return json.RawMessage(`{}`)
	}
	return metadata
}
