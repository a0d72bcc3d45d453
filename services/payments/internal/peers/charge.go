package peers

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/charge"

	"holdfast.dev/services/payments/internal/domain"
)

// ofCharge contains the parts of an intent's latest charge that a response must include.
var ofCharge = []string{
	"latest_charge.balance_transaction", "latest_charge.failure_balance_transaction", "latest_charge.refunds.data.balance_transaction",
	"latest_charge.refunds.data.failure_balance_transaction",
}

// ofRefund contains the parts of a refund that a response must include.
var ofRefund = []string{"balance_transaction", "failure_balance_transaction"}

// Read reads the current state of an intent. It also reads charges, refunds and disputes that row does not contain yet, at most one
// page of charges and one of refunds.
func (s *Stripe) Read(ctx context.Context, a domain.Account, row domain.Intent) (domain.Snapshot, error) {
	got, err := do(ctx, s, a, func(ctx context.Context) (*stripe.PaymentIntent, error) {
		params := &stripe.PaymentIntentParams{}
		params.Context, params.Expand = ctx, stripe.StringSlice(ofCharge)
		return s.intents(a).Get(string(row.GatewayID), params)
	})
	if err != nil {
		return domain.Snapshot{}, err
	}
	snapshot, err := read(got)
	if err != nil {
		return domain.Snapshot{}, err
	}
	c := got.LatestCharge
	if c == nil {
		return snapshot, nil
	}
	// The response contains the latest refunds, so only earlier ones can be missing.
	if c.Refunds != nil && c.Refunds.HasMore && (len(c.Refunds.Data) == 0 || c.Refunds.Data[0].ID != row.Refunds.To) {
		if err := s.addRefunds(ctx, a, got, row.Refunds, &snapshot); err != nil {
			return domain.Snapshot{}, err
		}
	}
	if c.ID != row.Charges.To {
		if err := s.addCharges(ctx, a, got, row.Charges, &snapshot); err != nil {
			return domain.Snapshot{}, err
		}
	}
	if !snapshot.More && (row.EverDisputed || c.Disputed) {
		if err := s.addDisputes(ctx, a, got, &snapshot); err != nil {
			return domain.Snapshot{}, err
		}
	}
	return snapshot, nil
}

// addRefunds adds the movements of the next page of refunds of an intent. Later changes of these refunds arrive as their own
// events.
func (s *Stripe) addRefunds(ctx context.Context, a domain.Account, p *stripe.PaymentIntent, from domain.Walk, snapshot *domain.Snapshot) error {
	list, walk, more, err := nextPage(ctx, s, a, from, func(page stripe.ListParams) ([]*stripe.Refund, *stripe.ListMeta, error) {
		i := s.refunds(a).List(&stripe.RefundListParams{
			ListParams: page, PaymentIntent: &p.ID, Expand: stripe.StringSlice([]string{"data.balance_transaction", "data.failure_balance_transaction"}),
		})
		return collect(i.Iter, i.Refund)
	}, func(r *stripe.Refund) string { return r.ID })
	if err != nil {
		return err
	}
	for _, r := range list {
		snapshot.Movements = append(snapshot.Movements, refundMovements(r)...)
	}
	snapshot.Refunds, snapshot.More = &walk, snapshot.More || more
	return nil
}

// addCharges adds the failed charges on the next page of charges of an intent, and the movements of all charges on the page. It
// stops before a charge that is still pending.
func (s *Stripe) addCharges(ctx context.Context, a domain.Account, p *stripe.PaymentIntent, from domain.Walk, snapshot *domain.Snapshot) error {
	list, walk, more, err := nextPage(ctx, s, a, from, func(page stripe.ListParams) ([]*stripe.Charge, *stripe.ListMeta, error) {
		i := charge.Client{B: s.backend, Key: string(a.SecretKey)}.List(&stripe.ChargeListParams{
			ListParams: page, PaymentIntent: &p.ID, Expand: stripe.StringSlice([]string{"data.balance_transaction", "data.failure_balance_transaction"}),
		})
		return collect(i.Iter, i.Charge)
	}, func(c *stripe.Charge) string { return c.ID })
	if err != nil {
		return err
	}
	for i, c := range list {
		if c.Status == stripe.ChargeStatusPending {
			walk, more = domain.Walk{To: from.To}, false
			if i > 0 {
				walk.To = list[i-1].ID
			}
			break
		}
		if p.LatestCharge == nil || c.ID != p.LatestCharge.ID {
			snapshot.Movements = append(snapshot.Movements, chargeMovements(c)...)
		}
		switch {
		case c.Status != stripe.ChargeStatusFailed:
		case c.ID == snapshot.FailedCharge && snapshot.Failure != nil:
			snapshot.Failed = append(snapshot.Failed, domain.FailedCharge{ID: c.ID, Failure: *snapshot.Failure})
		default:
			snapshot.Failed = append(snapshot.Failed, domain.FailedCharge{ID: c.ID, Failure: chargeFailure(c)})
		}
	}
	snapshot.Charges, snapshot.More = &walk, snapshot.More || more
	return nil
}

// collect reads the current page of an iterator.
func collect[T any](i *stripe.Iter, current func() T) (list []T, meta *stripe.ListMeta, err error) {
	for i.Next() {
		list = append(list, current())
	}
	return list, i.Meta(), i.Err()
}

// nextPage reads the next page of a walk in one call. It returns the objects of the page, oldest first, or none on the way back. It
// also reports whether more follow.
func nextPage[T any](
	ctx context.Context, s *Stripe, a domain.Account, from domain.Walk,
	list func(page stripe.ListParams) ([]T, *stripe.ListMeta, error), id func(T) string,
) (items []T, walk domain.Walk, more bool, err error) {
	walk = from
	meta := &stripe.ListMeta{}
	_, err = do(ctx, s, a, func(ctx context.Context) (none struct{}, err error) {
		page := stripe.ListParams{Context: ctx, Single: true, Limit: stripe.Int64(pageSize)}
		if from.To != "" {
			page.EndingBefore = &from.To
		} else if from.Back != "" {
			page.StartingAfter = &from.Back
		}
		items, meta, err = list(page)
		return none, err
	})
	switch {
	case err != nil || len(items) == 0:
		return nil, walk, false, err
	case from.To != "": // the library returns the oldest object first
		walk.To = id(items[len(items)-1])
		return items, walk, meta.HasMore, nil
	case meta.HasMore:
		walk.Back = id(items[len(items)-1])
		return nil, walk, true, nil
	default:
		slices.Reverse(items)
		return items, domain.Walk{To: id(items[len(items)-1])}, from.Back != "", nil
	}
}

// addDisputes adds the disputes of an intent and their movements, with one call per page. There are few disputes.
func (s *Stripe) addDisputes(ctx context.Context, a domain.Account, p *stripe.PaymentIntent, snapshot *domain.Snapshot) error {
	params := &stripe.DisputeListParams{ListParams: stripe.ListParams{Single: true, Limit: stripe.Int64(pageSize)}, PaymentIntent: &p.ID}
	for more := true; more; {
		list, err := do(ctx, s, a, func(ctx context.Context) (list []*stripe.Dispute, err error) {
			params.Context = ctx
			i := s.disputes(a).List(params)
			list, meta, err := collect(i.Iter, i.Dispute)
			more = meta != nil && meta.HasMore && len(list) > 0
			return list, err
		})
		if err != nil {
			return err
		}
		for _, d := range list {
			snapshot.Disputes = append(snapshot.Disputes, readDispute(d))
			snapshot.Movements = append(snapshot.Movements, disputeMovements(d)...)
			params.StartingAfter = &d.ID
		}
	}
	snapshot.DisputesRead = true
	return nil
}

// chargeFailure returns why a charge failed.
func chargeFailure(c *stripe.Charge) domain.Failure {
	f := domain.Failure{Code: c.FailureCode, Message: c.FailureMessage}
	if c.Outcome != nil && c.Outcome.Reason != "" && c.Outcome.Reason != c.FailureCode {
		f.DeclineCode = &c.Outcome.Reason
	}
	return f
}

// readDispute converts a dispute from the gateway's form.
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

// movement converts a balance transaction. paid is the amount in the currency of the payment, with the sign of the transaction.
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

// chargeMovements returns the movements of a charge. A charge that is not captured has none.
func chargeMovements(c *stripe.Charge) []domain.Movement {
	return append(movement(domain.MovedCharge, c.ID, c.BalanceTransaction, c.AmountCaptured, c.Currency),
		movement(domain.MovedChargeFailed, c.ID, c.FailureBalanceTransaction, c.AmountCaptured, c.Currency)...)
}

// refundMovements returns the movements of a refund. The release of an authorized amount has none.
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
