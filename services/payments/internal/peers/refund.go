package peers

import (
	"context"
	"errors"
	"time"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/refund"

	"holdfast.dev/libs/caller"

	"holdfast.dev/services/payments/internal/domain"
)

// refundRow is the metadata key that marks a refund at Stripe as one of this platform.
const refundRow = "holdfast_refund"

func (s *Stripe) refunds(a domain.Account) refund.Client {
	return refund.Client{B: s.backend, Key: string(a.SecretKey)}
}

// CreateRefund creates the refund of an allocation, once for each attempt.
func (s *Stripe) CreateRefund(ctx context.Context, a domain.Account, r domain.Refund, part domain.Allocation) (domain.GatewayRefund, error) {
	amount, err := domain.ToStripe(part.Minor, r.Amount.Currency)
	if err != nil {
		return domain.GatewayRefund{}, err
	}
	key := part.CallKey()
	params := &stripe.RefundParams{
		Expand: stripe.StringSlice(ofRefund), Amount: &amount, PaymentIntent: stripe.String(string(part.Intent)), Reason: stripe.String(r.Reason),
		Metadata: map[string]string{
			refundRow: part.ID.String(), tenantKey: caller.FromContext(ctx).Tenant.String(), "refund_id": r.ID.String(),
			"booking_id": r.BookingID.String(),
		},
	}
	params.IdempotencyKey = &key
	return s.refund(ctx, a, func(ctx context.Context) (*stripe.Refund, error) {
		params.Context = ctx
		return s.refunds(a).New(params)
	})
}

// ReadRefund reads the current state of a refund.
func (s *Stripe) ReadRefund(ctx context.Context, a domain.Account, id string) (domain.GatewayRefund, error) {
	return s.refund(ctx, a, func(ctx context.Context) (*stripe.Refund, error) {
		params := &stripe.RefundParams{Expand: stripe.StringSlice(ofRefund)}
		params.Context = ctx
		return s.refunds(a).Get(id, params)
	})
}

// FindRefund searches for the refund of an allocation among those of its intent that were created since a time. It reads each page
// in a separate call with its own timeout.
func (s *Stripe) FindRefund(ctx context.Context, a domain.Account, part domain.Allocation, since time.Time) (found *domain.GatewayRefund, err error) {
	params := &stripe.RefundListParams{
		ListParams: stripe.ListParams{Single: true, Limit: stripe.Int64(pageSize)}, PaymentIntent: stripe.String(string(part.Intent)),
		CreatedRange: &stripe.RangeQueryParams{GreaterThanOrEqual: since.Add(-clockSkew).Unix()},
		Expand:       stripe.StringSlice([]string{"data.balance_transaction", "data.failure_balance_transaction"}),
	}
	for more := true; more && found == nil && err == nil; {
		found, err = do(ctx, s, a, func(ctx context.Context) (*domain.GatewayRefund, error) {
			params.Context = ctx
			i := s.refunds(a).List(params)
			list, meta, err := collect(i.Iter, i.Refund)
			more = meta != nil && meta.HasMore && len(list) > 0
			for _, r := range list {
				if r.Metadata[refundRow] == part.ID.String() {
					got, err := readRefund(r)
					return &got, err
				}
				params.StartingAfter = &r.ID
			}
			return nil, err
		})
	}
	return found, err
}

func (s *Stripe) refund(ctx context.Context, a domain.Account, call func(ctx context.Context) (*stripe.Refund, error)) (domain.GatewayRefund, error) {
	got, err := do(ctx, s, a, call)
	if err != nil {
		return domain.GatewayRefund{}, err
	}
	return readRefund(got)
}

// errNoRefund reports that the gateway's response cannot be a refund.
var errNoRefund = errors.New("the payment gateway's response is not a refund")

// readRefund converts a refund from the gateway's form.
func readRefund(r *stripe.Refund) (domain.GatewayRefund, error) {
	out := domain.GatewayRefund{ID: r.ID, Status: domain.RefundStatus(r.Status), Row: r.Metadata[refundRow], Movements: refundMovements(r)}
	if r.ID == "" || !domain.KnownRefundStatus(out.Status) {
		return domain.GatewayRefund{}, errNoRefund
	}
	if out.Status == domain.RefundFailed {
		reason := string(r.FailureReason)
		if reason == "" {
			reason = string(stripe.RefundFailureReasonUnknown)
		}
		out.Failure = &domain.Failure{Code: reason, Message: "The money could not be returned: " + reason + "."}
	}
	return out, nil
}
