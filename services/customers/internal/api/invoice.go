package api

import (
	"context"

	"github.com/gin-gonic/gin"
	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
)

// invoices defines how the handlers read and show an invoice.
func (a *API) invoices() rest.Collection[ids.ID[ids.InvoicePrefix], domain.Invoice] {
	return rest.Collection[ids.ID[ids.InvoicePrefix], domain.Invoice]{
		Parse: ids.Parse[ids.InvoicePrefix],
		DB:    a.DB, Idempotency: a.Idempotency, Path: "invoices", NotFound: domain.ErrInvoiceNotFound, Load: a.loadInvoice,
		Show: func(v domain.Invoice, mode api.Mode) rest.Response {
			return rest.Response{ID: v.ID.String(), Version: v.Version, Body: view.Invoice(v, mode)}
		},
	}
}

// loadInvoice reads an invoice as it is now.
func (a *API) loadInvoice(ctx context.Context, q pg.Q, id domain.InvoiceID) (domain.Invoice, error) {
	v, err := store.Invoice(ctx, q, id)
	if err != nil {
		return domain.Invoice{}, err
	}
	at, err := a.Invoices.DocumentContext(ctx)
	return v.At(at), err
}

func (a *API) createInvoice(c *gin.Context) error {
	return rest.Create(c, a.invoices(), fromInvoiceCreate, a.Invoices.PrepareCreate, a.Invoices.Create)
}

func (a *API) updateInvoice(c *gin.Context) error {
	return rest.Update(c, a.invoices(), fromInvoiceUpdate, a.Invoices.PrepareUpdate, a.Invoices.Update)
}

func (a *API) deleteInvoice(c *gin.Context) error {
	return rest.Delete(c, a.invoices(), a.Invoices.Delete)
}

func (a *API) openInvoice(c *gin.Context) error {
	return rest.Action(c, a.invoices(), a.Invoices.PrepareOpen, a.Accounts.Open)
}

func (a *API) voidInvoice(c *gin.Context) error {
	return rest.Action(c, a.invoices(), a.Accounts.Prepare, a.Accounts.Void)
}

func (a *API) markInvoiceUncollectible(c *gin.Context) error {
	return rest.Action(c, a.invoices(), a.Accounts.Prepare, a.Accounts.MarkUncollectible)
}

func (a *API) recordInvoicePayment(c *gin.Context) error {
	id, err := a.invoices().ID(c)
	if err != nil {
		return err
	}
	body, err := httpx.Body[api.InvoicePaymentCreate](c)
	if err != nil {
		return err
	}
	return rest.Operate(c, a.invoices(), id, a.Accounts.RecordPayment(id, fromPayment(body), httpx.IfMatch(c)))
}

func (a *API) reverseInvoicePayment(c *gin.Context) error {
	id, err := a.invoices().ID(c)
	if err != nil {
		return err
	}
	payment, err := domain.ParsePaymentID(c.Param("payment_id"))
	if err != nil {
		return err
	}
	return rest.Operate(c, a.invoices(), id, a.Accounts.ReversePayment(id, payment, httpx.IfMatch(c)))
}

func (a *API) getInvoice(c *gin.Context) error {
	ctx := c.Request.Context()
	expand, err := expands(ctx, httpx.Query(c), "customer", "read:customers")
	if err != nil {
		return err
	}
	v, err := a.invoices().Read(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	bodies, err := a.invoiceBodies(ctx, []domain.Invoice{v}, expand)
	if err != nil {
		return err
	}
	return httpx.Resource(c, v.Version, bodies[0])
}

func (a *API) listInvoices(c *gin.Context) error {
	ctx, q := c.Request.Context(), httpx.Query(c)
	expand, err := expands(ctx, q, "customer", "read:customers")
	if err != nil {
		return err
	}
	at, err := a.Invoices.DocumentContext(ctx)
	if err != nil {
		return err
	}
	filter, none := invoiceFilter(q, at)
	return page.ServeShown(c, a.Pages, a.DB, func(ctx context.Context, db pg.Q, r page.Request) (page.Rows[page.Shown[listedInvoice]], error) {
		if none {
			return page.Rows[page.Shown[listedInvoice]]{}, nil
		}
		return a.shownInvoices(ctx, db, r, filter, at, listing{expand, httpx.PrefersCSV(c)})
	})
}

// shownInvoices reads one page, each invoice as it is now.
func (a *API) shownInvoices(
	ctx context.Context, db pg.Q, r page.Request, f store.InvoiceFilter, at domain.DocumentContext, l listing,
) (page.Rows[page.Shown[listedInvoice]], error) {
	rows, err := store.Invoices(ctx, db, f, r)
	if err != nil {
		return page.Rows[page.Shown[listedInvoice]]{}, err
	}
	for i, v := range rows.Items {
		rows.Items[i] = v.At(at)
	}
	bodies, err := a.invoiceBodies(ctx, rows.Items, l.expand)
	if err != nil {
		return page.Rows[page.Shown[listedInvoice]]{}, err
	}
	shown, err := listed(ctx, a, db, l.csv, rows.Items, bodies, func(v domain.Invoice) related { return related{customer: v.CustomerID} },
		func(b api.Invoice, n Names) listedInvoice { return listedInvoice{b, n} })
	if err != nil {
		return page.Rows[page.Shown[listedInvoice]]{}, err
	}
	return page.Show(rows, shown, func(v domain.Invoice) page.SortKey {
		return page.SortKey{ID: v.ID.UUID(), Created: v.CreatedAt, Updated: v.UpdatedAt}
	}), nil
}

// invoiceBodies returns the public bodies of invoices, with their customers if expand is true. It then returns only the first
// invoices whose customers were looked up, because these fill a page.
func (a *API) invoiceBodies(ctx context.Context, list []domain.Invoice, expand bool) ([]api.Invoice, error) {
	out := make([]api.Invoice, len(list))
	for i, v := range list {
		out[i] = view.Invoice(v, httpx.Mode(ctx))
	}
	if !expand {
		return out, nil
	}
	return embedCustomers(ctx, a, list, out, func(v domain.Invoice) domain.CustomerID { return v.CustomerID },
		func(b *api.Invoice, c nullable.Nullable[api.Customer]) { b.Customer = c })
}

// invoiceFilter reads the filters. none is true if an id among them is malformed, so that no row matches.
func invoiceFilter(q contract.Query, at domain.DocumentContext) (f store.InvoiceFilter, none bool) {
	var badCustomer, badBooking bool
	f = store.InvoiceFilter{Overdue: rest.FilterBool(q, "overdue"), Today: at.Today(), Metadata: q.Map("metadata")}
	f.Customer, badCustomer = rest.FilterID[ids.CustomerPrefix](q, "customer_id")
	f.Booking, badBooking = rest.FilterID[ids.BookingPrefix](q, "booking_id")
	for _, s := range q.List("status") {
		f.Status = append(f.Status, domain.InvoiceStatus(s))
	}
	if q.Has("number") {
		f.Number = new(q.String("number"))
	}
	if before, ok := q.Time("due_before"); ok {
		f.DueBefore = &before
	}
	return f, badCustomer || badBooking
}

func fromInvoiceCreate(b api.InvoiceCreate) domain.InvoiceInput {
	return fromInvoiceUpdate(api.InvoiceUpdate(b))
}

func fromInvoiceUpdate(b api.InvoiceUpdate) domain.InvoiceInput {
	return domain.InvoiceInput{
		PriceInput: domain.PriceInput{
			Lines: fromLines(b.LineItems), Behavior: patch.FromPointer((*domain.TaxBehavior)(b.TaxBehavior)),
			DiscountTotal: fromPrice(b.DiscountAmountTotal),
		},
		CustomerID: patch.FromPointer(b.CustomerId), BookingID: patch.FromNullable(b.BookingId),
		Kind: patch.FromPointer((*domain.InvoiceKind)(b.Kind)), DueAt: patch.FromNullable(b.DueAt),
		BillingAddress: patch.FromNullable(b.BillingAddress), Notes: patch.FromNullable(b.Notes), Metadata: patch.FromNullable(b.Metadata),
	}
}

func fromPayment(b api.InvoicePaymentCreate) domain.PaymentInput {
	return domain.PaymentInput{
		Amount: money.Amount{Minor: b.Amount.Amount, Currency: b.Amount.Currency}, Method: string(b.Method),
		PaidAt: patch.FromNullable(b.PaidAt), Reference: patch.FromNullable(b.Reference).Pointer(),
	}
}
