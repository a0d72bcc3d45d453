// Package peers calls the payment gateway, and it calls the other services for the amounts to pay.
package peers

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/account"
	"github.com/stripe/stripe-go/v76/paymentintent"

	"holdfast.dev/libs/cache"
	"holdfast.dev/libs/caller"

	"holdfast.dev/services/payments/internal/domain"
)

const (
	maxAccounts = 10_000 // number of accounts whose circuits are in memory
	pageSize    = 100    // of lists that are searched
	clockSkew   = time.Minute
	busyPause   = time.Second // after a response that does not specify how long to wait

	// The metadata keys that mark an intent at Stripe as one of this platform.
	intentRow = "holdfast_payment"
	tenantKey = "holdfast_tenant"

	bookingKey = "booking_id"
	invoiceKey = "invoice_id"
)

// Stripe calls Stripe's API with the keys of one account at a time. It implements app.Gateway. It does not repeat a call: the
// outcome may be unknown, and the use case decides what to do.
type Stripe struct {
	backend  stripe.Backend
	timeout  time.Duration
	inFlight int
	circuits cache.Cache[domain.AccountID, *circuit]
}

// NewStripe returns a Stripe with a base URL without /v1. inFlight limits the parallel calls of one account.
func NewStripe(url string, timeout time.Duration, inFlight int) *Stripe {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library's
	transport.MaxIdleConnsPerHost = 4 * inFlight
	transport.MaxIdleConns = 0
	none := int64(0)
	return &Stripe{
		backend: stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
			URL: &url, HTTPClient: &http.Client{Transport: transport, Timeout: timeout}, MaxNetworkRetries: &none,
			LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
		}),
		timeout: timeout, inFlight: inFlight,
		circuits: cache.New[domain.AccountID](cache.Options[*circuit]{Size: maxAccounts}),
	}
}

// outcome converts an error of the library to one that shows whether the call had an effect.
func outcome(err error) error {
	var e *stripe.Error
	if err == nil || !errors.As(err, &e) {
		return err
	}
	switch {
	case e.HTTPStatusCode == http.StatusTooManyRequests:
		return &domain.BusyError{RetryAfter: retryAfter(e)}
	case e.HTTPStatusCode == http.StatusConflict:
		return err // the attempt is still running there
	case e.Type == stripe.ErrorTypeIdempotency:
		return &domain.BrokenError{Status: e.HTTPStatusCode} // another version of this service made it, with other parameters
	case e.HTTPStatusCode >= http.StatusInternalServerError, e.HTTPStatusCode == http.StatusRequestTimeout, e.Type == stripe.ErrorTypeAPI:
		return &domain.BrokenError{Status: e.HTTPStatusCode}
	case e.HTTPStatusCode == http.StatusUnauthorized, e.HTTPStatusCode == http.StatusForbidden:
		return &domain.RefusedError{Failure: domain.Failure{
			Code: "account_refused", Message: "The payment gateway refuses the operator's keys.",
		}, Unread: true}
	}
	return &domain.RefusedError{Failure: failure(e), Param: e.Param}
}

func failure(e *stripe.Error) domain.Failure {
	f := domain.Failure{Code: string(e.Code), Message: e.Msg}
	if f.Code == "" {
		f.Code = string(e.Type)
	}
	if e.DeclineCode != "" {
		text := string(e.DeclineCode)
		f.DeclineCode = &text
	}
	return f
}

func retryAfter(e *stripe.Error) time.Duration {
	if e.LastResponse != nil {
		if s, err := strconv.Atoi(e.LastResponse.Header.Get("Retry-After")); err == nil && s > 0 {
			return time.Duration(s) * time.Second
		}
	}
	return busyPause
}

// Account requests the account of a key. A response proves that the key works.
func (s *Stripe) Account(ctx context.Context, key domain.Secret) (id, country string, err error) {
	got, err := do(ctx, s, domain.Account{}, func(ctx context.Context) (*stripe.Account, error) {
		got := &stripe.Account{}
		params := &stripe.AccountParams{Params: stripe.Params{Context: ctx}}
		return got, account.Client{B: s.backend, Key: string(key)}.B.Call(http.MethodGet, "/v1/account", string(key), params, got)
	})
	if err != nil {
		return "", "", err
	}
	return got.ID, got.Country, nil
}

func (s *Stripe) intents(a domain.Account) paymentintent.Client {
	return paymentintent.Client{B: s.backend, Key: string(a.SecretKey)}
}

// Create creates the intent of a row, once for each attempt.
func (s *Stripe) Create(ctx context.Context, a domain.Account, p domain.Intent) (domain.Snapshot, error) {
	amount, err := domain.ToStripe(p.Amount.Minor, p.Amount.Currency)
	if err != nil {
		return domain.Snapshot{}, err
	}
	c := caller.FromContext(ctx)
	key := domain.CallKey(p.ID, "create", p.Call.Attempt)
	params := &stripe.PaymentIntentParams{
		Amount: &amount, Currency: stripe.String(strings.ToLower(p.Amount.Currency)), CaptureMethod: stripe.String(string(p.CaptureMethod)),
		Description: p.Description, ReceiptEmail: p.ReceiptEmail,
		AutomaticPaymentMethods: &stripe.PaymentIntentAutomaticPaymentMethodsParams{Enabled: stripe.Bool(true)},
		Metadata: map[string]string{
			intentRow: p.ID.String(), tenantKey: c.Tenant.String(), bookingKey: p.BookingID.String(),
		},
	}
	params.IdempotencyKey = &key
	if !p.InvoiceID.IsZero() {
		params.Metadata[invoiceKey] = p.InvoiceID.String()
	}
	return s.snapshot(ctx, a, func(ctx context.Context) (*stripe.PaymentIntent, error) {
		params.Context = ctx
		return s.intents(a).New(params)
	})
}

// Cancel cancels an intent, once for each attempt.
func (s *Stripe) Cancel(ctx context.Context, a domain.Account, p domain.Intent) (domain.Snapshot, error) {
	return s.snapshot(ctx, a, func(ctx context.Context) (*stripe.PaymentIntent, error) {
		params := &stripe.PaymentIntentCancelParams{}
		params.Context = ctx
		params.Expand = stripe.StringSlice(ofCharge)
		return s.intents(a).Cancel(string(p.GatewayID), params)
	})
}

// Capture captures an authorized amount, once for each attempt.
func (s *Stripe) Capture(ctx context.Context, a domain.Account, p domain.Intent, minor int64) (domain.Snapshot, error) {
	amount, err := domain.ToStripe(minor, p.Amount.Currency)
	if err != nil {
		return domain.Snapshot{}, err
	}
	return s.snapshot(ctx, a, func(ctx context.Context) (*stripe.PaymentIntent, error) {
		params := &stripe.PaymentIntentCaptureParams{AmountToCapture: &amount}
		params.Context = ctx
		params.Expand = stripe.StringSlice(ofCharge)
		return s.intents(a).Capture(string(p.GatewayID), params)
	})
}

// Find searches for the intent of a row among those created since a time. It reads each page in a separate call with its own
// timeout.
func (s *Stripe) Find(ctx context.Context, a domain.Account, row domain.IntentID, since time.Time) (found *domain.Snapshot, err error) {
	params := &stripe.PaymentIntentListParams{
		ListParams:   stripe.ListParams{Single: true, Limit: stripe.Int64(pageSize)},
		CreatedRange: &stripe.RangeQueryParams{GreaterThanOrEqual: since.Add(-clockSkew).Unix()},
	}
	for more := true; more && found == nil && err == nil; {
		found, err = do(ctx, s, a, func(ctx context.Context) (*domain.Snapshot, error) {
			params.Context = ctx
			list := s.intents(a).List(params)
			for list.Next() {
				p := list.PaymentIntent()
				if p.Metadata[intentRow] == row.String() {
					snapshot, err := read(p)
					return &snapshot, err
				}
				params.StartingAfter = &p.ID
			}
			more = list.Meta() != nil && list.Meta().HasMore
			return nil, list.Err()
		})
	}
	return found, err
}

func (s *Stripe) snapshot(
	ctx context.Context, a domain.Account, call func(ctx context.Context) (*stripe.PaymentIntent, error),
) (domain.Snapshot, error) {
	got, err := do(ctx, s, a, call)
	if err != nil {
		return domain.Snapshot{}, err
	}
	return read(got)
}

// errUnknownState reports that the gateway's response cannot be an intent.
var errUnknownState = errors.New("the payment gateway's response is not a payment intent")

// captureMethod returns the method of the contract. Stripe has more automatic ones.
func captureMethod(m stripe.PaymentIntentCaptureMethod) domain.CaptureMethod {
	if m == stripe.PaymentIntentCaptureMethodManual {
		return domain.CaptureManual
	}
	return domain.CaptureAutomatic
}

// unlessEmpty returns nil for an empty text.
func unlessEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// read converts an intent in the gateway's form to a snapshot.
func read(p *stripe.PaymentIntent) (domain.Snapshot, error) {
	status := domain.Status(p.Status)
	if p.ID == "" || !domain.KnownStatus(status) {
		return domain.Snapshot{}, errUnknownState
	}
	code := strings.ToUpper(string(p.Currency))
	out := domain.Snapshot{
		ID: domain.GatewayID(p.ID), Status: status, Amount: domain.FromStripe(p.Amount, code), Received: domain.FromStripe(p.AmountReceived, code),
		Capturable: domain.FromStripe(p.AmountCapturable, code), ClientSecret: domain.Secret(p.ClientSecret), Row: p.Metadata[intentRow],
		Origin: domain.Origin{
			Booking: p.Metadata[bookingKey], Invoice: p.Metadata[invoiceKey], Currency: code, CaptureMethod: captureMethod(p.CaptureMethod),
			Description: unlessEmpty(p.Description), ReceiptEmail: unlessEmpty(p.ReceiptEmail), CreatedAt: time.Unix(p.Created, 0).UTC(),
		},
	}
	if p.CanceledAt > 0 {
		at := time.Unix(p.CanceledAt, 0).UTC()
		out.CanceledAt = &at
	}
	if p.LastPaymentError != nil {
		f := failure(p.LastPaymentError)
		out.Failure = &f
		out.FailedCharge = p.LastPaymentError.ChargeID
	}
	if p.LatestCharge != nil {
		// Stripe counts an authorized amount that was not captured as refunded, but it was never charged.
		released := p.LatestCharge.AmountRefunded
		if p.LatestCharge.Captured {
			released = p.LatestCharge.Amount - p.LatestCharge.AmountCaptured
		}
		out.Refunded = domain.FromStripe(max(0, p.LatestCharge.AmountRefunded-released), code)
		out.Movements = chargeMovements(p.LatestCharge)
		if p.LatestCharge.Refunds != nil {
			for _, r := range p.LatestCharge.Refunds.Data {
				out.Movements = append(out.Movements, refundMovements(r)...)
			}
		}
	}
	return out, nil
}
