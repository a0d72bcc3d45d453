package tools

import (
	"context"
	"time"

	holdfast "holdfast.dev/sdks/go"
)

// invoiceView is an invoice.
type invoiceView struct {
	ID            string        `json:"id"`
	Number        string        `json:"number,omitempty"` // "" on a draft
	Status        string        `json:"status"`
	Kind          string        `json:"kind"`
	CustomerID    string        `json:"customer_id,omitempty"`
	Customer      *customerView `json:"customer,omitempty"`
	BookingID     string        `json:"booking_id,omitempty"`
	BookingStatus string        `json:"booking_status,omitempty"`
	QuoteID       string        `json:"quote_id,omitempty"`
	Total         money         `json:"total"`
	Paid          money         `json:"paid"`
	Refunded      *money        `json:"refunded,omitempty"`
	Credited      *money        `json:"credited,omitempty"`
	Due           money         `json:"due"`
	DueAt         *moment       `json:"due_at,omitempty"`
	Overdue       bool          `json:"overdue"`
	Disputed      bool          `json:"disputed,omitempty"`
	Lines         []lineView    `json:"lines,omitempty"`
	OmitsLines    int           `json:"lines_omitted,omitempty"`
	Payments      []paymentView `json:"payments,omitempty"` // the newest ones, oldest first
	OmitsPayments int           `json:"payments_omitted,omitempty"`
	Notes         string        `json:"notes,omitempty"`
	Version       int64         `json:"version"`
	CreatedAt     *moment       `json:"created_at"`
}

// paymentView is a payment on an invoice or a booking.
type paymentView struct {
	ID         string  `json:"id"`
	Amount     money   `json:"amount"`
	Refunded   *money  `json:"refunded,omitempty"`
	Method     string  `json:"method"`
	Reference  string  `json:"reference,omitempty"`
	PaidAt     *moment `json:"paid_at,omitempty"`
	ReversedAt *moment `json:"reversed_at,omitempty"`
}

// invoice returns an invoice without lines and payments, and with texts of at most length characters.
func (v view) invoice(i holdfast.Invoice, length int) invoiceView {
	r := invoiceView{
		ID: i.ID, Number: value(i.Number), Status: string(i.Status), Kind: string(i.Kind), CustomerID: i.CustomerID, BookingID: value(i.BookingID),
		BookingStatus: value(i.BookingStatus), QuoteID: value(i.QuoteID), Total: amount(i.TotalAmount), Paid: amount(i.AmountPaid),
		Refunded: nonZero(i.AmountRefunded), Credited: nonZero(i.AmountCredited), Due: amount(i.AmountDue), DueAt: v.at(i.DueAt), Overdue: i.Overdue, Disputed: i.Disputed,
		Notes: cut(value(i.Notes), length), Version: i.Version, CreatedAt: v.at(&i.CreatedAt),
	}
	if i.Customer != nil {
		c := v.customer(*i.Customer)
		r.Customer, r.CustomerID = &c, ""
	}
	return r
}

// wholeInvoice returns an invoice with its lines and its newest payments.
func (v view) wholeInvoice(i holdfast.Invoice) invoiceView {
	r := v.invoice(i, longText)
	r.Lines, r.OmitsLines = lines(i.LineItems)
	r.OmitsPayments = max(0, len(i.Payments)-maxPayments)
	for _, p := range i.Payments[r.OmitsPayments:] {
		r.Payments = append(r.Payments, paymentView{
			ID: p.ID, Amount: amount(p.Amount), Refunded: nonZero(p.AmountRefunded), Method: string(p.Method), Reference: cut(value(p.Reference), lineText),
			PaidAt: v.at(&p.PaidAt), ReversedAt: v.at(p.ReversedAt),
		})
	}
	return r
}

// invoiceFilter are the arguments of list_invoices.
type invoiceFilter struct {
	Status    string `json:"status,omitempty" jsonschema:"default due: open or partially paid" enum:"due,draft,open,partially_paid,paid,uncollectible,void,all"`
	Overdue   *bool  `json:"overdue,omitempty"`
	DueBefore string `json:"due_before,omitempty" jsonschema:"YYYY-MM-DD"`
	Customer  string `json:"customer_id,omitempty"`
	Booking   string `json:"booking_id,omitempty"`
	paging
}

// statuses returns the statuses of the filter.
func (f invoiceFilter) statuses() []holdfast.InvoiceStatus {
	switch f.Status {
	case "", "due":
		return []holdfast.InvoiceStatus{holdfast.InvoiceStatusOpen, holdfast.InvoiceStatusPartiallyPaid}
	case "all":
		return nil
	}
	return []holdfast.InvoiceStatus{holdfast.InvoiceStatus(f.Status)}
}

func (t *toolbox) listInvoices(ctx context.Context, in invoiceFilter) (any, error) {
	v, err := t.view(ctx)
	if err != nil {
		return nil, err
	}
	params := holdfast.InvoicesListParams{
		Cursor: in.Cursor, Status: in.statuses(), Overdue: in.Overdue, CustomerID: in.Customer, BookingID: in.Booking, Expand: t.withCustomer(),
	}
	if in.DueBefore != "" {
		if params.DueBefore, err = time.ParseInLocation(time.DateOnly, in.DueBefore, v.zone); err != nil {
			return nil, invalid("due_before", "must be a date such as 2027-07-03")
		}
	}
	return rows(v, in.paging, func(limit int) (*holdfast.Page[holdfast.Invoice], error) {
		params.Limit = limit
		return t.client.Invoices.ListPage(ctx, params)
	}, func(i holdfast.Invoice) invoiceView { return v.invoice(i, shortText) })
}

// newPayment are the arguments of record_payment.
type newPayment struct {
	Invoice   string `json:"invoice_id"`
	Amount    string `json:"amount" jsonschema:"decimal, such as 25.00"`
	Currency  string `json:"currency" jsonschema:"that of the invoice, such as USD" min:"3" max:"3"`
	Method    string `json:"method" enum:"cash,bank_transfer,other"`
	PaidAt    string `json:"paid_at,omitempty" jsonschema:"RFC 3339 or YYYY-MM-DD; default now"`
	Reference string `json:"reference,omitempty" jsonschema:"such as a receipt number" max:"200"`
	versioned
	repeatable
}

func (t *toolbox) recordPayment(ctx context.Context, in newPayment, options ...holdfast.Option) (any, error) {
	v, err := t.view(ctx)
	if err != nil {
		return nil, err
	}
	paid, err := minor("amount", in.Amount, in.Currency)
	if err != nil {
		return nil, err
	}
	i, err := t.client.Invoices.RecordPayment(ctx, in.Invoice, holdfast.InvoicePaymentCreate{
		Amount: holdfast.Payable{Amount: paid, Currency: in.Currency}, Method: holdfast.ManualPaymentMethod(in.Method),
		PaidAt: optional(in.PaidAt), Reference: optional(in.Reference),
	}, in.options(options)...)
	if err != nil {
		return nil, err
	}
	return v.one(v.wholeInvoice(*i)), nil
}
