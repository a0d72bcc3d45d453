// Package api contains the HTTP handlers by operationId. A handler decodes the request, calls one use case and encodes the result.
package api

import (
	"context"
	"errors"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/app"
)

// API holds what the handlers use.
type API struct {
	DB          *pg.DB
	Idempotency *idemstore.Store
	Customers   *app.Customers
	Quotes      *app.Quotes
	Leads       *app.Leads
	Invoices    *app.Invoices
	CreditNotes *app.CreditNotes
	Accounts    *app.Accounts
	Tenants     app.TenantService
	Units       UnitNamer
	Exports     *app.Exports
	Pages       *page.Codec
	Server      *httpx.Server
	Now         func() time.Time // real time
}

func (a *API) now(ctx context.Context) time.Time { return caller.FromContext(ctx).Now(a.Now()) }

// Mount registers the contract's operations and the internal calls.
func (a *API) Mount(e *gin.Engine) error {
	if err := errors.Join(a.mountInternal(e), a.usage().Mount(a.Server, e)); err != nil {
		return err
	}
	return a.Server.Mount(e, map[string]httpx.Route{
		"createCustomer": {Handle: a.createCustomer},
		"listCustomers":  {Handle: a.listCustomers},
		"getCustomer":    {Handle: a.getCustomer, Exists: a.customers().Exists},
		"updateCustomer": {Handle: a.updateCustomer, Exists: a.customers().Exists},
		"deleteCustomer": {Handle: a.deleteCustomer, Exists: a.customers().Exists},

		"exportCustomer": {Handle: a.exportCustomer, Exists: a.customers().Exists},

		"createQuote":  {Handle: a.createQuote},
		"listQuotes":   {Handle: a.listQuotes},
		"getQuote":     {Handle: a.getQuote, Exists: a.quotes().Exists},
		"updateQuote":  {Handle: a.updateQuote, Exists: a.quotes().Exists},
		"deleteQuote":  {Handle: a.deleteQuote, Exists: a.quotes().Exists},
		"sendQuote":    {Handle: a.sendQuote, Exists: a.quotes().Exists},
		"acceptQuote":  {Handle: a.acceptQuote, Exists: a.quotes().Exists},
		"declineQuote": {Handle: a.declineQuote, Exists: a.quotes().Exists},
		"cancelQuote":  {Handle: a.cancelQuote, Exists: a.quotes().Exists},
		"getQuotePdf":  {Handle: a.getQuotePdf, Exists: a.quotes().Exists},
		"createLead":   {Handle: a.createLead},
		"listLeads":    {Handle: a.listLeads},
		"getLead":      {Handle: a.getLead, Exists: a.leads().Exists},
		"updateLead":   {Handle: a.updateLead, Exists: a.leads().Exists},
		"convertLead":  {Handle: a.convertLead, Exists: a.leads().Exists},

		"createInvoice":            {Handle: a.createInvoice},
		"listInvoices":             {Handle: a.listInvoices},
		"getInvoice":               {Handle: a.getInvoice, Exists: a.invoices().Exists},
		"updateInvoice":            {Handle: a.updateInvoice, Exists: a.invoices().Exists},
		"deleteInvoice":            {Handle: a.deleteInvoice, Exists: a.invoices().Exists},
		"openInvoice":              {Handle: a.openInvoice, Exists: a.invoices().Exists},
		"voidInvoice":              {Handle: a.voidInvoice, Exists: a.invoices().Exists},
		"markInvoiceUncollectible": {Handle: a.markInvoiceUncollectible, Exists: a.invoices().Exists},
		"recordInvoicePayment":     {Handle: a.recordInvoicePayment, Exists: a.invoices().Exists},
		"reverseInvoicePayment":    {Handle: a.reverseInvoicePayment, Exists: a.invoices().Exists},
		"getInvoicePdf":            {Handle: a.getInvoicePdf, Exists: a.invoices().Exists},

		"createCreditNote": {Handle: a.createCreditNote, Exists: a.invoices().Exists},
		"listCreditNotes":  {Handle: a.listCreditNotes},
		"getCreditNote":    {Handle: a.getCreditNote, Exists: a.creditNotes().Exists},
		"getCreditNotePdf": {Handle: a.getCreditNotePdf, Exists: a.creditNotes().Exists},
	})
}
