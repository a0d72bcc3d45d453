package peers

import (
	"context"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/charge"

	"holdfast.dev/services/payments/internal/domain"
)

// ofCharge are the parts of an intent's latest charge that an answer is to hold.
var ofCharge = []string{
	"latest_charge.balance_transaction", "latest_charge.failure_balance_transaction", "latest_charge.refunds.data.balance_transaction",
	"latest_charge.refunds.data.failure_balance_transaction",
}

// ofRefund are the parts of a refund that an answer is to hold.
var ofRefund = []string{"balance_transaction", "failure_balance_transaction"}

// Read reads the present state of an intent, and what row does not know yet of its charges, refunds and disputes.
func (s *Stripe) Read(ctx context.Context, a domain.Account, row domain.Intent) (domain.Snapshot, error) {
	got, err := do(ctx, s, a, func(ctx context.Context) (*stripe.PaymentIntent, error) {
		params := &stripe.PaymentIntentParams{}
		params.Context, params.Expand = ctx, stripe.StringSlice(ofCharge)
		return s.intents(a).Get(string(row.GatewayID), params)
	})
	if err != nil {
		return domain.Snapshot{}, err
	}
	told, err := read(got)
	if err != nil {
		return domain.Snapshot{}, err
	}
	c := got.LatestCharge
	if c != nil && c.Refunds != nil && c.Refunds.HasMore {
		if err := s.addRefunds(ctx, a, got, &told); err != nil {
			return domain.Snapshot{}, err
		}
	}
	if c != nil && (c.ID != row.Charge || told.FailedCharge != "" && told.FailedCharge != row.FailedCharge) {
		if err := s.addCharges(ctx, a, got, row.FailedCharge, &told); err != nil {
			return domain.Snapshot{}, err
		}
	}
	if row.EverDisputed || c != nil && c.Disputed {
		if err := s.addDisputes(ctx, a, got, &told); err != nil {
			return domain.Snapshot{}, err
		}
	}
	return told, nil
}

// addRefunds adds what all refunds of an intent have moved.
func (s *Stripe) addRefunds(ctx context.Context, a domain.Account, p *stripe.PaymentIntent, told *domain.Snapshot) error {
	_, err := do(ctx, s, a, func(ctx context.Context) (struct{}, error) {
		params := &stripe.RefundListParams{PaymentIntent: &p.ID, Expand: stripe.StringSlice([]string{"data.balance_transaction", "data.failure_balance_transaction"})}
		params.Context, params.Limit = ctx, stripe.Int64(pageSize)
		list := s.refunds(a).List(params)
		for list.Next() {
			told.Movements = append(told.Movements, refundMovements(list.Refund())...)
		}
		return struct{}{}, list.Err()
	})
	return err
}

// addCharges adds the failed charges of an intent behind one that was told, and what its charges have moved.
func (s *Stripe) addCharges(ctx context.Context, a domain.Account, p *stripe.PaymentIntent, last string, told *domain.Snapshot) error {
	var failed []domain.FailedCharge // the newest first
	_, err := do(ctx, s, a, func(ctx context.Context) (struct{}, error) {
		params := &stripe.ChargeListParams{PaymentIntent: &p.ID, Expand: stripe.StringSlice([]string{"data.balance_transaction", "data.failure_balance_transaction"})}
		params.Context, params.Limit = ctx, stripe.Int64(pageSize)
		list := charge.Client{B: s.backend, Key: string(a.SecretKey)}.List(params)
		for list.Next() && list.Charge().ID != last {
			c := list.Charge()
			if p.LatestCharge == nil || c.ID != p.LatestCharge.ID {
				told.Movements = append(told.Movements, chargeMovements(c)...)
			}
			switch {
			case c.Status != stripe.ChargeStatusFailed:
			case c.ID == told.FailedCharge && told.Failure != nil:
				failed = append(failed, domain.FailedCharge{ID: c.ID, Failure: *told.Failure})
			default:
				failed = append(failed, domain.FailedCharge{ID: c.ID, Failure: chargeFailure(c)})
			}
		}
		return struct{}{}, list.Err()
	})
	if err != nil {
		return err
	}
	for i := len(failed) - 1; i >= 0; i-- {
		told.Failed = append(told.Failed, failed[i])
	}
	told.ChargesRead = true
	return nil
}

// addDisputes adds the disputes of an intent and what they have moved.
func (s *Stripe) addDisputes(ctx context.Context, a domain.Account, p *stripe.PaymentIntent, told *domain.Snapshot) error {
	_, err := do(ctx, s, a, func(ctx context.Context) (struct{}, error) {
		params := &stripe.DisputeListParams{PaymentIntent: &p.ID}
		params.Context, params.Limit = ctx, stripe.Int64(pageSize)
		list := s.disputes(a).List(params)
		for list.Next() {
			d := list.Dispute()
			told.Disputes = append(told.Disputes, readDispute(d))
			told.Movements = append(told.Movements, disputeMovements(d)...)
		}
		return struct{}{}, list.Err()
	})
	told.DisputesRead = err == nil
	return err
}

// chargeFailure is why a charge has failed.
func chargeFailure(c *stripe.Charge) domain.Failure {
	f := domain.Failure{Code: c.FailureCode, Message: c.FailureMessage}
	if c.Outcome != nil && c.Outcome.Reason != "" && c.Outcome.Reason != c.FailureCode {
		f.DeclineCode = &c.Outcome.Reason
	}
	return f
}

// readDispute reads a dispute in the gateway's form.
func readDispute(d *stripe.Dispute) domain.Dispute {
	code := strings.ToUpper(string(d.Currency))
	out := domain.Dispute{ID: d.ID, Reason: string(d.Reason), Status: domain.DisputeStatus(d.Status), OpenedAt: time.Unix(d.Created, 0).UTC()}
	out.Amount.Minor, out.Amount.Currency = domain.FromStripe(d.Amount, code), code
	if d.Charge != nil {
		out.Charge = d.Charge.ID
	}
	if d.EvidenceDetails != nil && d.EvidenceDetails.DueBy > 0 {
		at := time.Unix(d.EvidenceDetails.DueBy, 0).UTC()
		out.DueBy = &at
	}
	return out
}

// movement reads a balance transaction; paid is the amount in the currency of the payment, whose sign is the transaction's.
func movement(kind domain.MovementKind, object string, b *stripe.BalanceTransaction, paid int64, currency stripe.Currency) []domain.Movement {
	if b == nil || b.Currency == "" { // none, or not expanded
		return nil
	}
	code, of := strings.ToUpper(string(b.Currency)), strings.ToUpper(string(currency))
	if b.Amount < 0 {
		paid = -paid
	}
	return []domain.Movement{{
		ID: b.ID, Kind: kind, Object: object, Amount: domain.FromStripe(b.Amount, code), Fee: domain.FromStripe(b.Fee, code), Currency: code,
		Paid: domain.FromStripe(paid, of), PaidCurrency: of, At: time.Unix(b.Created, 0).UTC(),
	}}
}

// chargeMovements is what a charge has moved. One that is not captured has moved nothing.
func chargeMovements(c *stripe.Charge) []domain.Movement {
	return append(movement(domain.MovedCharge, c.ID, c.BalanceTransaction, c.AmountCaptured, c.Currency),
		movement(domain.MovedChargeFailed, c.ID, c.FailureBalanceTransaction, c.AmountCaptured, c.Currency)...)
}

// refundMovements is what a refund has moved. The release of an authorised amount has moved nothing.
func refundMovements(r *stripe.Refund) []domain.Movement {
	return append(movement(domain.MovedRefund, r.ID, r.BalanceTransaction, r.Amount, r.Currency),
		movement(domain.MovedRefundFailed, r.ID, r.FailureBalanceTransaction, r.Amount, r.Currency)...)
}

func disputeMovements(d *stripe.Dispute) (list []domain.Movement) {
	for _, b := range d.BalanceTransactions {
		kind := domain.MovedDispute
		if b.Amount > 0 {
			kind = domain.MovedDisputeReversed
		}
		list = append(list, movement(kind, d.ID, b, d.Amount, d.Currency)...)
	}
	return list
}
