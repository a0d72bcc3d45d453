package peers

import (
	"context"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/dispute"

	"holdfast.dev/services/payments/internal/domain"
)

// List reads the page behind after of what was made since a time, the newest first.
func (s *Stripe) List(ctx context.Context, a domain.Account, stage domain.Stage, since time.Time, after string) (domain.ListPage, error) {
	params := stripe.ListParams{Single: true, Limit: stripe.Int64(pageSize)}
	if after != "" {
		params.StartingAfter = &after
	}
	created := &stripe.RangeQueryParams{GreaterThanOrEqual: since.Unix()}
	return do(ctx, s, a, func(ctx context.Context) (domain.ListPage, error) {
		params.Context = ctx
		switch stage {
		case domain.StageRefunds:
			return s.listRefunds(a, &stripe.RefundListParams{ListParams: params, CreatedRange: created})
		case domain.StageDisputes:
			return s.listDisputes(a, &stripe.DisputeListParams{ListParams: params, CreatedRange: created})
		default:
			return s.listIntents(a, &stripe.PaymentIntentListParams{
				ListParams: params, CreatedRange: created, Expand: stripe.StringSlice([]string{"data.latest_charge"}),
			})
		}
	})
}

func (s *Stripe) listIntents(a domain.Account, params *stripe.PaymentIntentListParams) (page domain.ListPage, err error) {
	list := s.intents(a).List(params)
	for list.Next() {
		p := list.PaymentIntent()
		l := domain.Listed{ID: p.ID, Intent: domain.GatewayID(p.ID), Tenant: p.Metadata[tenantKey], Row: p.Metadata[intentRow]}
		if l.Row != "" {
			told, err := read(p)
			if err != nil {
				return domain.ListPage{}, err
			}
			l.Status, l.Received, l.Refunded, l.FailedCharge = string(told.Status), told.Received, told.Refunded, told.FailedCharge
			if c := p.LatestCharge; c != nil {
				l.Movements = joined(c.BalanceTransaction, c.FailureBalanceTransaction)
			}
		}
		page.Items, page.Last = append(page.Items, l), p.ID
	}
	page.More = list.Meta() != nil && list.Meta().HasMore
	return page, list.Err()
}

func (s *Stripe) listRefunds(a domain.Account, params *stripe.RefundListParams) (page domain.ListPage, err error) {
	list := s.refunds(a).List(params)
	for list.Next() {
		r := list.Refund()
		l := domain.Listed{
			ID: r.ID, Tenant: r.Metadata[tenantKey], Row: r.Metadata[refundRow], Status: string(r.Status),
			Movements: joined(r.BalanceTransaction, r.FailureBalanceTransaction),
		}
		if r.PaymentIntent != nil {
			l.Intent = domain.GatewayID(r.PaymentIntent.ID)
		}
		page.Items, page.Last = append(page.Items, l), r.ID
	}
	page.More = list.Meta() != nil && list.Meta().HasMore
	return page, list.Err()
}

func (s *Stripe) listDisputes(a domain.Account, params *stripe.DisputeListParams) (page domain.ListPage, err error) {
	list := dispute.Client{B: s.backend, Key: string(a.SecretKey)}.List(params)
	for list.Next() {
		d := list.Dispute()
		l := domain.Listed{ID: d.ID, Status: string(d.Status), Movements: joined(d.BalanceTransactions...)}
		if d.PaymentIntent != nil {
			l.Intent = domain.GatewayID(d.PaymentIntent.ID)
		}
		page.Items, page.Last = append(page.Items, l), d.ID
	}
	page.More = list.Meta() != nil && list.Meta().HasMore
	return page, list.Err()
}

// joined are the ids of balance transactions, separated by commas.
func joined(list ...*stripe.BalanceTransaction) string {
	ids := make([]string, 0, len(list))
	for _, b := range list {
		if b != nil {
			ids = append(ids, b.ID)
		}
	}
	return strings.Join(ids, ",")
}
