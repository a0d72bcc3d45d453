package api

import (
	"github.com/gin-gonic/gin"
	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
)

// quotes defines how the handlers read and show a quote.
func (a *API) quotes() rest.Collection[ids.ID[ids.QuotePrefix], domain.Quote] {
	return rest.Collection[ids.ID[ids.QuotePrefix], domain.Quote]{
		Parse: ids.Parse[ids.QuotePrefix],
		DB:    a.DB, Idempotency: a.Idempotency, Path: "quotes", NotFound: domain.ErrQuoteNotFound, Load: store.Quote,
		MaxWait: a.Quotes.MaxWait,
		Show: func(q domain.Quote, mode api.Mode) rest.Response {
			return rest.Response{ID: q.ID.String(), Version: q.Version, Body: view.Quote(q, mode)}
		},
	}
}

func (a *API) createQuote(c *gin.Context) error {
	return rest.Create(c, a.quotes(), fromQuoteCreate, a.Quotes.PrepareCreate, a.Quotes.Create)
}

func (a *API) updateQuote(c *gin.Context) error {
	return rest.Update(c, a.quotes(), fromQuoteUpdate, a.Quotes.PrepareUpdate, a.Quotes.Update)
}

func (a *API) deleteQuote(c *gin.Context) error { return rest.Delete(c, a.quotes(), a.Quotes.Delete) }

func (a *API) sendQuote(c *gin.Context) error { return rest.Act(c, a.quotes(), a.Quotes.Send) }

func (a *API) acceptQuote(c *gin.Context) error {
	id, err := a.quotes().ID(c)
	if err != nil {
		return err
	}
	return rest.Operate(c, a.quotes(), id, a.Quotes.Accept(c.Request.Context(), id, httpx.IfMatch(c)))
}

func (a *API) declineQuote(c *gin.Context) error {
	return rest.Update(c, a.quotes(), fromQuoteDecline, rest.None, a.Quotes.Decline)
}

func fromQuoteDecline(b api.QuoteDecline) *string { return patch.FromNullable(b.Reason).Pointer() }

func (a *API) cancelQuote(c *gin.Context) error {
	return rest.Act(c, a.quotes(), a.Quotes.Cancel)
}

func (a *API) getQuote(c *gin.Context) error {
	ctx := c.Request.Context()
	expand, err := quoteExpands(ctx, httpx.Query(c))
	if err != nil {
		return err
	}
	q, err := a.quotes().Read(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	q = q.At(a.now(ctx))
	bodies, err := a.quoteBodies(ctx, []domain.Quote{q}, expand)
	if err != nil {
		return err
	}
	return httpx.Resource(c, q.Version, bodies[0])
}

func fromQuoteCreate(b api.QuoteCreate) domain.QuoteInput {
	return fromQuoteUpdate(api.QuoteUpdate{
		CustomerId: &b.CustomerId, LeadId: b.LeadId, ServiceId: b.ServiceId, UnitId: b.UnitId, PackageId: b.PackageId,
		EventDate: b.EventDate, EventStartTime: b.EventStartTime, EventEndTime: b.EventEndTime, GuestCount: b.GuestCount, LineItems: b.LineItems,
		TaxBehavior: b.TaxBehavior, DiscountAmountTotal: b.DiscountAmountTotal,
		DepositAmount: b.DepositAmount, ExpiresAt: b.ExpiresAt, Notes: b.Notes, Terms: b.Terms, Metadata: b.Metadata,
	})
}

func fromQuoteUpdate(b api.QuoteUpdate) domain.QuoteInput {
	return domain.QuoteInput{
		PriceInput: domain.PriceInput{
			Lines: fromLines(b.LineItems), Behavior: patch.FromPointer((*domain.TaxBehavior)(b.TaxBehavior)),
			DiscountTotal: fromPrice(b.DiscountAmountTotal),
		},
		CustomerID: patch.FromPointer(b.CustomerId), LeadID: patch.FromNullable(b.LeadId), ServiceID: patch.FromNullable(b.ServiceId),
		UnitID: patch.FromNullable(b.UnitId), PackageID: patch.FromNullable(b.PackageId), EventDate: patch.FromNullable(b.EventDate),
		Start: patch.FromNullable(b.EventStartTime), End: patch.FromNullable(b.EventEndTime), Guests: patch.FromNullable(b.GuestCount),
		Deposit: fromPrice(b.DepositAmount), ExpiresAt: patch.FromNullable(b.ExpiresAt), Notes: patch.FromNullable(b.Notes), Terms: patch.FromNullable(b.Terms),
		Metadata: patch.FromNullable(b.Metadata),
	}
}

// fromPrice converts an amount that may be null.
func fromPrice(n nullable.Nullable[api.Price]) patch.Field[money.Amount] {
	f := patch.FromNullable(n)
	switch p := f.Pointer(); {
	case p != nil:
		return patch.Value(toAmount(*p))
	case f.Given():
		return patch.Null[money.Amount]()
	default:
		return patch.Field[money.Amount]{}
	}
}
