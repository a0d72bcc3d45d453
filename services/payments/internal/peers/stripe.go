// Package peers calls the payment gateway, and the other services for what is to be paid.
package peers

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/account"
	"github.com/stripe/stripe-go/v76/paymentintent"

	"holdfast.dev/libs/caller"

	"holdfast.dev/services/payments/internal/domain"
)

const (
	maxAccounts = 10_000 // whose limits are kept at once
	pageSize    = 100    // of the lists that are searched
	clockSkew   = time.Minute
	busyPause   = time.Second // after an answer that does not say how long to wait
)

// Stripe calls Stripe's API with the keys of one account at a time. It implements app.Gateway. A call is not repeated: its
// outcome may be unknown, and the use case decides what follows.
type Stripe struct {
	backend  stripe.Backend
	timeout  time.Duration
	inFlight int
	limits   *otter.Cache[domain.AccountID, chan struct{}]
}

// NewStripe makes a Stripe at a base URL without /v1. inFlight bounds the calls of one account at once.
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
		limits: otter.Must(&otter.Options[domain.AccountID, chan struct{}]{MaximumSize: maxAccounts}),
	}
}

// do makes one call for an account when fewer than its limit are under way.
func do[T any](ctx context.Context, s *Stripe, a domain.Account, call func(ctx context.Context) (T, error)) (T, error) {
	var none T
	limit, err := s.limits.Get(ctx, a.ID, otter.LoaderFunc[domain.AccountID, chan struct{}](
		func(context.Context, domain.AccountID) (chan struct{}, error) {
			return make(chan struct{}, s.inFlight), nil
		}))
	if err != nil {
		return none, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	select {
	case limit <- struct{}{}:
		defer func() { <-limit }()
	case <-ctx.Done():
		return none, &domain.BusyError{RetryAfter: busyPause}
	}
	out, err := call(ctx)
	return out, outcome(err)
}

// outcome tells what an error of the library means for the effect of a call.
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
	case e.HTTPStatusCode >= http.StatusInternalServerError:
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

// Account asks for the account of a key, which proves the key.
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

// Create makes the intent of a row, once for each attempt.
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
			"holdfast_payment": p.ID.String(), "holdfast_tenant": c.Tenant.String(), "booking_id": p.BookingID.String(),
		},
	}
	params.IdempotencyKey = &key
	if !p.InvoiceID.IsZero() {
		params.Metadata["invoice_id"] = p.InvoiceID.String()
	}
	return s.snapshot(ctx, a, func(ctx context.Context) (*stripe.PaymentIntent, error) {
		params.Context = ctx
		return s.intents(a).New(params)
	})
}

// Read reads the present state of an intent.
func (s *Stripe) Read(ctx context.Context, a domain.Account, id domain.GatewayID) (domain.Snapshot, error) {
	return s.snapshot(ctx, a, func(ctx context.Context) (*stripe.PaymentIntent, error) {
		params := &stripe.PaymentIntentParams{}
		params.Context = ctx
		params.AddExpand("latest_charge")
		return s.intents(a).Get(string(id), params)
	})
}

// Cancel cancels an intent, once for each attempt.
func (s *Stripe) Cancel(ctx context.Context, a domain.Account, p domain.Intent) (domain.Snapshot, error) {
	return s.snapshot(ctx, a, func(ctx context.Context) (*stripe.PaymentIntent, error) {
		params := &stripe.PaymentIntentCancelParams{}
		params.Context = ctx
		params.AddExpand("latest_charge")
		return s.intents(a).Cancel(string(p.GatewayID), params)
	})
}

// Capture takes an authorised amount, once for each attempt.
func (s *Stripe) Capture(ctx context.Context, a domain.Account, p domain.Intent, minor int64) (domain.Snapshot, error) {
	amount, err := domain.ToStripe(minor, p.Amount.Currency)
	if err != nil {
		return domain.Snapshot{}, err
	}
	return s.snapshot(ctx, a, func(ctx context.Context) (*stripe.PaymentIntent, error) {
		params := &stripe.PaymentIntentCaptureParams{AmountToCapture: &amount}
		params.Context = ctx
		params.AddExpand("latest_charge")
		return s.intents(a).Capture(string(p.GatewayID), params)
	})
}

// Find looks for the intent of a row among those that were made since a time.
func (s *Stripe) Find(ctx context.Context, a domain.Account, row domain.IntentID, since time.Time) (*domain.Snapshot, error) {
	params := &stripe.PaymentIntentListParams{CreatedRange: &stripe.RangeQueryParams{GreaterThanOrEqual: since.Add(-clockSkew).Unix()}}
	params.Limit = stripe.Int64(pageSize)
	return do(ctx, s, a, func(ctx context.Context) (*domain.Snapshot, error) {
		params.Context = ctx
		list := s.intents(a).List(params)
		for list.Next() {
			if p := list.PaymentIntent(); p.Metadata["holdfast_payment"] == row.String() {
				found, err := read(p)
				return &found, err
			}
		}
		return nil, list.Err()
	})
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

// errUnknownState says that the gateway's answer cannot be an intent.
var errUnknownState = errors.New("the payment gateway's answer is not a payment intent")

// read makes a snapshot of an intent in the gateway's form.
func read(p *stripe.PaymentIntent) (domain.Snapshot, error) {
	status := domain.Status(p.Status)
	if p.ID == "" || !domain.KnownStatus(status) {
		return domain.Snapshot{}, errUnknownState
	}
	code := strings.ToUpper(string(p.Currency))
	out := domain.Snapshot{
		ID: domain.GatewayID(p.ID), Status: status, Amount: domain.FromStripe(p.Amount, code), Received: domain.FromStripe(p.AmountReceived, code),
		Capturable: domain.FromStripe(p.AmountCapturable, code), ClientSecret: domain.Secret(p.ClientSecret), Row: p.Metadata["holdfast_payment"],
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
		// What was authorised and not captured counts as refunded there, and was never taken.
		released := p.LatestCharge.AmountRefunded
		if p.LatestCharge.Captured {
			released = p.LatestCharge.Amount - p.LatestCharge.AmountCaptured
		}
		out.Refunded, out.Disputed = domain.FromStripe(max(0, p.LatestCharge.AmountRefunded-released), code), p.LatestCharge.Disputed
	}
	return out, nil
}
