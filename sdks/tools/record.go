package tools

import (
	"context"
	"strings"

	holdfast "holdfast.dev/sdks/go"
)

// reference are the arguments of get_record.
type reference struct {
	ID string `json:"id" jsonschema:"ID (bk_, cu_, ld_, qt_, inv_, srv_, un_, pkg_) or number of a booking, quote or invoice" min:"1" max:"100"`
}

// bookingRecord is a booking with its payments.
type bookingRecord struct {
	bookingView

	Payments     []paymentView `json:"payments,omitempty"`
	MorePayments bool          `json:"more_payments,omitempty"`
}

func (t *toolbox) getRecord(ctx context.Context, in reference) (any, error) {
	v, err := t.view(ctx)
	if err != nil {
		return nil, err
	}
	object, err := t.record(ctx, v, strings.TrimSpace(in.ID))
	if err != nil {
		return nil, err
	}
	return v.one(object), nil
}

// record returns the object with an ID or a number.
func (t *toolbox) record(ctx context.Context, v view, id string) (any, error) {
	prefix, _, isID := strings.Cut(id, "_")
	if !isID {
		return t.numbered(ctx, v, id)
	}
	switch prefix {
	case "bk":
		b, err := t.client.Bookings.Get(ctx, id, holdfast.BookingsGetParams{Expand: t.withCustomer()})
		if err != nil {
			return nil, err
		}
		return t.bookingRecord(ctx, v, *b)
	case "cu":
		return shown(v.customer)(t.client.Customers.Get(ctx, id))
	case "ld":
		return shown(func(l holdfast.Lead) leadView { return v.lead(l, longText) })(t.client.Leads.Get(ctx, id, holdfast.LeadsGetParams{}))
	case "qt":
		return shown(v.wholeQuote)(t.client.Quotes.Get(ctx, id, holdfast.QuotesGetParams{Expand: t.withQuoteCustomer()}))
	case "inv":
		return shown(v.wholeInvoice)(t.client.Invoices.Get(ctx, id, holdfast.InvoicesGetParams{Expand: t.withCustomer()}))
	case "srv":
		return shown(serviceOf)(t.client.Services.Get(ctx, id))
	case "un":
		return shown(unitOf)(t.client.Units.Get(ctx, id))
	case "pkg":
		return shown(packageOf)(t.client.Packages.Get(ctx, id))
	}
	return nil, invalid("id", "must start with bk_, cu_, ld_, qt_, inv_, srv_, un_ or pkg_, or be a number such as B-000001")
}

// shown returns a function that converts what a method of the SDK returned.
func shown[From, To any](convert func(From) To) func(*From, error) (any, error) {
	return func(object *From, err error) (any, error) {
		if err != nil {
			return nil, err
		}
		return convert(*object), nil
	}
}

// numbered returns the booking, quote or invoice with a number.
func (t *toolbox) numbered(ctx context.Context, v view, number string) (any, error) {
	switch strings.ToUpper(number[:min(2, len(number))]) {
	case "B-":
		page, err := t.client.Bookings.ListPage(ctx, holdfast.BookingsListParams{Number: number, Expand: t.withCustomer()})
		if err != nil {
			return nil, err
		}
		if len(page.Data) > 0 {
			return t.bookingRecord(ctx, v, page.Data[0])
		}
	case "Q-":
		page, err := t.client.Quotes.ListPage(ctx, holdfast.QuotesListParams{Number: number, Expand: t.withQuoteCustomer()})
		if err != nil {
			return nil, err
		}
		if len(page.Data) > 0 {
			return v.wholeQuote(page.Data[0]), nil
		}
	}
	page, err := t.client.Invoices.ListPage(ctx, holdfast.InvoicesListParams{Number: number, Expand: t.withCustomer()})
	if err != nil {
		return nil, err
	}
	if len(page.Data) > 0 {
		return v.wholeInvoice(page.Data[0]), nil
	}
	return nil, invalid("id", "no booking, quote or invoice has this number; search with list_bookings, list_quotes or list_invoices")
}

// bookingRecord returns a booking with its payments.
func (t *toolbox) bookingRecord(ctx context.Context, v view, b holdfast.Booking) (any, error) {
	page, err := t.client.Bookings.ListPaymentsPage(ctx, b.ID, holdfast.BookingsListPaymentsParams{Limit: maxPayments})
	if err != nil {
		return nil, err
	}
	r := bookingRecord{bookingView: v.booking(b, longText), MorePayments: page.HasMore}
	for _, p := range page.Data {
		r.Payments = append(r.Payments, paymentView{
			ID: p.ID, Amount: amount(p.Amount), Refunded: nonZero(p.AmountRefunded), Method: string(p.Source), PaidAt: v.at(p.PaidAt), ReversedAt: v.at(p.ReversedAt),
		})
	}
	return r, nil
}
