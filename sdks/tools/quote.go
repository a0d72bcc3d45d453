package tools

import (
	"context"
	"fmt"
	"strings"

	holdfast "holdfast.dev/sdks/go"
)

// quoteView is a quote.
type quoteView struct {
	ID         string        `json:"id"`
	Number     string        `json:"number"`
	Status     string        `json:"status"`
	CustomerID string        `json:"customer_id,omitempty"`
	Customer   *customerView `json:"customer,omitempty"`
	LeadID     string        `json:"lead_id,omitempty"`
	Date       string        `json:"date,omitempty"`
	StartTime  string        `json:"start_time,omitempty"`
	EndTime    string        `json:"end_time,omitempty"`
	GuestCount int           `json:"guest_count,omitempty"`
	UnitID     string        `json:"unit_id,omitempty"`
	ServiceID  string        `json:"service_id,omitempty"`
	PackageID  string        `json:"package_id,omitempty"`
	Lines      []lineView    `json:"lines,omitempty"`
	OmitsLines int           `json:"lines_omitted,omitempty"`
	Total      money         `json:"total"`
	Deposit    money         `json:"deposit"`
	ExpiresAt  *moment       `json:"expires_at,omitempty"`
	BookingID  string        `json:"booking_id,omitempty"`
	InvoiceIDs []string      `json:"invoice_ids,omitempty"`
	Declined   string        `json:"decline_reason,omitempty"`
	Notes      string        `json:"notes,omitempty"`
	Terms      string        `json:"terms,omitempty"`
	Version    int64         `json:"version"`
	CreatedAt  *moment       `json:"created_at"`
}

// lineView is a line of a quote or an invoice.
type lineView struct {
	Description string `json:"description"`
	Quantity    int64  `json:"quantity"`
	UnitPrice   money  `json:"unit_price"`
	Discount    *money `json:"discount,omitempty"`
	Taxes       string `json:"taxes,omitempty"` // such as "GST 5%, QST 9.975%"
}

// The rows of a document that a result shows.
const (
	maxLines    = 20
	maxPayments = 10
	taxText     = 60 // characters
)

// lines returns the first lines, and the number of the others.
func lines(all []holdfast.LineItem) ([]lineView, int) {
	shown := make([]lineView, min(len(all), maxLines))
	for i := range shown {
		l := all[i]
		shown[i] = lineView{cut(l.Description, lineText), l.Quantity, amount(l.UnitAmount), nil, cut(taxes(l.Taxes), taxText)}
		if l.DiscountAmount.Amount != 0 {
			shown[i].Discount = holdfast.Ptr(amount(l.DiscountAmount))
		}
	}
	return shown, len(all) - len(shown)
}

// taxes returns the names and rates of taxes.
func taxes(list []holdfast.Tax) string {
	out := make([]string, len(list))
	for i, tax := range list {
		out[i] = tax.Name + " " + tax.Rate + "%"
	}
	return strings.Join(out, ", ")
}

// quote returns a quote without lines, and with texts of at most length characters.
func (v view) quote(q holdfast.Quote, length int) quoteView {
	r := quoteView{
		ID: q.ID, Number: q.Number, Status: string(q.Status), CustomerID: q.CustomerID, LeadID: value(q.LeadID), Date: value(q.EventLocalDate),
		StartTime: value(q.EventStartTime), EndTime: value(q.EventEndTime), GuestCount: q.GuestCount, UnitID: value(q.UnitID), ServiceID: value(q.ServiceID), PackageID: value(q.PackageID),
		Total: amount(q.TotalAmount), Deposit: amount(q.DepositAmount), ExpiresAt: v.at(q.ExpiresAt), BookingID: value(q.BookingID), InvoiceIDs: first(q.InvoiceIDs),
		Declined: cut(value(q.DeclineReason), length), Notes: cut(value(q.Notes), length), Terms: cut(value(q.Terms), length),
		Version: q.Version, CreatedAt: v.at(&q.CreatedAt),
	}
	if q.Customer != nil {
		c := v.customer(*q.Customer)
		r.Customer, r.CustomerID = &c, ""
	}
	return r
}

// wholeQuote returns a quote with its lines.
func (v view) wholeQuote(q holdfast.Quote) quoteView {
	r := v.quote(q, longText)
	r.Lines, r.OmitsLines = lines(q.LineItems)
	return r
}

// withQuoteCustomer returns what to expand in quotes.
func (t *toolbox) withQuoteCustomer() []holdfast.QuoteExpandableResource {
	if t.can("read:customers") {
		return []holdfast.QuoteExpandableResource{holdfast.QuoteExpandableResourceCustomer}
	}
	return nil
}

// quoteFilter are the arguments of list_quotes.
type quoteFilter struct {
	Status   string `json:"status,omitempty" enum:"draft,sent,accepted,declined,expired,cancelled,canceled"`
	Customer string `json:"customer_id,omitempty"`
	Lead     string `json:"lead_id,omitempty"`
	paging
}

func (t *toolbox) listQuotes(ctx context.Context, in quoteFilter) (any, error) {
	v, err := t.view(ctx)
	if err != nil {
		return nil, err
	}
	params := holdfast.QuotesListParams{
		Cursor: in.Cursor, Status: one[holdfast.QuoteFilterStatus](in.Status), CustomerID: in.Customer, LeadID: in.Lead, Expand: t.withQuoteCustomer(),
	}
	return rows(v, in.paging, func(limit int) (*holdfast.Page[holdfast.Quote], error) {
		params.Limit = limit
		return t.client.Quotes.ListPage(ctx, params)
	}, func(q holdfast.Quote) quoteView { return v.quote(q, shortText) })
}

// newQuote are the arguments of create_quote.
type newQuote struct {
	Customer string    `json:"customer_id"`
	Lead     string    `json:"lead_id,omitempty"`
	Date     string    `json:"date,omitempty" jsonschema:"YYYY-MM-DD"`
	Start    string    `json:"start_time,omitempty" jsonschema:"HH:MM"`
	End      string    `json:"end_time,omitempty"`
	Guests   int       `json:"guest_count,omitempty" min:"1" max:"2147483647"`
	Unit     string    `json:"unit_id,omitempty"`
	Package  string    `json:"package_id,omitempty" jsonschema:"creates the line, unless you give lines"`
	Service  string    `json:"service_id,omitempty"`
	Lines    []newLine `json:"lines,omitempty" min:"1" max:"20"`
	Deposit  string    `json:"deposit,omitempty" jsonschema:"decimal, such as 25.00; default: that of the package"`
	Notes    string    `json:"notes,omitempty" jsonschema:"for the operator" max:"5000"`
	Terms    string    `json:"terms,omitempty" jsonschema:"for the customer" max:"5000"`
	repeatable
}

// newLine is a line of a new quote, in the operator's currency.
type newLine struct {
	Description string `json:"description"`
	Quantity    int    `json:"quantity" min:"1" max:"10000"`
	UnitPrice   string `json:"unit_price" jsonschema:"decimal, such as 25.00"`
	TaxRateBps  *int64 `json:"tax_rate_bps,omitempty" jsonschema:"1900 is 19%; default: the default taxes" min:"0" max:"10000"`
}

func (t *toolbox) createQuote(ctx context.Context, in newQuote, options ...holdfast.Option) (any, error) {
	v, err := t.view(ctx)
	if err != nil {
		return nil, err
	}
	body := holdfast.QuoteCreate{
		CustomerID: in.Customer, LeadID: optional(in.Lead), EventDate: optional(in.Date), EventStartTime: optional(in.Start), EventEndTime: optional(in.End),
		GuestCount: optional(in.Guests), UnitID: optional(in.Unit), PackageID: optional(in.Package), ServiceID: optional(in.Service), Notes: optional(in.Notes), Terms: optional(in.Terms),
	}
	if err := t.prices(ctx, in, &body); err != nil {
		return nil, err
	}
	q, err := t.client.Quotes.Create(ctx, body, options...)
	if err != nil {
		return nil, err
	}
	return v.one(v.wholeQuote(*q)), nil
}

// prices adds the lines and the deposit to a new quote, in the operator's currency.
func (t *toolbox) prices(ctx context.Context, in newQuote, body *holdfast.QuoteCreate) error {
	if len(in.Lines) == 0 && in.Deposit == "" {
		return nil
	}
	tenant, err := t.client.Tenant.Get(ctx)
	if err != nil {
		return err
	}
	for i, line := range in.Lines {
		price, err := minor(fmt.Sprintf("lines.%d.unit_price", i), line.UnitPrice, tenant.Currency)
		if err != nil {
			return err
		}
		body.LineItems = append(body.LineItems, holdfast.LineItemInput{
			Description: line.Description, Quantity: int64(line.Quantity), UnitAmount: holdfast.Price{Amount: price, Currency: tenant.Currency},
			TaxRateBps: line.TaxRateBps,
		})
	}
	if in.Deposit != "" {
		deposit, err := minor("deposit", in.Deposit, tenant.Currency)
		if err != nil {
			return err
		}
		body.DepositAmount = holdfast.Set(holdfast.Price{Amount: deposit, Currency: tenant.Currency})
	}
	return nil
}

// quoteStep are the arguments of a tool that changes a quote.
type quoteStep struct {
	Quote string `json:"quote_id"`
	versioned
	repeatable
}

func (t *toolbox) sendQuote(ctx context.Context, in quoteStep, options ...holdfast.Option) (any, error) {
	v, err := t.view(ctx)
	if err != nil {
		return nil, err
	}
	q, err := t.client.Quotes.Send(ctx, in.Quote, in.options(options)...)
	if err != nil {
		return nil, err
	}
	return v.one(v.wholeQuote(*q)), nil
}

func (t *toolbox) acceptQuote(ctx context.Context, in quoteStep, options ...holdfast.Option) (any, error) {
	v, err := t.view(ctx)
	if err != nil {
		return nil, err
	}
	q, err := t.client.Quotes.Accept(ctx, in.Quote, in.options(options)...)
	if err == nil {
		return v.one(v.wholeQuote(*q)), nil
	}
	before, failed := t.client.Quotes.Get(ctx, in.Quote, holdfast.QuotesGetParams{})
	if failed != nil {
		return nil, err
	}
	return nil, t.taken(ctx, err, slotRequest{
		date: value(before.EventLocalDate), start: value(before.EventStartTime), unit: value(before.UnitID),
		service: value(before.ServiceID), packageID: value(before.PackageID),
	})
}
