package api

import (
	"context"
	"fmt"
	"strings"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto"
	"holdfast.dev/proto/api"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// mountInternal registers the calls of other services, which proto/internal/bookings.yaml declares.
func (a *API) mountInternal(e *gin.Engine) error {
	return a.Server.MountInternal(e, proto.InternalBookings, map[string]httpx.Route{
		"listBookingsOfCustomer": {Handle: a.bookingsOfCustomer},
		"createLinkedBooking":    {Handle: a.createLinkedBooking},
		"lookupBooking":          {Handle: a.lookupBooking},
		"settleBooking":          {Handle: a.settleBooking},
		"lookupCatalogue":        {Handle: a.lookupCatalogue},
		"listUnitNames":          {Handle: a.listUnitNames},
		"priceLinkedBooking":     {Handle: a.priceBooking},

		"listCalendar":      {Handle: a.listCalendar},
		"listDueBookings":   {Handle: a.listDueBookings},
		"listStatistics":    {Handle: a.listStatistics},
		"listPackagePrices": {Handle: a.listPackagePrices},
	})
}

// createLinkedBooking needs no Idempotency-Key: the quote or the lead itself is the key, and it does not expire.
func (a *API) createLinkedBooking(c *gin.Context) error {
	body, err := httpx.Body[internalapi.LinkedBooking](c)
	if err != nil {
		return err
	}
	in, err := a.fromLinked(body)
	if err != nil {
		return err
	}
	b, err := a.Bookings.CreateLinked(c.Request.Context(), in)
	if err != nil {
		return err
	}
	return showBooking(c, b)
}

// fromLinked reads the ids of a linked booking, and reads the rest as a body of POST /bookings.
func (a *API) fromLinked(body internalapi.LinkedBooking) (in domain.LinkedInput, err error) {
	in = domain.LinkedInput{
		Origin:     domain.Origin{Total: body.TotalAmount, Deposit: body.DepositAmount, Currency: body.Currency},
		ValidUntil: body.ValidUntil,
	}
	if in.Taxes, err = fromTaxRows(body.TaxBreakdown); err != nil {
		return in, err
	}
	if in.Quote, err = optionalID[ids.QuotePrefix]("quote_id", body.QuoteID); err != nil {
		return in, err
	}
	if in.Lead, err = optionalID[ids.LeadPrefix]("lead_id", body.LeadID); err != nil {
		return in, err
	}
	op := a.Server.Contract.Operation("createBooking")
	sent, err := op.Parse(body.Booking)
	if err != nil {
		return in, err
	}
	if err := op.ValidateBody(sent, false); err != nil {
		return in, err
	}
	var create api.BookingCreate
	err = op.Decode(sent, &create)
	in.BookingInput = fromBookingCreate(create)
	return in, err
}

func fromTaxRows(list []internalapi.TaxRow) ([]money.TaxRow, error) {
	var out []money.TaxRow
	for i, r := range list {
		rate, err := money.ParseRate(r.Rate)
		if err != nil {
			return nil, apperr.Field(fmt.Sprintf("tax_breakdown.%d.rate", i), "Must be a percentage.")
		}
		out = append(out, money.TaxRow{Tax: money.Tax{Name: r.Name, Rate: rate}, Taxable: r.Taxable, Amount: r.Tax})
	}
	return out, nil
}

func optionalID[P ids.Prefix](name, text string) (id ids.ID[P], err error) {
	if text == "" {
		return id, nil
	}
	if id, err = ids.Parse[P](text); err != nil {
		var p P
		return id, apperr.Field(name, "Must be an ID that starts with %s_.", p.Prefix())
	}
	return id, nil
}

func (a *API) lookupBooking(c *gin.Context) error {
	ctx := c.Request.Context()
	id, err := ids.Parse[domain.BookingPrefix](c.Param("id"))
	if err != nil {
		return domain.ErrBookingNotFound
	}
	b, err := store.Booking(ctx, a.DB.Read(ctx), id)
	if err != nil {
		return err
	}
	return httpx.Resource(c, b.Version, view.Booking(b.At(a.now(ctx)), httpx.Mode(ctx)))
}

// settleBooking returns the data that determines which card payments of a booking are refunded automatically.
func (a *API) settleBooking(c *gin.Context) error {
	ctx := c.Request.Context()
	id, err := ids.Parse[domain.BookingPrefix](c.Param("id"))
	if err != nil {
		return domain.ErrBookingNotFound
	}
	b, err := store.Booking(ctx, a.DB.Read(ctx), id)
	if err != nil {
		return err
	}
	b = b.At(a.now(ctx))
	out := internalapi.BookingSettlement{Status: string(b.Status), Currency: b.Total.Currency, RefundDue: b.RefundDue}
	if b.Policy != nil {
		out.AutoRefund, out.RefundLatePayments = b.Policy.AutoRefund, b.Policy.RefundLatePayments
	}
	if b.Ended != nil {
		out.AccountVersion, out.AccountReturned = &b.Ended.Version, &b.Ended.Returned
	} else if at := b.EndedAt(); at != nil {
		out.EndedAt = new(at.UTC())
	}
	return rest.Object(c, out)
}

func showBooking(c *gin.Context, b domain.Booking) error {
	return httpx.Resource(c, b.Version, view.Booking(b, httpx.Mode(c.Request.Context())))
}

func (a *API) listUnitNames(c *gin.Context) error {
	ctx := c.Request.Context()
	body, err := httpx.Body[internalapi.UnitList](c)
	if err != nil {
		return err
	}
	units := make([]domain.UnitID, 0, len(body.UnitIDs))
	for _, text := range body.UnitIDs {
		if id, err := ids.Parse[domain.UnitPrefix](text); err == nil {
			units = append(units, id)
		}
	}
	names, err := store.Names(ctx, a.DB.Read(ctx), nil, units)
	if err != nil {
		return err
	}
	out := internalapi.UnitNames{Data: []internalapi.UnitName{}}
	for _, id := range units {
		if name, ok := names[id.UUID()]; ok {
			out.Data = append(out.Data, internalapi.UnitName{ID: id.String(), Name: name})
		}
	}
	return rest.Object(c, out)
}

// lookupCatalogue determines the kind by the prefix of the id. An id with an unknown prefix counts as an unknown service.
func (a *API) lookupCatalogue(c *gin.Context) error {
	ctx, text := c.Request.Context(), c.Param("id")
	out := internalapi.CatalogueItem{ID: text}
	var err error
	switch kind, _, _ := strings.Cut(text, "_"); kind {
	case domain.UnitPrefix{}.Prefix():
		var u domain.Unit
		u, err = lookup(ctx, a.units(), text)
		out.Version = u.Version
	case domain.PackagePrefix{}.Prefix():
		var p domain.Package
		p, err = lookup(ctx, a.packages(), text)
		out.Version, out.Details.ServiceID = p.Version, new(p.ServiceID.String())
	default:
		var s domain.Service
		s, err = lookup(ctx, a.services(), text)
		out.Version, out.Details.DefaultTaxes = s.Version, view.Taxes(s.DefaultTaxes)
	}
	if err != nil {
		return err
	}
	return rest.Object(c, out)
}

// lookup reads a resource. A resource of the other mode counts as unknown.
func lookup[ID, T any](ctx context.Context, r rest.Collection[ID, T], text string) (v T, err error) {
	id, err := r.Parse(text)
	if err != nil {
		return v, r.NotFound
	}
	return r.Load(ctx, r.DB.Read(ctx), id)
}

func (a *API) priceBooking(c *gin.Context) error {
	body, err := httpx.Body[internalapi.PriceQuery](c)
	if err != nil {
		return err
	}
	b, err := a.Bookings.Price(c.Request.Context(), domain.BookingInput{
		PackageID: patch.Value(body.PackageID), EventDate: patch.Value(body.EventDate), GuestCount: patch.FromPointer(body.GuestCount),
	})
	if err != nil {
		return err
	}
	taxes := make([]money.Tax, len(b.Taxes.Rows))
	for i, r := range b.Taxes.Rows {
		taxes[i] = r.Tax
	}
	return rest.Object(c, internalapi.PackagePrice{
		Name: b.Snapshot.Name, ServiceID: b.ServiceID.String(), Currency: b.Total.Currency,
		TotalAmount: b.Total.Minor, DepositAmount: b.Deposit.Minor, GuestCount: b.Snapshot.Guests,
		TaxBehavior: string(b.Taxes.Behavior), Taxes: *view.Taxes(&taxes),
	})
}
