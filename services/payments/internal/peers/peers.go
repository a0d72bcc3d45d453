package peers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/peer"
	"holdfast.dev/proto/api"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/payments/internal/domain"
)

// Bookings calls the bookings service on behalf of the caller in the context. It implements app.BookingService.
type Bookings struct{ Client *peer.Client }

// Booking returns a booking with its price.
func (p *Bookings) Booking(ctx context.Context, id domain.BookingID) (domain.Booking, error) {
	var got api.Booking
	if err := p.Client.Do(ctx, http.MethodGet, "/internal/v1/bookings/"+id.String(), nil, &got); err != nil {
		return domain.Booking{}, notFound(err, domain.ErrBookingNotFound)
	}
	total := got.GrossAmount
	out := domain.Booking{
		ID: id, Status: string(got.Status), Version: got.Version, Total: money.Amount{Minor: total.Amount, Currency: total.Currency},
	}
	if text, err := got.CustomerId.Get(); err == nil {
		if out.CustomerID, err = ids.Parse[ids.CustomerPrefix](text); err != nil {
			return domain.Booking{}, fmt.Errorf("customer id %q: %w", text, err)
		}
	}
	return out, nil
}

// Settlement returns the facts that decide about the payments of a canceled or expired booking. It implements
// app.SettlementService.
func (p *Bookings) Settlement(ctx context.Context, id domain.BookingID) (domain.Settlement, error) {
	var got internalapi.BookingSettlement
	if err := p.Client.Do(ctx, http.MethodGet, "/internal/v1/bookings/"+id.String()+"/settlement", nil, &got); err != nil {
		return domain.Settlement{}, err
	}
	out := domain.Settlement{
		Lost: domain.Booking{Status: got.Status}.Lost(), AutoRefund: got.AutoRefund, RefundLatePayments: got.RefundLatePayments,
		Code: got.Currency, Ended: domain.Unknown, EndedAt: got.EndedAt,
	}
	if got.RefundDue != nil {
		out.Due = &money.Amount{Minor: *got.RefundDue, Currency: got.Currency}
	}
	if got.AccountVersion != nil && got.AccountReturned != nil {
		out.Ended = domain.AccountPoint{AccountVersion: *got.AccountVersion, AccountReturned: *got.AccountReturned}
	}
	return out, nil
}

// Customers calls the customers service on behalf of the caller in the context. It implements app.InvoiceService.
type Customers struct{ Client *peer.Client }

// Dues returns what is due on the invoices of a booking.
func (p *Customers) Dues(ctx context.Context, account domain.MoneyKey, version int64, named domain.InvoiceID) (domain.Dues, error) {
	path := "/internal/v1/bookings/" + account.Booking.String() + "/dues?currency=" + url.QueryEscape(account.Currency) + "&version=" + strconv.FormatInt(version, 10)
	if !named.IsZero() {
		path += "&invoice_id=" + named.String()
	}
	var got internalapi.BookingDues
	if err := p.Client.Do(ctx, http.MethodGet, path, nil, &got); err != nil {
		return domain.Dues{}, err
	}
	out := domain.Dues{Version: got.Version, Invoiced: got.Invoiced, Due: got.Due, Placed: got.Placed}
	if v := got.Invoice; v != nil {
		out.Invoice = &domain.Invoice{ID: named, Status: v.Status, Due: money.Amount{Minor: v.Due, Currency: v.Currency}}
		if v.BookingID != nil {
			booking, err := ids.Parse[ids.BookingPrefix](*v.BookingID)
			if err != nil {
				return domain.Dues{}, fmt.Errorf("booking id %q: %w", *v.BookingID, err)
			}
			out.Invoice.BookingID = booking
		}
	}
	return out, nil
}

// notFound replaces another service's 404 by the error that this service's use cases check for.
func notFound(err, missing error) error {
	var e *apperr.Error
	if errors.As(err, &e) && e.Kind == apperr.NotFound {
		return missing
	}
	return err
}
