package peers

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/dispute"
	"github.com/stripe/stripe-go/v76/event"

	"holdfast.dev/services/payments/internal/domain"
)

// List reads the page after the cursor, with the objects created since a time, newest first.
func (s *Stripe) List(ctx context.Context, a domain.Account, stage domain.Stage, since time.Time, after string) (domain.ListPage, error) {
	params := stripe.ListParams{Single: true, Limit: stripe.Int64(pageSize)}
	if after != "" {
		params.StartingAfter = &after
	}
	created := &stripe.RangeQueryParams{GreaterThanOrEqual: since.Unix()}
	return do(ctx, s, a, func(ctx context.Context) (domain.ListPage, error) {
		params.Context = ctx
		switch stage {
		case domain.StageEvents:
			return s.listEvents(a, &stripe.EventListParams{ListParams: params, CreatedRange: created, Types: stripe.StringSlice(comparedEvents)})
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

// Get reads an object of a kind by its id. It returns nil if the gateway does not know the object.
func (s *Stripe) Get(ctx context.Context, a domain.Account, kind domain.Stage, id string) (*domain.Listed, error) {
	found, err := do(ctx, s, a, func(ctx context.Context) (domain.Listed, error) {
		switch kind {
		case domain.StageRefunds:
			params := &stripe.RefundParams{}
			params.Context = ctx
			r, err := s.refunds(a).Get(id, params)
			return listedOf(r, err, refundListed)
		case domain.StageDisputes:
			params := &stripe.DisputeParams{}
			params.Context = ctx
			d, err := s.disputes(a).Get(id, params)
			return listedOf(d, err, disputeListed)
		default:
			params := &stripe.PaymentIntentParams{}
			params.Context, params.Expand = ctx, stripe.StringSlice([]string{"latest_charge"})
			p, err := s.intents(a).Get(id, params)
			return listedOf(p, err, intentListed)
		}
	})
	var refused *domain.RefusedError
	if errors.As(err, &refused) && refused.Code == string(stripe.ErrorCodeResourceMissing) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, err
	}
	return &found, nil
}

func listedOf[T any](object T, err error, as func(T) (domain.Listed, error)) (domain.Listed, error) {
	if err != nil {
		return domain.Listed{}, err
	}
	return as(object)
}

// iterator is a page of a list in Stripe's library.
type iterator interface {
	Next() bool
	Err() error
	Meta() *stripe.ListMeta
}

// pageOf reads a page. item returns the object to which Next has advanced.
func pageOf(list iterator, item func() (domain.Listed, error)) (page domain.ListPage, err error) {
	for list.Next() {
		l, err := item()
		if err != nil {
			return domain.ListPage{}, err
		}
		page.Items, page.Last = append(page.Items, l), l.ID
	}
	page.More = list.Meta() != nil && list.Meta().HasMore
	return page, list.Err()
}

// comparedEvents are the types of events that are compared: those with new information, and the creation of intents, because the
// response to it may be lost.
var comparedEvents = append([]string{string(stripe.EventTypePaymentIntentCreated)}, WebhookEvents...)

func (s *Stripe) listEvents(a domain.Account, params *stripe.EventListParams) (domain.ListPage, error) {
	list := event.Client{B: s.backend, Key: string(a.SecretKey)}.List(params)
	return pageOf(list, func() (domain.Listed, error) { return eventListed(list.Event()) })
}

// eventListed returns what an event is about. The creation of an intent is not new information, but it names the row.
func eventListed(e *stripe.Event) (domain.Listed, error) {
	l := domain.Listed{ID: e.ID, Status: string(e.Type)}
	if e.Data == nil {
		return l, nil
	}
	if e.Type == stripe.EventTypePaymentIntentCreated {
		var p struct {
			ID       string            `json:"id"`
			Metadata map[string]string `json:"metadata"`
		}
		err := json.Unmarshal(e.Data.Raw, &p)
		l.Intent, l.Tenant, l.Row = domain.GatewayID(p.ID), p.Metadata[tenantKey], p.Metadata[intentRow]
		return l, err
	}
	var err error
	l.Intent, l.Refund, err = intentOf(*e)
	return l, err
}

func (s *Stripe) listIntents(a domain.Account, params *stripe.PaymentIntentListParams) (domain.ListPage, error) {
	list := s.intents(a).List(params)
	return pageOf(list, func() (domain.Listed, error) { return intentListed(list.PaymentIntent()) })
}

func intentListed(p *stripe.PaymentIntent) (domain.Listed, error) {
	l := domain.Listed{ID: p.ID, Intent: domain.GatewayID(p.ID), Tenant: p.Metadata[tenantKey], Row: p.Metadata[intentRow]}
	if l.Row == "" {
		return l, nil
	}
	intent, err := read(p)
	if err != nil {
		return domain.Listed{}, err
	}
	l.Status, l.Received, l.Refunded, l.FailedCharge = string(intent.Status), intent.Received, intent.Refunded, intent.FailedCharge
	if c := p.LatestCharge; c != nil {
		l.Movements = joined(c.BalanceTransaction, c.FailureBalanceTransaction)
	}
	return l, nil
}

func (s *Stripe) listRefunds(a domain.Account, params *stripe.RefundListParams) (domain.ListPage, error) {
	list := s.refunds(a).List(params)
	return pageOf(list, func() (domain.Listed, error) { return refundListed(list.Refund()) })
}

func refundListed(r *stripe.Refund) (domain.Listed, error) {
	l := domain.Listed{
		ID: r.ID, Tenant: r.Metadata[tenantKey], Row: r.Metadata[refundRow], Status: string(r.Status),
		Movements: joined(r.BalanceTransaction, r.FailureBalanceTransaction),
	}
	if r.PaymentIntent != nil {
		l.Intent = domain.GatewayID(r.PaymentIntent.ID)
	}
	return l, nil
}

func (s *Stripe) disputes(a domain.Account) dispute.Client {
	return dispute.Client{B: s.backend, Key: string(a.SecretKey)}
}

func (s *Stripe) listDisputes(a domain.Account, params *stripe.DisputeListParams) (domain.ListPage, error) {
	list := s.disputes(a).List(params)
	return pageOf(list, func() (domain.Listed, error) { return disputeListed(list.Dispute()) })
}

func disputeListed(d *stripe.Dispute) (domain.Listed, error) {
	l := domain.Listed{ID: d.ID, Status: string(d.Status), Movements: joined(d.BalanceTransactions...)}
	if d.PaymentIntent != nil {
		l.Intent = domain.GatewayID(d.PaymentIntent.ID)
	}
	return l, nil
}

// joined returns the ids of balance transactions, separated by commas.
func joined(list ...*stripe.BalanceTransaction) string {
	ids := make([]string, 0, len(list))
	for _, b := range list {
		if b != nil {
			ids = append(ids, b.ID)
		}
	}
	return strings.Join(ids, ",")
}
