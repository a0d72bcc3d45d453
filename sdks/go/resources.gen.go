// Code generated from the contract by make gen. DO NOT EDIT.

package holdfast

import (
	"context"
	"iter"
	"time"
)

// Resources are the resources of the API.
type Resources struct {
	Tenant           *TenantAPI
	Me               *MeAPI
	Customers        *CustomersAPI
	Leads            *LeadsAPI
	Quotes           *QuotesAPI
	Invoices         *InvoicesAPI
	CreditNotes      *CreditNotesAPI
	PaymentIntents   *PaymentIntentsAPI
	Refunds          *RefundsAPI
	Services         *ServicesAPI
	Units            *UnitsAPI
	Packages         *PackagesAPI
	HolidayRules     *HolidayRulesAPI
	Closures         *ClosuresAPI
	Availability     *AvailabilityAPI
	Bookings         *BookingsAPI
	CalendarFeeds    *CalendarFeedsAPI
	TestClock        *TestClockAPI
	WebhookEndpoints *WebhookEndpointsAPI
	Events           *EventsAPI
	RequestLogs      *RequestLogsAPI
}

func newResources(c *Client) Resources {
	return Resources{
		Tenant:           &TenantAPI{c},
		Me:               &MeAPI{c},
		Customers:        &CustomersAPI{c},
		Leads:            &LeadsAPI{c},
		Quotes:           &QuotesAPI{c},
		Invoices:         &InvoicesAPI{c},
		CreditNotes:      &CreditNotesAPI{c},
		PaymentIntents:   &PaymentIntentsAPI{c},
		Refunds:          &RefundsAPI{c},
		Services:         &ServicesAPI{c},
		Units:            &UnitsAPI{c},
		Packages:         &PackagesAPI{c},
		HolidayRules:     &HolidayRulesAPI{c},
		Closures:         &ClosuresAPI{c},
		Availability:     &AvailabilityAPI{c},
		Bookings:         &BookingsAPI{c},
		CalendarFeeds:    &CalendarFeedsAPI{c},
		TestClock:        &TestClockAPI{c},
		WebhookEndpoints: &WebhookEndpointsAPI{c},
		Events:           &EventsAPI{c},
		RequestLogs:      &RequestLogsAPI{c},
	}
}

// TenantAPI has the operations on the tenant.
type TenantAPI struct{ c *Client }

// Get returns the operator that owns the credential, with its time zone, currency and booking policy.
//
// Errors: [ErrTenantSuspended].
func (a *TenantAPI) Get(ctx context.Context, options ...Option) (*Tenant, error) {
	return one[Tenant](ctx, a.c, call{method: "GET", path: "/tenant"}, options)
}

// MeAPI has the operations on the credential that you use.
type MeAPI struct{ c *Client }

// Get returns the credential that you sent: its mode, scopes and request limit. Use it to check that a key works.
//
// Errors: [ErrTenantSuspended].
func (a *MeAPI) Get(ctx context.Context, options ...Option) (*Me, error) {
	return one[Me](ctx, a.c, call{method: "GET", path: "/me"}, options)
}

// CustomersAPI has the operations on customers.
type CustomersAPI struct{ c *Client }

// CustomersListParams are the parameters of List. Parameters without a value are not sent.
type CustomersListParams struct {
	// Maximum number of rows on the page, 1 to 100. A page also ends, with has_more true, when its rows exceed 2 MiB.
	Limit int
	// The next_cursor of the previous page. Send it unchanged, with the same filters. An empty cursor returns the first
	// page.
	Cursor string
	// Order of the rows.
	Sort SortOrder
	// Returns only rows created at or after this time, RFC 3339.
	CreatedAfter time.Time
	// Returns only rows created before this time, RFC 3339.
	CreatedBefore time.Time
	// Returns only rows updated at or after this time, RFC 3339.
	UpdatedAfter time.Time
	// Returns only rows updated before this time, RFC 3339.
	UpdatedBefore time.Time
	// Returns only customers with this email address. Not case-sensitive.
	Email string
	// Returns only customers with this phone number. Only digits are compared. A leading `+` or `00` and the country code
	// can be missing, here or in the stored number: `030 901820`, `+49 30 901820` and `004930901820` are equal.
	Phone string
	// Returns only customers that match every word: each must start a word of the name, email address or company. Case,
	// accents and typographic variants are ignored: `muller` finds Müller, `strasse` finds Straße, `o'brien` finds
	// O’Brien. A word of four or more digits also matches inside the phone number. A phone number matches in any
	// notation.
	Q string
	// Returns only rows that have exactly these pairs, such as `metadata[order]=17`. At most 10 pairs.
	Metadata map[string]string
}

func (p CustomersListParams) encode(q *query) {
	q.number("limit", p.Limit)
	q.text("cursor", p.Cursor)
	q.text("sort", string(p.Sort))
	q.time("created_after", p.CreatedAfter)
	q.time("created_before", p.CreatedBefore)
	q.time("updated_after", p.UpdatedAfter)
	q.time("updated_before", p.UpdatedBefore)
	q.text("email", p.Email)
	q.text("phone", p.Phone)
	q.text("q", p.Q)
	q.pairs("metadata", p.Metadata)
}

// List iterates over customers, newest first. To keep a copy in sync, use `sort=updated_at`: it lists the oldest change
// first and skips none, and includes erased customers, which have `erased_at`. Search with `email`, `phone` and `q`.
//
// The iteration gets a page when it needs its first row, and ends after an error.
//
// Requires the scope read:customers. Errors: [ErrTenantSuspended].
func (a *CustomersAPI) List(ctx context.Context, params CustomersListParams, options ...Option) iter.Seq2[Customer, error] {
	return all(func(cursor string) (*Page[Customer], error) {
		if cursor != "" {
			params.Cursor = cursor
		}
		return a.ListPage(ctx, params, options...)
	})
}

// ListPage gets one page. The NextCursor of a page is the Cursor of the next one.
func (a *CustomersAPI) ListPage(ctx context.Context, params CustomersListParams, options ...Option) (*Page[Customer], error) {
	return one[Page[Customer]](ctx, a.c, call{method: "GET", path: "/customers", params: params}, options)
}

// CustomersListCSVParams are the parameters of ListCSV. Parameters without a value are not sent.
type CustomersListCSVParams struct {
	// Order of the rows.
	Sort SortOrder
	// Returns only rows created at or after this time, RFC 3339.
	CreatedAfter time.Time
	// Returns only rows created before this time, RFC 3339.
	CreatedBefore time.Time
	// Returns only rows updated at or after this time, RFC 3339.
	UpdatedAfter time.Time
	// Returns only rows updated before this time, RFC 3339.
	UpdatedBefore time.Time
	// Returns only customers with this email address. Not case-sensitive.
	Email string
	// Returns only customers with this phone number. Only digits are compared. A leading `+` or `00` and the country code
	// can be missing, here or in the stored number: `030 901820`, `+49 30 901820` and `004930901820` are equal.
	Phone string
	// Returns only customers that match every word: each must start a word of the name, email address or company. Case,
	// accents and typographic variants are ignored: `muller` finds Müller, `strasse` finds Straße, `o'brien` finds
	// O’Brien. A word of four or more digits also matches inside the phone number. A phone number matches in any
	// notation.
	Q string
	// Returns only rows that have exactly these pairs, such as `metadata[order]=17`. At most 10 pairs.
	Metadata map[string]string
}

func (p CustomersListCSVParams) encode(q *query) {
	q.text("sort", string(p.Sort))
	q.time("created_after", p.CreatedAfter)
	q.time("created_before", p.CreatedBefore)
	q.time("updated_after", p.UpdatedAfter)
	q.time("updated_before", p.UpdatedBefore)
	q.text("email", p.Email)
	q.text("phone", p.Phone)
	q.text("q", p.Q)
	q.pairs("metadata", p.Metadata)
}

// ListCSV returns all matching rows in one document (RFC 4180, UTF-8), at most 100,000. If the transfer fails, discard
// what you received.
//
// Requires the scope read:customers. Errors: [ErrTenantSuspended].
func (a *CustomersAPI) ListCSV(ctx context.Context, params CustomersListCSVParams, options ...Option) (*Document, error) {
	return document(ctx, a.c, call{method: "GET", path: "/customers", params: params, accept: "text/csv"}, options)
}

// Create creates a customer with an email address, a phone number or both; without either, the response is 422 on
// `email`. Several customers can have the same email address or phone number. To avoid duplicates, search with `email`
// or `phone` first. Triggers the `customer.created` event.
//
// Requires the scope write:customers. Errors: [ErrTenantSuspended].
func (a *CustomersAPI) Create(ctx context.Context, body CustomerCreate, options ...Option) (*Customer, error) {
	return one[Customer](ctx, a.c, call{method: "POST", path: "/customers", body: body, key: true, strict: true}, options)
}

// Get returns one customer. An erased customer returns 404.
//
// Requires the scope read:customers. Errors: [ErrTenantSuspended], [ErrCustomerNotFound].
func (a *CustomersAPI) Get(ctx context.Context, id string, options ...Option) (*Customer, error) {
	return one[Customer](ctx, a.c, call{method: "GET", path: "/customers/{id}", ids: []string{id}}, options)
}

// Update updates a customer. Fields that you leave out stay unchanged. A customer keeps an email address or a phone
// number: clearing both returns 422 on `email`. Triggers the `customer.updated` event if something changes.
//
// Requires the scope write:customers. Errors: [ErrTenantSuspended], [ErrCustomerNotFound], [ErrVersionMismatch].
func (a *CustomersAPI) Update(ctx context.Context, id string, body CustomerUpdate, options ...Option) (*Customer, error) {
	return one[Customer](ctx, a.c, call{method: "PATCH", path: "/customers/{id}", ids: []string{id}, body: body, key: true, strict: true}, options)
}

// Delete permanently erases the personal data of a customer, including in events and in stored responses for
// Idempotency-Keys. Fields marked `x-personal` become null, or empty if null is not allowed. A retry with an earlier
// key returns the erased response. Bookings keep the customer's ID and their amounts. The event `customer.updated`
// reports the erasure: `erased_at` is set, and neither `object` nor `previous_attributes` contains personal values.
// Afterwards the ID returns 404, except in lists with `sort=updated_at`.
//
// Requires the scope write:customers. Errors: [ErrTenantSuspended], [ErrCustomerNotFound], [ErrVersionMismatch].
func (a *CustomersAPI) Delete(ctx context.Context, id string, options ...Option) error {
	return none(ctx, a.c, call{method: "DELETE", path: "/customers/{id}", ids: []string{id}}, options)
}

// Export returns all data that the platform stores about a customer, for a person who requests their data. The export
// contains the customer; the bookings, leads, quotes and invoices that name the customer; their card payments with
// refunds; and the events of the last 30 days about each of these. Each object has the format that its own `GET`
// returns. Objects are sorted newest first; events are grouped by object, oldest first. An erased customer returns 404.
//
// The response has no size limit and is streamed while it is generated. It contains objects that change during the
// export either before or after the change. If the download is interrupted, the connection closes early: discard any
// file whose transfer failed. The export counts as a download, like a list as CSV.
//
// Requires the scopes read:customers, read:bookings, read:leads, read:quotes, read:invoices, payments:read,
// read:webhooks. Errors: [ErrTenantSuspended], [ErrCustomerNotFound].
func (a *CustomersAPI) Export(ctx context.Context, id string, options ...Option) (*CustomerExport, error) {
	return one[CustomerExport](ctx, a.c, call{method: "GET", path: "/customers/{id}/export", ids: []string{id}}, options)
}

// LeadsAPI has the operations on leads.
type LeadsAPI struct{ c *Client }

// LeadsListParams are the parameters of List. Parameters without a value are not sent.
type LeadsListParams struct {
	// Maximum number of rows on the page, 1 to 100. A page also ends, with has_more true, when its rows exceed 2 MiB.
	Limit int
	// The next_cursor of the previous page. Send it unchanged, with the same filters. An empty cursor returns the first
	// page.
	Cursor string
	// Order of the rows.
	Sort SortOrder
	// Returns only rows created at or after this time, RFC 3339.
	CreatedAfter time.Time
	// Returns only rows created before this time, RFC 3339.
	CreatedBefore time.Time
	// Returns only rows updated at or after this time, RFC 3339.
	UpdatedAfter time.Time
	// Returns only rows updated before this time, RFC 3339.
	UpdatedBefore time.Time
	// Returns only leads with one of these statuses, separated by commas. At most 10.
	Status []LeadStatus
	// Returns only leads with exactly this source, at most 100 characters.
	Source string
	// Returns only rows for this customer, `cu_…`.
	CustomerID string
	// Returns only leads that match every word: each must start a word of the name, email address or company. Case, accents
	// and typographic variants are ignored: `muller` finds Müller, `strasse` finds Straße, `o'brien` finds O’Brien. A
	// word of four or more digits also matches inside the phone number. A phone number matches in any notation.
	Q string
	// Returns only rows that have exactly these pairs, such as `metadata[order]=17`. At most 10 pairs.
	Metadata map[string]string
	// Related resources to add to each row, separated by commas. Each requires its own read scope.
	Expand []ExpandableResource
}

func (p LeadsListParams) encode(q *query) {
	q.number("limit", p.Limit)
	q.text("cursor", p.Cursor)
	q.text("sort", string(p.Sort))
	q.time("created_after", p.CreatedAfter)
	q.time("created_before", p.CreatedBefore)
	q.time("updated_after", p.UpdatedAfter)
	q.time("updated_before", p.UpdatedBefore)
	join(q, "status", p.Status)
	q.text("source", p.Source)
	q.text("customer_id", p.CustomerID)
	q.text("q", p.Q)
	q.pairs("metadata", p.Metadata)
	join(q, "expand", p.Expand)
}

// List iterates over leads, newest first. To keep a copy in sync, use `sort=updated_at`: it lists the oldest change
// first and skips none. `q` searches the name, email address and company. `expand=customer` adds each customer and also
// requires `read:customers`.
//
// The iteration gets a page when it needs its first row, and ends after an error.
//
// Requires the scope read:leads. Errors: [ErrTenantSuspended].
func (a *LeadsAPI) List(ctx context.Context, params LeadsListParams, options ...Option) iter.Seq2[Lead, error] {
	return all(func(cursor string) (*Page[Lead], error) {
		if cursor != "" {
			params.Cursor = cursor
		}
		return a.ListPage(ctx, params, options...)
	})
}

// ListPage gets one page. The NextCursor of a page is the Cursor of the next one.
func (a *LeadsAPI) ListPage(ctx context.Context, params LeadsListParams, options ...Option) (*Page[Lead], error) {
	return one[Page[Lead]](ctx, a.c, call{method: "GET", path: "/leads", params: params}, options)
}

// LeadsListCSVParams are the parameters of ListCSV. Parameters without a value are not sent.
type LeadsListCSVParams struct {
	// Order of the rows.
	Sort SortOrder
	// Returns only rows created at or after this time, RFC 3339.
	CreatedAfter time.Time
	// Returns only rows created before this time, RFC 3339.
	CreatedBefore time.Time
	// Returns only rows updated at or after this time, RFC 3339.
	UpdatedAfter time.Time
	// Returns only rows updated before this time, RFC 3339.
	UpdatedBefore time.Time
	// Returns only leads with one of these statuses, separated by commas. At most 10.
	Status []LeadStatus
	// Returns only leads with exactly this source, at most 100 characters.
	Source string
	// Returns only rows for this customer, `cu_…`.
	CustomerID string
	// Returns only leads that match every word: each must start a word of the name, email address or company. Case, accents
	// and typographic variants are ignored: `muller` finds Müller, `strasse` finds Straße, `o'brien` finds O’Brien. A
	// word of four or more digits also matches inside the phone number. A phone number matches in any notation.
	Q string
	// Returns only rows that have exactly these pairs, such as `metadata[order]=17`. At most 10 pairs.
	Metadata map[string]string
	// Related resources to add to each row, separated by commas. Each requires its own read scope.
	Expand []ExpandableResource
}

func (p LeadsListCSVParams) encode(q *query) {
	q.text("sort", string(p.Sort))
	q.time("created_after", p.CreatedAfter)
	q.time("created_before", p.CreatedBefore)
	q.time("updated_after", p.UpdatedAfter)
	q.time("updated_before", p.UpdatedBefore)
	join(q, "status", p.Status)
	q.text("source", p.Source)
	q.text("customer_id", p.CustomerID)
	q.text("q", p.Q)
	q.pairs("metadata", p.Metadata)
	join(q, "expand", p.Expand)
}

// ListCSV returns all matching rows in one document (RFC 4180, UTF-8), at most 100,000. If the transfer fails, discard
// what you received.
//
// Requires the scope read:leads. Errors: [ErrTenantSuspended].
func (a *LeadsAPI) ListCSV(ctx context.Context, params LeadsListCSVParams, options ...Option) (*Document, error) {
	return document(ctx, a.c, call{method: "GET", path: "/leads", params: params, accept: "text/csv"}, options)
}

// Create creates a lead with status `new`. A key that has only `write:leads` can create leads but cannot read any data.
// Triggers the `lead.created` event.
//
// Requires the scope write:leads. Errors: [ErrTenantSuspended].
func (a *LeadsAPI) Create(ctx context.Context, body LeadCreate, options ...Option) (*Lead, error) {
	return one[Lead](ctx, a.c, call{method: "POST", path: "/leads", body: body, key: true, strict: true}, options)
}

// LeadsGetParams are the parameters of Get. Parameters without a value are not sent.
type LeadsGetParams struct {
	// Related resources to add to each row, separated by commas. Each requires its own read scope.
	Expand []ExpandableResource
}

func (p LeadsGetParams) encode(q *query) {
	join(q, "expand", p.Expand)
}

// Get returns one lead. `expand=customer` adds the customer and also requires `read:customers`.
//
// Requires the scope read:leads. Errors: [ErrTenantSuspended], [ErrLeadNotFound].
func (a *LeadsAPI) Get(ctx context.Context, id string, params LeadsGetParams, options ...Option) (*Lead, error) {
	return one[Lead](ctx, a.c, call{method: "GET", path: "/leads/{id}", ids: []string{id}, params: params}, options)
}

// Update updates a lead. Fields that you leave out stay unchanged. The status moves forward from `new` to `contacted`,
// `qualified` and `quoted`, and can skip steps. From each of these it can move to `lost`, which requires `lost_reason`,
// and from `lost` back to `contacted`. Only converting a lead sets `converted`. Triggers the `lead.updated` event if
// something changes.
//
// Requires the scope write:leads. Errors: [ErrTenantSuspended], [ErrLeadNotFound], [ErrVersionMismatch],
// [ErrInvalidStatusTransition].
func (a *LeadsAPI) Update(ctx context.Context, id string, body LeadUpdate, options ...Option) (*Lead, error) {
	return one[Lead](ctx, a.c, call{method: "PATCH", path: "/leads/{id}", ids: []string{id}, body: body, key: true, strict: true}, options)
}

// Convert converts a lead into a customer and, if you send `booking`, creates a booking. Either all of it happens or
// none of it. The customer is `customer_id` if you send it, otherwise the only customer with the lead's email address,
// otherwise the only customer with its phone number, otherwise a new customer. Phone numbers are compared as by the
// filter `phone` of customers. If several customers match, the response is 422 on `customer_id` and lists them. A lead
// without an email address and a phone number returns 422 on `email`. A new customer requires `write:customers`; an
// existing one requires `read:customers` or `write:customers`. `booking` requires `write:bookings`; it takes a missing
// date, service, package, unit or guest count from the lead. A `lost` lead must first move to `contacted`. Converting a
// converted lead changes nothing and returns 200. Triggers the `lead.updated` event, and `customer.created` and
// `booking.created` if they are created.
//
// Requires the scope write:leads. Errors: [ErrTenantSuspended], [ErrLeadNotFound], [ErrSlotUnavailable],
// [ErrVersionMismatch], [ErrInvalidStatusTransition].
func (a *LeadsAPI) Convert(ctx context.Context, id string, body LeadConvert, options ...Option) (*Lead, error) {
	return one[Lead](ctx, a.c, call{method: "POST", path: "/leads/{id}/convert", ids: []string{id}, body: body, key: true, strict: true}, options)
}

// QuotesAPI has the operations on quotes.
type QuotesAPI struct{ c *Client }

// QuotesListParams are the parameters of List. Parameters without a value are not sent.
type QuotesListParams struct {
	// Maximum number of rows on the page, 1 to 100. A page also ends, with has_more true, when its rows exceed 2 MiB.
	Limit int
	// The next_cursor of the previous page. Send it unchanged, with the same filters. An empty cursor returns the first
	// page.
	Cursor string
	// Order of the rows.
	Sort SortOrder
	// Returns only rows created at or after this time, RFC 3339.
	CreatedAfter time.Time
	// Returns only rows created before this time, RFC 3339.
	CreatedBefore time.Time
	// Returns only rows updated at or after this time, RFC 3339.
	UpdatedAfter time.Time
	// Returns only rows updated before this time, RFC 3339.
	UpdatedBefore time.Time
	// Returns only quotes with one of these statuses, separated by commas. At most 10.
	Status []QuoteFilterStatus
	// Returns only the row with this number. Not case-sensitive.
	Number string
	// Returns only rows for this customer, `cu_…`.
	CustomerID string
	// Returns only rows for this lead, `ld_…`.
	LeadID string
	// Returns only rows for this booking, `bk_…`.
	BookingID string
	// Returns only rows that have exactly these pairs, such as `metadata[order]=17`. At most 10 pairs.
	Metadata map[string]string
	// Related resources to add to each row, separated by commas. Each requires its own read scope.
	Expand []QuoteExpandableResource
}

func (p QuotesListParams) encode(q *query) {
	q.number("limit", p.Limit)
	q.text("cursor", p.Cursor)
	q.text("sort", string(p.Sort))
	q.time("created_after", p.CreatedAfter)
	q.time("created_before", p.CreatedBefore)
	q.time("updated_after", p.UpdatedAfter)
	q.time("updated_before", p.UpdatedBefore)
	join(q, "status", p.Status)
	q.text("number", p.Number)
	q.text("customer_id", p.CustomerID)
	q.text("lead_id", p.LeadID)
	q.text("booking_id", p.BookingID)
	q.pairs("metadata", p.Metadata)
	join(q, "expand", p.Expand)
}

// List iterates over quotes, newest first. To keep a copy in sync, use `sort=updated_at`: it lists the oldest change
// first and skips none. `expand=customer` adds each customer and also requires `read:customers`; `expand=lead` adds
// each lead and requires `read:leads`.
//
// The iteration gets a page when it needs its first row, and ends after an error.
//
// Requires the scope read:quotes. Errors: [ErrTenantSuspended].
func (a *QuotesAPI) List(ctx context.Context, params QuotesListParams, options ...Option) iter.Seq2[Quote, error] {
	return all(func(cursor string) (*Page[Quote], error) {
		if cursor != "" {
			params.Cursor = cursor
		}
		return a.ListPage(ctx, params, options...)
	})
}

// ListPage gets one page. The NextCursor of a page is the Cursor of the next one.
func (a *QuotesAPI) ListPage(ctx context.Context, params QuotesListParams, options ...Option) (*Page[Quote], error) {
	return one[Page[Quote]](ctx, a.c, call{method: "GET", path: "/quotes", params: params}, options)
}

// QuotesListCSVParams are the parameters of ListCSV. Parameters without a value are not sent.
type QuotesListCSVParams struct {
	// Order of the rows.
	Sort SortOrder
	// Returns only rows created at or after this time, RFC 3339.
	CreatedAfter time.Time
	// Returns only rows created before this time, RFC 3339.
	CreatedBefore time.Time
	// Returns only rows updated at or after this time, RFC 3339.
	UpdatedAfter time.Time
	// Returns only rows updated before this time, RFC 3339.
	UpdatedBefore time.Time
	// Returns only quotes with one of these statuses, separated by commas. At most 10.
	Status []QuoteFilterStatus
	// Returns only the row with this number. Not case-sensitive.
	Number string
	// Returns only rows for this customer, `cu_…`.
	CustomerID string
	// Returns only rows for this lead, `ld_…`.
	LeadID string
	// Returns only rows for this booking, `bk_…`.
	BookingID string
	// Returns only rows that have exactly these pairs, such as `metadata[order]=17`. At most 10 pairs.
	Metadata map[string]string
	// Related resources to add to each row, separated by commas. Each requires its own read scope.
	Expand []QuoteExpandableResource
}

func (p QuotesListCSVParams) encode(q *query) {
	q.text("sort", string(p.Sort))
	q.time("created_after", p.CreatedAfter)
	q.time("created_before", p.CreatedBefore)
	q.time("updated_after", p.UpdatedAfter)
	q.time("updated_before", p.UpdatedBefore)
	join(q, "status", p.Status)
	q.text("number", p.Number)
	q.text("customer_id", p.CustomerID)
	q.text("lead_id", p.LeadID)
	q.text("booking_id", p.BookingID)
	q.pairs("metadata", p.Metadata)
	join(q, "expand", p.Expand)
}

// ListCSV returns all matching rows in one document (RFC 4180, UTF-8), at most 100,000. If the transfer fails, discard
// what you received.
//
// Requires the scope read:quotes. Errors: [ErrTenantSuspended].
func (a *QuotesAPI) ListCSV(ctx context.Context, params QuotesListCSVParams, options ...Option) (*Document, error) {
	return document(ctx, a.c, call{method: "GET", path: "/quotes", params: params, accept: "text/csv"}, options)
}

// Create creates a draft quote from `line_items` or from `package_id`. With `package_id`, the quote has one line with
// the package's price on `event_date`. It also has the package's deposit unless you send `deposit_amount`. Triggers the
// `quote.created` event.
//
// Requires the scope write:quotes. Errors: [ErrTenantSuspended].
func (a *QuotesAPI) Create(ctx context.Context, body QuoteCreate, options ...Option) (*Quote, error) {
	return one[Quote](ctx, a.c, call{method: "POST", path: "/quotes", body: body, key: true, strict: true}, options)
}

// QuotesGetParams are the parameters of Get. Parameters without a value are not sent.
type QuotesGetParams struct {
	// Related resources to add to each row, separated by commas. Each requires its own read scope.
	Expand []QuoteExpandableResource
}

func (p QuotesGetParams) encode(q *query) {
	join(q, "expand", p.Expand)
}

// Get returns one quote. `expand=customer` adds the customer and also requires `read:customers`; `expand=lead` adds the
// lead and requires `read:leads`.
//
// Requires the scope read:quotes. Errors: [ErrTenantSuspended], [ErrQuoteNotFound].
func (a *QuotesAPI) Get(ctx context.Context, id string, params QuotesGetParams, options ...Option) (*Quote, error) {
	return one[Quote](ctx, a.c, call{method: "GET", path: "/quotes/{id}", ids: []string{id}, params: params}, options)
}

// Update updates a quote. Fields that you leave out stay unchanged. After the quote is sent, you can change only
// `notes` and `metadata`.
//
// Requires the scope write:quotes. Errors: [ErrTenantSuspended], [ErrQuoteNotFound], [ErrVersionMismatch].
func (a *QuotesAPI) Update(ctx context.Context, id string, body QuoteUpdate, options ...Option) (*Quote, error) {
	return one[Quote](ctx, a.c, call{method: "PATCH", path: "/quotes/{id}", ids: []string{id}, body: body, key: true, strict: true}, options)
}

// Delete permanently deletes a draft quote. The response for a quote in another status is 422
// `invalid_status_transition`. Earlier events about the draft stay, but their personal fields are cleared, as in stored
// responses for Idempotency-Keys.
//
// Requires the scope write:quotes. Errors: [ErrTenantSuspended], [ErrQuoteNotFound], [ErrVersionMismatch],
// [ErrInvalidStatusTransition].
func (a *QuotesAPI) Delete(ctx context.Context, id string, options ...Option) error {
	return none(ctx, a.c, call{method: "DELETE", path: "/quotes/{id}", ids: []string{id}}, options)
}

// Send changes a draft to `sent`, so the customer can accept it. Requires `event_date`. Without `expires_at`, the quote
// expires at the end of the 14th day, and at the latest before the event. The platform sends no email: deliver the
// quote to the customer yourself. The quote's lead becomes `quoted` if it is not yet. Sending a sent quote again
// changes nothing and returns 200.
//
// Requires the scope write:quotes. Errors: [ErrTenantSuspended], [ErrQuoteNotFound], [ErrVersionMismatch],
// [ErrInvalidStatusTransition].
func (a *QuotesAPI) Send(ctx context.Context, id string, options ...Option) (*Quote, error) {
	return one[Quote](ctx, a.c, call{method: "POST", path: "/quotes/{id}/send", ids: []string{id}, key: true, strict: true}, options)
}

// Accept accepts a sent quote: creates the booking, reserves its unit, and opens an invoice for the deposit, or for the
// total if there is no deposit. Either all of it happens or none of it. If the unit is taken, the response is 409
// `slot_unavailable` and the quote stays `sent`. If an earlier accept was interrupted and its booking has since been
// cancelled or expired, no invoice is opened. The response is then 422 `invalid_status_transition` with the reason, and
// the quote stays `sent`. A concurrent accept waits up to 5 seconds. Accepting an accepted quote changes nothing and
// returns 200. No scope for bookings or invoices is required. Triggers the `quote.accepted`, `booking.created` and
// `invoice.created` events.
//
// Requires the scope write:quotes. Errors: [ErrTenantSuspended], [ErrQuoteNotFound], [ErrSlotUnavailable],
// [ErrVersionMismatch], [ErrInvalidStatusTransition].
func (a *QuotesAPI) Accept(ctx context.Context, id string, options ...Option) (*Quote, error) {
	return one[Quote](ctx, a.c, call{method: "POST", path: "/quotes/{id}/accept", ids: []string{id}, key: true, strict: true}, options)
}

// Decline declines a sent quote. Declining a declined quote again changes nothing and returns 200.
//
// Requires the scope write:quotes. Errors: [ErrTenantSuspended], [ErrQuoteNotFound], [ErrVersionMismatch],
// [ErrInvalidStatusTransition].
func (a *QuotesAPI) Decline(ctx context.Context, id string, body QuoteDecline, options ...Option) (*Quote, error) {
	return one[Quote](ctx, a.c, call{method: "POST", path: "/quotes/{id}/decline", ids: []string{id}, body: body, key: true, strict: true}, options)
}

// Cancel cancels a draft or sent quote. Cancelling a cancelled quote again changes nothing and returns 200.
//
// Requires the scope write:quotes. Errors: [ErrTenantSuspended], [ErrQuoteNotFound], [ErrVersionMismatch],
// [ErrInvalidStatusTransition].
func (a *QuotesAPI) Cancel(ctx context.Context, id string, options ...Option) (*Quote, error) {
	return one[Quote](ctx, a.c, call{method: "POST", path: "/quotes/{id}/cancel", ids: []string{id}, key: true, strict: true}, options)
}

// GetPDF returns the quote as a PDF with the operator's logo, legal name, address, tax ID and bank account, for the
// current customer. It is printed in the language of the customer's `locale`, else of the operator's settings, else of
// the operator's country (English, German or French, else English), on US Letter paper if the operator's country, or
// else the customer's, is US, CA or MX, and otherwise on A4. You can also download a draft. The PDF has at most 60
// pages: longer descriptions, notes and terms are cut and end with `…`. If the tenant generates too many documents at
// the same time, the response is 429 `rate_limited`.
//
// Requires the scope read:quotes. Errors: [ErrTenantSuspended], [ErrQuoteNotFound].
func (a *QuotesAPI) GetPDF(ctx context.Context, id string, options ...Option) (*Document, error) {
	return document(ctx, a.c, call{method: "GET", path: "/quotes/{id}/pdf", ids: []string{id}, accept: "application/pdf"}, options)
}

// InvoicesAPI has the operations on invoices.
type InvoicesAPI struct{ c *Client }

// InvoicesListParams are the parameters of List. Parameters without a value are not sent.
type InvoicesListParams struct {
	// Maximum number of rows on the page, 1 to 100. A page also ends, with has_more true, when its rows exceed 2 MiB.
	Limit int
	// The next_cursor of the previous page. Send it unchanged, with the same filters. An empty cursor returns the first
	// page.
	Cursor string
	// Order of the rows.
	Sort SortOrder
	// Returns only rows created at or after this time, RFC 3339.
	CreatedAfter time.Time
	// Returns only rows created before this time, RFC 3339.
	CreatedBefore time.Time
	// Returns only rows updated at or after this time, RFC 3339.
	UpdatedAfter time.Time
	// Returns only rows updated before this time, RFC 3339.
	UpdatedBefore time.Time
	// Returns only invoices with one of these statuses, separated by commas. At most 10.
	Status []InvoiceStatus
	// Returns only overdue invoices (`true`) or only invoices that are not overdue (`false`).
	Overdue *bool
	// Returns only the row with this number. Not case-sensitive.
	Number string
	// Returns only rows for this customer, `cu_…`.
	CustomerID string
	// Returns only rows for this booking, `bk_…`.
	BookingID string
	// Returns only invoices due before this time, RFC 3339.
	DueBefore time.Time
	// Returns only rows that have exactly these pairs, such as `metadata[order]=17`. At most 10 pairs.
	Metadata map[string]string
	// Related resources to add to each row, separated by commas. Each requires its own read scope.
	Expand []ExpandableResource
}

func (p InvoicesListParams) encode(q *query) {
	q.number("limit", p.Limit)
	q.text("cursor", p.Cursor)
	q.text("sort", string(p.Sort))
	q.time("created_after", p.CreatedAfter)
	q.time("created_before", p.CreatedBefore)
	q.time("updated_after", p.UpdatedAfter)
	q.time("updated_before", p.UpdatedBefore)
	join(q, "status", p.Status)
	q.flag("overdue", p.Overdue)
	q.text("number", p.Number)
	q.text("customer_id", p.CustomerID)
	q.text("booking_id", p.BookingID)
	q.time("due_before", p.DueBefore)
	q.pairs("metadata", p.Metadata)
	join(q, "expand", p.Expand)
}

// List iterates over invoices, newest first. To keep a copy in sync, use `sort=updated_at`: it lists the oldest change
// first and skips none. `expand=customer` adds each customer and also requires `read:customers`.
//
// The iteration gets a page when it needs its first row, and ends after an error.
//
// Requires the scope read:invoices. Errors: [ErrTenantSuspended].
func (a *InvoicesAPI) List(ctx context.Context, params InvoicesListParams, options ...Option) iter.Seq2[Invoice, error] {
	return all(func(cursor string) (*Page[Invoice], error) {
		if cursor != "" {
			params.Cursor = cursor
		}
		return a.ListPage(ctx, params, options...)
	})
}

// ListPage gets one page. The NextCursor of a page is the Cursor of the next one.
func (a *InvoicesAPI) ListPage(ctx context.Context, params InvoicesListParams, options ...Option) (*Page[Invoice], error) {
	return one[Page[Invoice]](ctx, a.c, call{method: "GET", path: "/invoices", params: params}, options)
}

// InvoicesListCSVParams are the parameters of ListCSV. Parameters without a value are not sent.
type InvoicesListCSVParams struct {
	// Order of the rows.
	Sort SortOrder
	// Returns only rows created at or after this time, RFC 3339.
	CreatedAfter time.Time
	// Returns only rows created before this time, RFC 3339.
	CreatedBefore time.Time
	// Returns only rows updated at or after this time, RFC 3339.
	UpdatedAfter time.Time
	// Returns only rows updated before this time, RFC 3339.
	UpdatedBefore time.Time
	// Returns only invoices with one of these statuses, separated by commas. At most 10.
	Status []InvoiceStatus
	// Returns only overdue invoices (`true`) or only invoices that are not overdue (`false`).
	Overdue *bool
	// Returns only the row with this number. Not case-sensitive.
	Number string
	// Returns only rows for this customer, `cu_…`.
	CustomerID string
	// Returns only rows for this booking, `bk_…`.
	BookingID string
	// Returns only invoices due before this time, RFC 3339.
	DueBefore time.Time
	// Returns only rows that have exactly these pairs, such as `metadata[order]=17`. At most 10 pairs.
	Metadata map[string]string
	// Related resources to add to each row, separated by commas. Each requires its own read scope.
	Expand []ExpandableResource
}

func (p InvoicesListCSVParams) encode(q *query) {
	q.text("sort", string(p.Sort))
	q.time("created_after", p.CreatedAfter)
	q.time("created_before", p.CreatedBefore)
	q.time("updated_after", p.UpdatedAfter)
	q.time("updated_before", p.UpdatedBefore)
	join(q, "status", p.Status)
	q.flag("overdue", p.Overdue)
	q.text("number", p.Number)
	q.text("customer_id", p.CustomerID)
	q.text("booking_id", p.BookingID)
	q.time("due_before", p.DueBefore)
	q.pairs("metadata", p.Metadata)
	join(q, "expand", p.Expand)
}

// ListCSV returns all matching rows in one document (RFC 4180, UTF-8), at most 100,000. If the transfer fails, discard
// what you received.
//
// Requires the scope read:invoices. Errors: [ErrTenantSuspended].
func (a *InvoicesAPI) ListCSV(ctx context.Context, params InvoicesListCSVParams, options ...Option) (*Document, error) {
	return document(ctx, a.c, call{method: "GET", path: "/invoices", params: params, accept: "text/csv"}, options)
}

// Create creates a draft invoice from `customer_id` and `line_items`. With `booking_id` and the `kind` `balance`, you
// can leave out both. The invoice then repeats the lines of the booking's quote or, without a quote, has one line for
// its package. A negative line deducts each opened invoice of the booking with its taxes, so that over all invoices
// each tax equals that of the quote. Drafts are not deducted. An invoice of a booking is in the currency of the
// booking. Triggers the `invoice.created` event.
//
// Requires the scope write:invoices. Errors: [ErrTenantSuspended].
func (a *InvoicesAPI) Create(ctx context.Context, body InvoiceCreate, options ...Option) (*Invoice, error) {
	return one[Invoice](ctx, a.c, call{method: "POST", path: "/invoices", body: body, key: true, strict: true}, options)
}

// InvoicesGetParams are the parameters of Get. Parameters without a value are not sent.
type InvoicesGetParams struct {
	// Related resources to add to each row, separated by commas. Each requires its own read scope.
	Expand []ExpandableResource
}

func (p InvoicesGetParams) encode(q *query) {
	join(q, "expand", p.Expand)
}

// Get returns one invoice. `expand=customer` adds the customer and also requires `read:customers`.
//
// Requires the scope read:invoices. Errors: [ErrTenantSuspended], [ErrInvoiceNotFound].
func (a *InvoicesAPI) Get(ctx context.Context, id string, params InvoicesGetParams, options ...Option) (*Invoice, error) {
	return one[Invoice](ctx, a.c, call{method: "GET", path: "/invoices/{id}", ids: []string{id}, params: params}, options)
}

// Update updates an invoice. Fields that you leave out stay unchanged. After the invoice is opened, you can change only
// `due_at`, `notes` and `metadata`.
//
// Requires the scope write:invoices. Errors: [ErrTenantSuspended], [ErrInvoiceNotFound], [ErrVersionMismatch].
func (a *InvoicesAPI) Update(ctx context.Context, id string, body InvoiceUpdate, options ...Option) (*Invoice, error) {
	return one[Invoice](ctx, a.c, call{method: "PATCH", path: "/invoices/{id}", ids: []string{id}, body: body, key: true, strict: true}, options)
}

// Delete permanently deletes a draft invoice. The response for an invoice in another status is 422
// `invalid_status_transition`. Earlier events about the draft stay, but their personal fields are cleared, as in stored
// responses for Idempotency-Keys.
//
// Requires the scope write:invoices. Errors: [ErrTenantSuspended], [ErrInvoiceNotFound], [ErrVersionMismatch],
// [ErrInvalidStatusTransition].
func (a *InvoicesAPI) Delete(ctx context.Context, id string, options ...Option) error {
	return none(ctx, a.c, call{method: "DELETE", path: "/invoices/{id}", ids: []string{id}}, options)
}

// Open opens a draft invoice: assigns the next number without gaps, freezes the lines, and stores the customer's name
// and address with the invoice. An invoice with a total of 0 becomes `paid` immediately. Opening an opened invoice
// again changes nothing and returns 200. The lines of a balance invoice that was created without lines are written
// again, from the current price of the booking and its opened invoices. If nothing is left to invoice, the response is
// 422 on `booking_id`. Other invoices have no such limit. Triggers the `invoice.paid` event if nothing is due.
//
// Requires the scope write:invoices. Errors: [ErrTenantSuspended], [ErrInvoiceNotFound], [ErrVersionMismatch],
// [ErrInvalidStatusTransition].
func (a *InvoicesAPI) Open(ctx context.Context, id string, options ...Option) (*Invoice, error) {
	return one[Invoice](ctx, a.c, call{method: "POST", path: "/invoices/{id}/open", ids: []string{id}, key: true, strict: true}, options)
}

// Void voids an open or uncollectible invoice that has no payments. Its number is not reused. Voiding a void invoice
// again changes nothing and returns 200.
//
// Requires the scope write:invoices. Errors: [ErrTenantSuspended], [ErrInvoiceNotFound], [ErrVersionMismatch],
// [ErrInvalidStatusTransition].
func (a *InvoicesAPI) Void(ctx context.Context, id string, options ...Option) (*Invoice, error) {
	return one[Invoice](ctx, a.c, call{method: "POST", path: "/invoices/{id}/void", ids: []string{id}, key: true, strict: true}, options)
}

// MarkUncollectible marks an open or partially paid invoice as unlikely to be paid. It can still be paid in full, or
// voided if nothing is paid. Marking it again changes nothing and returns 200.
//
// Requires the scope write:invoices. Errors: [ErrTenantSuspended], [ErrInvoiceNotFound], [ErrVersionMismatch],
// [ErrInvalidStatusTransition].
func (a *InvoicesAPI) MarkUncollectible(ctx context.Context, id string, options ...Option) (*Invoice, error) {
	return one[Invoice](ctx, a.c, call{method: "POST", path: "/invoices/{id}/mark-uncollectible", ids: []string{id}, key: true, strict: true}, options)
}

// RecordPayment records a payment that was made outside the payment gateway, up to the amount due. An uncollectible
// invoice keeps its status until nothing is due. If the invoice has a `booking_id`, the payment also counts as paid on
// the booking and confirms a pending booking according to the booking policy. An invoice can have at most 100 recorded
// payments, including reversed ones. Triggers the `invoice.paid` event when nothing is due.
//
// Requires the scope write:invoices. Errors: [ErrTenantSuspended], [ErrInvoiceNotFound], [ErrVersionMismatch],
// [ErrInvalidStatusTransition], [ErrLimitReached].
func (a *InvoicesAPI) RecordPayment(ctx context.Context, id string, body InvoicePaymentCreate, options ...Option) (*Invoice, error) {
	return one[Invoice](ctx, a.c, call{method: "POST", path: "/invoices/{id}/record-payment", ids: []string{id}, body: body, key: true, strict: true}, options)
}

// ReversePayment reverses a recorded payment. It stays in `payments` with `reversed_at` and no longer counts, on the
// booking either. You can reverse only payments with the source `manual`. Reversing a payment again changes nothing and
// returns 200.
//
// Requires the scope write:invoices. Errors: [ErrTenantSuspended], [ErrInvoiceNotFound], [ErrInvoicePaymentNotFound],
// [ErrVersionMismatch], [ErrInvalidStatusTransition].
func (a *InvoicesAPI) ReversePayment(ctx context.Context, id string, paymentID string, options ...Option) (*Invoice, error) {
	return one[Invoice](ctx, a.c, call{method: "POST", path: "/invoices/{id}/payments/{payment_id}/reverse", ids: []string{id, paymentID}, key: true, strict: true}, options)
}

// GetPDF returns the invoice as a PDF with the operator's logo, legal name, address, tax ID and bank account, the due
// date, and the date and method of the last 20 payments. It shows the recipient as of the time when the invoice was
// opened; a draft shows the current customer. It is printed in the language of the customer's `locale`, else of the
// operator's settings, else of the operator's country (English, German or French, else English), on US Letter paper if
// the operator's country, or else the customer's, is US, CA or MX, and otherwise on A4. The PDF has at most 60 pages:
// longer descriptions, notes and terms are cut and end with `…`. If the tenant generates too many documents at the
// same time, the response is 429 `rate_limited`.
//
// Requires the scope read:invoices. Errors: [ErrTenantSuspended], [ErrInvoiceNotFound].
func (a *InvoicesAPI) GetPDF(ctx context.Context, id string, options ...Option) (*Document, error) {
	return document(ctx, a.c, call{method: "GET", path: "/invoices/{id}/pdf", ids: []string{id}, accept: "application/pdf"}, options)
}

// CreateCreditNote credits all or part of an opened invoice, and gives the credit note the next number without gaps.
// Send `line_items` or `amount`; without both, it credits everything that no credit note has credited yet. All credit
// notes of an invoice together never exceed its total: otherwise the response is 422 on `amount`. A credit note first
// reduces `amount_due`. `refund` determines what happens to the amount that was paid beyond the new total: `gateway`
// refunds it to the cards that paid the invoice and also requires `payments:write`, except payments that a payer
// disputes: if others do not cover the refund, the response is 422 `payment_disputed`. `manual` records that you have
// refunded it yourself, and `none` leaves it on the invoice. Refunds in progress are `refund_pending`. Repeating the
// request with the same Idempotency-Key creates one credit note and one refund, even when processes crash. An invoice
// on which nothing is due by credit alone becomes `credited`. If a payment and a credit together cover an invoice, it
// becomes `paid` and triggers the `invoice.paid` event.
//
// Requires the scope write:invoices. Errors: [ErrTenantSuspended], [ErrInvoiceNotFound], [ErrVersionMismatch],
// [ErrInvalidStatusTransition], [ErrLimitReached], [ErrPaymentDisputed].
func (a *InvoicesAPI) CreateCreditNote(ctx context.Context, id string, body CreditNoteCreate, options ...Option) (*CreditNote, error) {
	return one[CreditNote](ctx, a.c, call{method: "POST", path: "/invoices/{id}/credit-notes", ids: []string{id}, body: body, key: true, strict: true}, options)
}

// CreditNotesAPI has the operations on credit notes.
type CreditNotesAPI struct{ c *Client }

// CreditNotesListParams are the parameters of List. Parameters without a value are not sent.
type CreditNotesListParams struct {
	// Maximum number of rows on the page, 1 to 100. A page also ends, with has_more true, when its rows exceed 2 MiB.
	Limit int
	// The next_cursor of the previous page. Send it unchanged, with the same filters. An empty cursor returns the first
	// page.
	Cursor string
	// Order of the rows.
	Sort SortOrder
	// Returns only rows created at or after this time, RFC 3339.
	CreatedAfter time.Time
	// Returns only rows created before this time, RFC 3339.
	CreatedBefore time.Time
	// Returns only rows updated at or after this time, RFC 3339.
	UpdatedAfter time.Time
	// Returns only rows updated before this time, RFC 3339.
	UpdatedBefore time.Time
	// Returns only rows for this invoice, `inv_…`.
	InvoiceID string
	// Returns only rows for this customer, `cu_…`.
	CustomerID string
	// Returns only rows for this booking, `bk_…`.
	BookingID string
}

func (p CreditNotesListParams) encode(q *query) {
	q.number("limit", p.Limit)
	q.text("cursor", p.Cursor)
	q.text("sort", string(p.Sort))
	q.time("created_after", p.CreatedAfter)
	q.time("created_before", p.CreatedBefore)
	q.time("updated_after", p.UpdatedAfter)
	q.time("updated_before", p.UpdatedBefore)
	q.text("invoice_id", p.InvoiceID)
	q.text("customer_id", p.CustomerID)
	q.text("booking_id", p.BookingID)
}

// List iterates over credit notes, newest first. To keep a copy in sync, use `sort=updated_at`: it lists the oldest
// change first and skips none.
//
// The iteration gets a page when it needs its first row, and ends after an error.
//
// Requires the scope read:invoices. Errors: [ErrTenantSuspended].
func (a *CreditNotesAPI) List(ctx context.Context, params CreditNotesListParams, options ...Option) iter.Seq2[CreditNote, error] {
	return all(func(cursor string) (*Page[CreditNote], error) {
		if cursor != "" {
			params.Cursor = cursor
		}
		return a.ListPage(ctx, params, options...)
	})
}

// ListPage gets one page. The NextCursor of a page is the Cursor of the next one.
func (a *CreditNotesAPI) ListPage(ctx context.Context, params CreditNotesListParams, options ...Option) (*Page[CreditNote], error) {
	return one[Page[CreditNote]](ctx, a.c, call{method: "GET", path: "/credit-notes", params: params}, options)
}

// Get returns one credit note.
//
// Requires the scope read:invoices. Errors: [ErrTenantSuspended], [ErrCreditNoteNotFound].
func (a *CreditNotesAPI) Get(ctx context.Context, id string, options ...Option) (*CreditNote, error) {
	return one[CreditNote](ctx, a.c, call{method: "GET", path: "/credit-notes/{id}", ids: []string{id}}, options)
}

// GetPDF returns the credit note as a PDF with the number of its invoice. The operator, the recipient, the language,
// the paper and the limits are those of the invoice's PDF. If the tenant generates too many documents at the same time,
// the response is 429 `rate_limited`.
//
// Requires the scope read:invoices. Errors: [ErrTenantSuspended], [ErrCreditNoteNotFound].
func (a *CreditNotesAPI) GetPDF(ctx context.Context, id string, options ...Option) (*Document, error) {
	return document(ctx, a.c, call{method: "GET", path: "/credit-notes/{id}/pdf", ids: []string{id}, accept: "application/pdf"}, options)
}

// PaymentIntentsAPI has the operations on payment intents.
type PaymentIntentsAPI struct{ c *Client }

// PaymentIntentsListParams are the parameters of List. Parameters without a value are not sent.
type PaymentIntentsListParams struct {
	// Maximum number of rows on the page, 1 to 100. A page also ends, with has_more true, when its rows exceed 2 MiB.
	Limit int
	// The next_cursor of the previous page. Send it unchanged, with the same filters. An empty cursor returns the first
	// page.
	Cursor string
	// Order of the rows.
	Sort SortOrder
	// Returns only rows created at or after this time, RFC 3339.
	CreatedAfter time.Time
	// Returns only rows created before this time, RFC 3339.
	CreatedBefore time.Time
	// Returns only rows updated at or after this time, RFC 3339.
	UpdatedAfter time.Time
	// Returns only rows updated before this time, RFC 3339.
	UpdatedBefore time.Time
	// Returns only payment intents with one of these statuses, separated by commas. At most 10.
	Status []PaymentIntentStatus
	// Returns only rows for this booking, `bk_…`.
	BookingID string
	// Returns only rows that have exactly these pairs, such as `metadata[order]=17`. At most 10 pairs.
	Metadata map[string]string
}

func (p PaymentIntentsListParams) encode(q *query) {
	q.number("limit", p.Limit)
	q.text("cursor", p.Cursor)
	q.text("sort", string(p.Sort))
	q.time("created_after", p.CreatedAfter)
	q.time("created_before", p.CreatedBefore)
	q.time("updated_after", p.UpdatedAfter)
	q.time("updated_before", p.UpdatedBefore)
	join(q, "status", p.Status)
	q.text("booking_id", p.BookingID)
	q.pairs("metadata", p.Metadata)
}

// List iterates over payment intents, newest first. To keep a copy in sync, use `sort=updated_at`: it lists the oldest
// change first and skips none.
//
// The iteration gets a page when it needs its first row, and ends after an error.
//
// Requires the scope payments:read. Errors: [ErrTenantSuspended].
func (a *PaymentIntentsAPI) List(ctx context.Context, params PaymentIntentsListParams, options ...Option) iter.Seq2[PaymentIntent, error] {
	return all(func(cursor string) (*Page[PaymentIntent], error) {
		if cursor != "" {
			params.Cursor = cursor
		}
		return a.ListPage(ctx, params, options...)
	})
}

// ListPage gets one page. The NextCursor of a page is the Cursor of the next one.
func (a *PaymentIntentsAPI) ListPage(ctx context.Context, params PaymentIntentsListParams, options ...Option) (*Page[PaymentIntent], error) {
	return one[Page[PaymentIntent]](ctx, a.c, call{method: "GET", path: "/payment-intents", params: params}, options)
}

// Create starts a card payment for a booking on the operator's account at the payment gateway. Without `amount_minor`,
// the amount is what is outstanding on the booking, or on the invoice if you send `invoice_id`. Only this response
// contains the `client_secret` that Stripe.js needs in the browser; a retry with the same Idempotency-Key returns it
// again. Retries with the same key create only one payment, even when processes crash. Nothing is charged yet: the
// `payment.succeeded` event reports when the customer has paid.
//
// Requires the scope payments:write. Errors: [ErrTenantSuspended], [ErrBookingNotFound], [ErrBookingAlreadyPaid],
// [ErrBookingNotPayable], [ErrCurrencyMismatch], [ErrPaymentIntentFailed].
func (a *PaymentIntentsAPI) Create(ctx context.Context, body PaymentIntentCreate, options ...Option) (*PaymentIntent, error) {
	return one[PaymentIntent](ctx, a.c, call{method: "POST", path: "/payment-intents", body: body, key: true, strict: true}, options)
}

// Get returns one payment intent by the payment gateway's ID, without its client secret. If the operator has no account
// at a payment gateway in this mode, the response is 409 `gateway_not_configured` for any ID.
//
// Requires the scope payments:read. Errors: [ErrTenantSuspended], [ErrPaymentIntentNotFound],
// [ErrGatewayNotConfigured].
func (a *PaymentIntentsAPI) Get(ctx context.Context, id string, options ...Option) (*PaymentIntent, error) {
	return one[PaymentIntent](ctx, a.c, call{method: "GET", path: "/payment-intents/{id}", ids: []string{id}}, options)
}

// Cancel cancels a payment intent that has not succeeded. It can no longer be paid, and an authorized amount is
// released. If it is being processed or has succeeded, the response is 422 `invalid_status_transition`. Cancelling a
// canceled payment intent again changes nothing and returns 200.
//
// Requires the scope payments:write. Errors: [ErrTenantSuspended], [ErrPaymentIntentNotFound], [ErrVersionMismatch],
// [ErrInvalidStatusTransition], [ErrPaymentIntentFailed].
func (a *PaymentIntentsAPI) Cancel(ctx context.Context, id string, options ...Option) (*PaymentIntent, error) {
	return one[PaymentIntent](ctx, a.c, call{method: "POST", path: "/payment-intents/{id}/cancel", ids: []string{id}, key: true, strict: true}, options)
}

// Capture captures the money of a payment intent that has the `capture_method` `manual` and the status
// `requires_capture`. Captures the full amount, or `amount_minor` and releases the rest. In any other status, the
// response is 422 `invalid_status_transition`. Repeating a successful capture with the same amount returns 200.
// Triggers the `payment.succeeded` event.
//
// Requires the scope payments:write. Errors: [ErrTenantSuspended], [ErrPaymentIntentNotFound], [ErrVersionMismatch],
// [ErrInvalidStatusTransition], [ErrPaymentIntentFailed].
func (a *PaymentIntentsAPI) Capture(ctx context.Context, id string, body PaymentIntentCapture, options ...Option) (*PaymentIntent, error) {
	return one[PaymentIntent](ctx, a.c, call{method: "POST", path: "/payment-intents/{id}/capture", ids: []string{id}, body: body, key: true, strict: true}, options)
}

// RefundsAPI has the operations on refunds.
type RefundsAPI struct{ c *Client }

// RefundsListParams are the parameters of List. Parameters without a value are not sent.
type RefundsListParams struct {
	// Maximum number of rows on the page, 1 to 100. A page also ends, with has_more true, when its rows exceed 2 MiB.
	Limit int
	// The next_cursor of the previous page. Send it unchanged, with the same filters. An empty cursor returns the first
	// page.
	Cursor string
	// Order of the rows.
	Sort SortOrder
	// Returns only rows created at or after this time, RFC 3339.
	CreatedAfter time.Time
	// Returns only rows created before this time, RFC 3339.
	CreatedBefore time.Time
	// Returns only rows updated at or after this time, RFC 3339.
	UpdatedAfter time.Time
	// Returns only rows updated before this time, RFC 3339.
	UpdatedBefore time.Time
	// Returns only refunds with one of these statuses, separated by commas. At most 10.
	Status []RefundStatus
	// Returns only rows for this booking, `bk_…`.
	BookingID string
	// Returns only rows for this payment intent, `pi_…`.
	PaymentIntentID string
	// Returns only rows that have exactly these pairs, such as `metadata[order]=17`. At most 10 pairs.
	Metadata map[string]string
}

func (p RefundsListParams) encode(q *query) {
	q.number("limit", p.Limit)
	q.text("cursor", p.Cursor)
	q.text("sort", string(p.Sort))
	q.time("created_after", p.CreatedAfter)
	q.time("created_before", p.CreatedBefore)
	q.time("updated_after", p.UpdatedAfter)
	q.time("updated_before", p.UpdatedBefore)
	join(q, "status", p.Status)
	q.text("booking_id", p.BookingID)
	q.text("payment_intent_id", p.PaymentIntentID)
	q.pairs("metadata", p.Metadata)
}

// List iterates over refunds, newest first. To keep a copy in sync, use `sort=updated_at`: it lists the oldest change
// first and skips none.
//
// The iteration gets a page when it needs its first row, and ends after an error.
//
// Requires the scope payments:read. Errors: [ErrTenantSuspended].
func (a *RefundsAPI) List(ctx context.Context, params RefundsListParams, options ...Option) iter.Seq2[Refund, error] {
	return all(func(cursor string) (*Page[Refund], error) {
		if cursor != "" {
			params.Cursor = cursor
		}
		return a.ListPage(ctx, params, options...)
	})
}

// ListPage gets one page. The NextCursor of a page is the Cursor of the next one.
func (a *RefundsAPI) ListPage(ctx context.Context, params RefundsListParams, options ...Option) (*Page[Refund], error) {
	return one[Page[Refund]](ctx, a.c, call{method: "GET", path: "/refunds", params: params}, options)
}

// Create refunds card payments to the card that paid: one payment intent, or the payments of a booking, newest first
// and at most 20. With `method` `cash`, `bank_transfer` or `other`, it records money that you have handed back to the
// payer of a booking. Without `amount_minor`, it refunds everything that is left to refund. Refunds never exceed the
// amount received, by card and otherwise, even with concurrent requests. Retries with the same Idempotency-Key create
// only one refund, even when processes crash. If the payment gateway refuses every part, the response is 502, and
// nothing is refunded. Refunding a payment that a payer disputes returns 422 `payment_disputed`. If it refuses some
// parts, the response is 201 and `allocations` shows which. The `amount_refunded` of the payment intents and of the
// booking is updated shortly afterwards.
//
// Requires the scope payments:write. Errors: [ErrTenantSuspended], [ErrBookingNotFound], [ErrPaymentIntentNotFound],
// [ErrNothingToRefund], [ErrPaymentDisputed], [ErrPaymentIntentFailed].
func (a *RefundsAPI) Create(ctx context.Context, body RefundCreate, options ...Option) (*Refund, error) {
	return one[Refund](ctx, a.c, call{method: "POST", path: "/refunds", body: body, key: true, strict: true}, options)
}

// Get returns one refund.
//
// Requires the scope payments:read. Errors: [ErrTenantSuspended], [ErrRefundNotFound].
func (a *RefundsAPI) Get(ctx context.Context, id string, options ...Option) (*Refund, error) {
	return one[Refund](ctx, a.c, call{method: "GET", path: "/refunds/{id}", ids: []string{id}}, options)
}

// ServicesAPI has the operations on services.
type ServicesAPI struct{ c *Client }

// ServicesListParams are the parameters of List. Parameters without a value are not sent.
type ServicesListParams struct {
	// Maximum number of rows on the page, 1 to 100. A page also ends, with has_more true, when its rows exceed 2 MiB.
	Limit int
	// The next_cursor of the previous page. Send it unchanged, with the same filters. An empty cursor returns the first
	// page.
	Cursor string
	// Order of the rows.
	Sort SortOrder
	// Returns only rows created at or after this time, RFC 3339.
	CreatedAfter time.Time
	// Returns only rows created before this time, RFC 3339.
	CreatedBefore time.Time
	// Returns only rows updated at or after this time, RFC 3339.
	UpdatedAfter time.Time
	// Returns only rows updated before this time, RFC 3339.
	UpdatedBefore time.Time
	// Returns only active rows (`true`) or only inactive rows (`false`).
	Active *bool
	// Returns only rows for this service, `srv_…`.
	ServiceID string
}

func (p ServicesListParams) encode(q *query) {
	q.number("limit", p.Limit)
	q.text("cursor", p.Cursor)
	q.text("sort", string(p.Sort))
	q.time("created_after", p.CreatedAfter)
	q.time("created_before", p.CreatedBefore)
	q.time("updated_after", p.UpdatedAfter)
	q.time("updated_before", p.UpdatedBefore)
	q.flag("active", p.Active)
	q.text("service_id", p.ServiceID)
}

// List iterates over the operator's services, newest first. To keep a copy in sync, use `sort=updated_at`: it lists the
// oldest change first and skips none.
//
// The iteration gets a page when it needs its first row, and ends after an error.
//
// Requires the scope read:services. Errors: [ErrTenantSuspended].
func (a *ServicesAPI) List(ctx context.Context, params ServicesListParams, options ...Option) iter.Seq2[Service, error] {
	return all(func(cursor string) (*Page[Service], error) {
		if cursor != "" {
			params.Cursor = cursor
		}
		return a.ListPage(ctx, params, options...)
	})
}

// ListPage gets one page. The NextCursor of a page is the Cursor of the next one.
func (a *ServicesAPI) ListPage(ctx context.Context, params ServicesListParams, options ...Option) (*Page[Service], error) {
	return one[Page[Service]](ctx, a.c, call{method: "GET", path: "/services", params: params}, options)
}

// Create creates a service. A tenant can have at most 200 active and 2,000 inactive services per mode. Exceeding either
// limit, also through an update, returns 422 `limit_reached` on `name`.
//
// Requires the scope write:services. Errors: [ErrTenantSuspended], [ErrLimitReached].
func (a *ServicesAPI) Create(ctx context.Context, body ServiceCreate, options ...Option) (*Service, error) {
	return one[Service](ctx, a.c, call{method: "POST", path: "/services", body: body, key: true, strict: true}, options)
}

// Get returns one service.
//
// Requires the scope read:services. Errors: [ErrTenantSuspended], [ErrServiceNotFound].
func (a *ServicesAPI) Get(ctx context.Context, id string, options ...Option) (*Service, error) {
	return one[Service](ctx, a.c, call{method: "GET", path: "/services/{id}", ids: []string{id}}, options)
}

// Update updates a service. Existing bookings keep their times. Fields that you leave out stay unchanged. A tenant can
// have at most 200 active and 2,000 inactive services per mode. Exceeding either limit returns 422 `limit_reached` on
// `name`.
//
// Requires the scope write:services. Errors: [ErrTenantSuspended], [ErrServiceNotFound], [ErrVersionMismatch],
// [ErrLimitReached].
func (a *ServicesAPI) Update(ctx context.Context, id string, body ServiceUpdate, options ...Option) (*Service, error) {
	return one[Service](ctx, a.c, call{method: "PATCH", path: "/services/{id}", ids: []string{id}, body: body, key: true, strict: true}, options)
}

// UnitsAPI has the operations on units.
type UnitsAPI struct{ c *Client }

// UnitsListParams are the parameters of List. Parameters without a value are not sent.
type UnitsListParams struct {
	// Maximum number of rows on the page, 1 to 100. A page also ends, with has_more true, when its rows exceed 2 MiB.
	Limit int
	// The next_cursor of the previous page. Send it unchanged, with the same filters. An empty cursor returns the first
	// page.
	Cursor string
	// Order of the rows.
	Sort SortOrder
	// Returns only rows created at or after this time, RFC 3339.
	CreatedAfter time.Time
	// Returns only rows created before this time, RFC 3339.
	CreatedBefore time.Time
	// Returns only rows updated at or after this time, RFC 3339.
	UpdatedAfter time.Time
	// Returns only rows updated before this time, RFC 3339.
	UpdatedBefore time.Time
	// Returns only active rows (`true`) or only inactive rows (`false`).
	Active *bool
	// Returns only rows for this service, `srv_…`.
	ServiceID string
}

func (p UnitsListParams) encode(q *query) {
	q.number("limit", p.Limit)
	q.text("cursor", p.Cursor)
	q.text("sort", string(p.Sort))
	q.time("created_after", p.CreatedAfter)
	q.time("created_before", p.CreatedBefore)
	q.time("updated_after", p.UpdatedAfter)
	q.time("updated_before", p.UpdatedBefore)
	q.flag("active", p.Active)
	q.text("service_id", p.ServiceID)
}

// List iterates over the units that can be booked, newest first. To keep a copy in sync, use `sort=updated_at`: it
// lists the oldest change first and skips none.
//
// The iteration gets a page when it needs its first row, and ends after an error.
//
// Requires the scope read:units. Errors: [ErrTenantSuspended].
func (a *UnitsAPI) List(ctx context.Context, params UnitsListParams, options ...Option) iter.Seq2[Unit, error] {
	return all(func(cursor string) (*Page[Unit], error) {
		if cursor != "" {
			params.Cursor = cursor
		}
		return a.ListPage(ctx, params, options...)
	})
}

// ListPage gets one page. The NextCursor of a page is the Cursor of the next one.
func (a *UnitsAPI) ListPage(ctx context.Context, params UnitsListParams, options ...Option) (*Page[Unit], error) {
	return one[Page[Unit]](ctx, a.c, call{method: "GET", path: "/units", params: params}, options)
}

// Create creates a unit. It is always open unless you set `opening_hours`. A tenant can have at most 2,000 units that
// are not retired and 20,000 retired units per mode. Exceeding either limit, also through an update, returns 422
// `limit_reached` on `name`.
//
// Requires the scope write:units. Errors: [ErrTenantSuspended], [ErrLimitReached].
func (a *UnitsAPI) Create(ctx context.Context, body UnitCreate, options ...Option) (*Unit, error) {
	return one[Unit](ctx, a.c, call{method: "POST", path: "/units", body: body, key: true, strict: true}, options)
}

// Get returns one unit.
//
// Requires the scope read:units. Errors: [ErrTenantSuspended], [ErrUnitNotFound].
func (a *UnitsAPI) Get(ctx context.Context, id string, options ...Option) (*Unit, error) {
	return one[Unit](ctx, a.c, call{method: "GET", path: "/units/{id}", ids: []string{id}}, options)
}

// Update updates a unit. Existing bookings keep their unit. Fields that you leave out stay unchanged. A tenant can have
// at most 2,000 units that are not retired and 20,000 retired units per mode. Exceeding either limit returns 422
// `limit_reached` on `name`.
//
// Requires the scope write:units. Errors: [ErrTenantSuspended], [ErrUnitNotFound], [ErrVersionMismatch],
// [ErrLimitReached].
func (a *UnitsAPI) Update(ctx context.Context, id string, body UnitUpdate, options ...Option) (*Unit, error) {
	return one[Unit](ctx, a.c, call{method: "PATCH", path: "/units/{id}", ids: []string{id}, body: body, key: true, strict: true}, options)
}

// PackagesAPI has the operations on packages.
type PackagesAPI struct{ c *Client }

// PackagesListParams are the parameters of List. Parameters without a value are not sent.
type PackagesListParams struct {
	// Maximum number of rows on the page, 1 to 100. A page also ends, with has_more true, when its rows exceed 2 MiB.
	Limit int
	// The next_cursor of the previous page. Send it unchanged, with the same filters. An empty cursor returns the first
	// page.
	Cursor string
	// Order of the rows.
	Sort SortOrder
	// Returns only rows created at or after this time, RFC 3339.
	CreatedAfter time.Time
	// Returns only rows created before this time, RFC 3339.
	CreatedBefore time.Time
	// Returns only rows updated at or after this time, RFC 3339.
	UpdatedAfter time.Time
	// Returns only rows updated before this time, RFC 3339.
	UpdatedBefore time.Time
	// Returns only active rows (`true`) or only inactive rows (`false`).
	Active *bool
	// Returns only rows for this service, `srv_…`.
	ServiceID string
}

func (p PackagesListParams) encode(q *query) {
	q.number("limit", p.Limit)
	q.text("cursor", p.Cursor)
	q.text("sort", string(p.Sort))
	q.time("created_after", p.CreatedAfter)
	q.time("created_before", p.CreatedBefore)
	q.time("updated_after", p.UpdatedAfter)
	q.time("updated_before", p.UpdatedBefore)
	q.flag("active", p.Active)
	q.text("service_id", p.ServiceID)
}

// List iterates over packages, including hidden ones, newest first. To keep a copy in sync, use `sort=updated_at`: it
// lists the oldest change first and skips none.
//
// The iteration gets a page when it needs its first row, and ends after an error.
//
// Requires the scope read:services. Errors: [ErrTenantSuspended].
func (a *PackagesAPI) List(ctx context.Context, params PackagesListParams, options ...Option) iter.Seq2[Package, error] {
	return all(func(cursor string) (*Page[Package], error) {
		if cursor != "" {
			params.Cursor = cursor
		}
		return a.ListPage(ctx, params, options...)
	})
}

// ListPage gets one page. The NextCursor of a page is the Cursor of the next one.
func (a *PackagesAPI) ListPage(ctx context.Context, params PackagesListParams, options ...Option) (*Page[Package], error) {
	return one[Page[Package]](ctx, a.c, call{method: "GET", path: "/packages", params: params}, options)
}

// Create creates a package: a service at a price, with an optional deposit. A tenant can have at most 500 active and
// 5,000 inactive packages per mode. Exceeding either limit, also through an update, returns 422 `limit_reached` on
// `name`.
//
// Requires the scope write:services. Errors: [ErrTenantSuspended], [ErrLimitReached].
func (a *PackagesAPI) Create(ctx context.Context, body PackageCreate, options ...Option) (*Package, error) {
	return one[Package](ctx, a.c, call{method: "POST", path: "/packages", body: body, key: true, strict: true}, options)
}

// Get returns one package.
//
// Requires the scope read:services. Errors: [ErrTenantSuspended], [ErrPackageNotFound].
func (a *PackagesAPI) Get(ctx context.Context, id string, options ...Option) (*Package, error) {
	return one[Package](ctx, a.c, call{method: "GET", path: "/packages/{id}", ids: []string{id}}, options)
}

// Update updates a package. Existing bookings keep their price. Fields that you leave out stay unchanged. A tenant can
// have at most 500 active and 5,000 inactive packages per mode. Exceeding either limit returns 422 `limit_reached` on
// `name`.
//
// Requires the scope write:services. Errors: [ErrTenantSuspended], [ErrPackageNotFound], [ErrVersionMismatch],
// [ErrLimitReached].
func (a *PackagesAPI) Update(ctx context.Context, id string, body PackageUpdate, options ...Option) (*Package, error) {
	return one[Package](ctx, a.c, call{method: "PATCH", path: "/packages/{id}", ids: []string{id}, body: body, key: true, strict: true}, options)
}

// HolidayRulesAPI has the operations on holiday rules.
type HolidayRulesAPI struct{ c *Client }

// HolidayRulesListParams are the parameters of List. Parameters without a value are not sent.
type HolidayRulesListParams struct {
	// Maximum number of rows on the page, 1 to 100. A page also ends, with has_more true, when its rows exceed 2 MiB.
	Limit int
	// The next_cursor of the previous page. Send it unchanged, with the same filters. An empty cursor returns the first
	// page.
	Cursor string
	// Order of the rows.
	Sort SortOrder
	// Returns only rows created at or after this time, RFC 3339.
	CreatedAfter time.Time
	// Returns only rows created before this time, RFC 3339.
	CreatedBefore time.Time
	// Returns only rows updated at or after this time, RFC 3339.
	UpdatedAfter time.Time
	// Returns only rows updated before this time, RFC 3339.
	UpdatedBefore time.Time
	// Returns only active rows (`true`) or only inactive rows (`false`).
	Active *bool
}

func (p HolidayRulesListParams) encode(q *query) {
	q.number("limit", p.Limit)
	q.text("cursor", p.Cursor)
	q.text("sort", string(p.Sort))
	q.time("created_after", p.CreatedAfter)
	q.time("created_before", p.CreatedBefore)
	q.time("updated_after", p.UpdatedAfter)
	q.time("updated_before", p.UpdatedBefore)
	q.flag("active", p.Active)
}

// List iterates over holiday rules, newest first. To keep a copy in sync, use `sort=updated_at`: it lists the oldest
// change first and skips none.
//
// The iteration gets a page when it needs its first row, and ends after an error.
//
// Requires the scope read:services. Errors: [ErrTenantSuspended].
func (a *HolidayRulesAPI) List(ctx context.Context, params HolidayRulesListParams, options ...Option) iter.Seq2[HolidayRule, error] {
	return all(func(cursor string) (*Page[HolidayRule], error) {
		if cursor != "" {
			params.Cursor = cursor
		}
		return a.ListPage(ctx, params, options...)
	})
}

// ListPage gets one page. The NextCursor of a page is the Cursor of the next one.
func (a *HolidayRulesAPI) ListPage(ctx context.Context, params HolidayRulesListParams, options ...Option) (*Page[HolidayRule], error) {
	return one[Page[HolidayRule]](ctx, a.c, call{method: "GET", path: "/holiday-rules", params: params}, options)
}

// Create creates a rule that multiplies prices on certain days. If several rules match a day, the one with the highest
// priority applies. On a tie, a rule for the package takes precedence over a rule for the service, then over a rule for
// all; then the shorter range applies, then the lower ID. A tenant can have at most 200 active and 2,000 inactive
// holiday rules per mode. Exceeding either limit, also through an update, returns 422 `limit_reached` on `name`.
//
// Requires the scope write:services. Errors: [ErrTenantSuspended], [ErrLimitReached].
func (a *HolidayRulesAPI) Create(ctx context.Context, body HolidayRuleCreate, options ...Option) (*HolidayRule, error) {
	return one[HolidayRule](ctx, a.c, call{method: "POST", path: "/holiday-rules", body: body, key: true, strict: true}, options)
}

// Get returns one holiday rule.
//
// Requires the scope read:services. Errors: [ErrTenantSuspended], [ErrHolidayRuleNotFound].
func (a *HolidayRulesAPI) Get(ctx context.Context, id string, options ...Option) (*HolidayRule, error) {
	return one[HolidayRule](ctx, a.c, call{method: "GET", path: "/holiday-rules/{id}", ids: []string{id}}, options)
}

// Update updates a holiday rule. Existing bookings keep their price. Fields that you leave out stay unchanged. A tenant
// can have at most 200 active and 2,000 inactive holiday rules per mode. Exceeding either limit returns 422
// `limit_reached` on `name`.
//
// Requires the scope write:services. Errors: [ErrTenantSuspended], [ErrHolidayRuleNotFound], [ErrVersionMismatch],
// [ErrLimitReached].
func (a *HolidayRulesAPI) Update(ctx context.Context, id string, body HolidayRuleUpdate, options ...Option) (*HolidayRule, error) {
	return one[HolidayRule](ctx, a.c, call{method: "PATCH", path: "/holiday-rules/{id}", ids: []string{id}, body: body, key: true, strict: true}, options)
}

// ClosuresAPI has the operations on closures.
type ClosuresAPI struct{ c *Client }

// ClosuresListParams are the parameters of List. Parameters without a value are not sent.
type ClosuresListParams struct {
	// Maximum number of rows on the page, 1 to 100. A page also ends, with has_more true, when its rows exceed 2 MiB.
	Limit int
	// The next_cursor of the previous page. Send it unchanged, with the same filters. An empty cursor returns the first
	// page.
	Cursor string
	// Order of the rows.
	Sort SortOrder
	// Returns only rows created at or after this time, RFC 3339.
	CreatedAfter time.Time
	// Returns only rows created before this time, RFC 3339.
	CreatedBefore time.Time
	// Returns only rows updated at or after this time, RFC 3339.
	UpdatedAfter time.Time
	// Returns only rows updated before this time, RFC 3339.
	UpdatedBefore time.Time
	// Returns only closures that close this unit, `un_…`, including closures of all units.
	UnitID string
	// Returns only closures that end after the start of this day in the operator's time zone.
	From string
	// Returns only closures that start before the end of this day in the operator's time zone.
	To string
}

func (p ClosuresListParams) encode(q *query) {
	q.number("limit", p.Limit)
	q.text("cursor", p.Cursor)
	q.text("sort", string(p.Sort))
	q.time("created_after", p.CreatedAfter)
	q.time("created_before", p.CreatedBefore)
	q.time("updated_after", p.UpdatedAfter)
	q.time("updated_before", p.UpdatedBefore)
	q.text("unit_id", p.UnitID)
	q.text("from", p.From)
	q.text("to", p.To)
}

// List iterates over closures, newest first, without their `conflicting_booking_ids`. To keep a copy in sync, use
// `sort=updated_at`: it lists the oldest change first and skips none. A deleted closure disappears from the list.
//
// The iteration gets a page when it needs its first row, and ends after an error.
//
// Requires the scope read:units. Errors: [ErrTenantSuspended].
func (a *ClosuresAPI) List(ctx context.Context, params ClosuresListParams, options ...Option) iter.Seq2[Closure, error] {
	return all(func(cursor string) (*Page[Closure], error) {
		if cursor != "" {
			params.Cursor = cursor
		}
		return a.ListPage(ctx, params, options...)
	})
}

// ListPage gets one page. The NextCursor of a page is the Cursor of the next one.
func (a *ClosuresAPI) ListPage(ctx context.Context, params ClosuresListParams, options ...Option) (*Page[Closure], error) {
	return one[Page[Closure]](ctx, a.c, call{method: "GET", path: "/closures", params: params}, options)
}

// Create closes some or all units for whole days, with date_from and date_to, or for a time, with starts_at and
// ends_at. From then on, a booking whose own time overlaps the closure cannot be created, and none can be moved into
// it: both return 409 `slot_unavailable`. Buffers can extend into a closure. Bookings that already overlap it stay, and
// `conflicting_booking_ids` lists them. A tenant can have at most 1,000 closures that have not ended and 10,000 that
// have ended per mode. Exceeding either limit returns 422 `limit_reached` on `name`.
//
// Requires the scope write:units. Errors: [ErrTenantSuspended], [ErrLimitReached].
func (a *ClosuresAPI) Create(ctx context.Context, body ClosureCreate, options ...Option) (*Closure, error) {
	return one[Closure](ctx, a.c, call{method: "POST", path: "/closures", body: body, key: true, strict: true}, options)
}

// Get returns one closure with the bookings that overlap it now.
//
// Requires the scope read:units. Errors: [ErrTenantSuspended], [ErrClosureNotFound].
func (a *ClosuresAPI) Get(ctx context.Context, id string, options ...Option) (*Closure, error) {
	return one[Closure](ctx, a.c, call{method: "GET", path: "/closures/{id}", ids: []string{id}}, options)
}

// Update updates a closure. Fields that you leave out stay unchanged. Send starts_at and ends_at to replace the dates,
// or date_from and date_to to replace the times. As on creation, bookings that overlap the closure stay, and the
// response lists them. A tenant can have at most 1,000 closures that have not ended and 10,000 that have ended per
// mode. Exceeding either limit returns 422 `limit_reached` on `name`.
//
// Requires the scope write:units. Errors: [ErrTenantSuspended], [ErrClosureNotFound], [ErrVersionMismatch],
// [ErrLimitReached].
func (a *ClosuresAPI) Update(ctx context.Context, id string, body ClosureUpdate, options ...Option) (*Closure, error) {
	return one[Closure](ctx, a.c, call{method: "PATCH", path: "/closures/{id}", ids: []string{id}, body: body, key: true, strict: true}, options)
}

// Delete deletes a closure. Its units can be booked again at once.
//
// Requires the scope write:units. Errors: [ErrTenantSuspended], [ErrClosureNotFound], [ErrVersionMismatch].
func (a *ClosuresAPI) Delete(ctx context.Context, id string, options ...Option) error {
	return none(ctx, a.c, call{method: "DELETE", path: "/closures/{id}", ids: []string{id}}, options)
}

// AvailabilityAPI has the operations on availability.
type AvailabilityAPI struct{ c *Client }

// AvailabilityListParams are the parameters of List. Parameters without a value are not sent.
type AvailabilityListParams struct {
	// First day, in the operator's time zone.
	From string
	// Last day, inclusive, in the operator's time zone. The range has at most 62 days.
	To string
	// Returns only rows for this service, `srv_…`.
	ServiceID string
	// Returns only rows for this unit, `un_…`.
	UnitID string
	// Returns only rows for this package, `pkg_…`.
	PackageID string
}

func (p AvailabilityListParams) encode(q *query) {
	q.text("from", p.From)
	q.text("to", p.To)
	q.text("service_id", p.ServiceID)
	q.text("unit_id", p.UnitID)
	q.text("package_id", p.PackageID)
}

// List returns each day of a range of at most 62 days, with its units and their slots. You can book every slot with the
// status `available`; `price_from` is the lowest price on that day. A response is limited to 20,000 slots, 20,000 unit
// days, 8 MiB and 100,000 bookings. If the range exceeds a limit, the response is 422 on `to`: request fewer days or a
// single unit.
//
// Requires the scope read:services. Errors: [ErrTenantSuspended].
func (a *AvailabilityAPI) List(ctx context.Context, params AvailabilityListParams, options ...Option) (*Page[AvailabilityDay], error) {
	return one[Page[AvailabilityDay]](ctx, a.c, call{method: "GET", path: "/availability", params: params}, options)
}

// AvailabilityExplainParams are the parameters of Explain. Parameters without a value are not sent.
type AvailabilityExplainParams struct {
	// ID of the unit to check, `un_…`.
	UnitID string
	// Start of the slot: RFC 3339 with any UTC offset.
	StartsAt string
}

func (p AvailabilityExplainParams) encode(q *query) {
	q.text("unit_id", p.UnitID)
	q.text("starts_at", p.StartsAt)
}

// Explain returns whether a unit can be booked at a given time, and if not, the first reason.
//
// Requires the scope read:services. Errors: [ErrTenantSuspended].
func (a *AvailabilityAPI) Explain(ctx context.Context, params AvailabilityExplainParams, options ...Option) (*AvailabilityExplanation, error) {
	return one[AvailabilityExplanation](ctx, a.c, call{method: "GET", path: "/availability/explain", params: params}, options)
}

// BookingsAPI has the operations on bookings.
type BookingsAPI struct{ c *Client }

// BookingsListParams are the parameters of List. Parameters without a value are not sent.
type BookingsListParams struct {
	// Maximum number of rows on the page, 1 to 100. A page also ends, with has_more true, when its rows exceed 2 MiB.
	Limit int
	// The next_cursor of the previous page. Send it unchanged, with the same filters. An empty cursor returns the first
	// page.
	Cursor string
	// Order of the rows.
	Sort BookingSortOrder
	// Returns only rows created at or after this time, RFC 3339.
	CreatedAfter time.Time
	// Returns only rows created before this time, RFC 3339.
	CreatedBefore time.Time
	// Returns only rows updated at or after this time, RFC 3339.
	UpdatedAfter time.Time
	// Returns only rows updated before this time, RFC 3339.
	UpdatedBefore time.Time
	// Returns only bookings with one of these statuses, separated by commas. At most 10.
	Status []BookingFilterStatus
	// Returns only bookings with one of these payment statuses, separated by commas. At most 10.
	PaymentStatus []PaymentStatus
	// Returns only the row with this number. Not case-sensitive.
	Number string
	// Returns only rows for this customer, `cu_…`.
	CustomerID string
	// Returns only rows for this service, `srv_…`.
	ServiceID string
	// Returns only rows for this unit, `un_…`.
	UnitID string
	// Returns only rows for this package, `pkg_…`.
	PackageID string
	// Returns only bookings with exactly this event_type, at most 100 characters.
	EventType string
	// Returns only bookings on or after this local day. A booking that spans several days matches on each of them. A
	// booking that ends at midnight does not include the day that starts then.
	EventDateFrom string
	// Returns only bookings on or before this local day.
	EventDateTo string
	// Returns only bookings that start at or after this time, RFC 3339. A booking without times starts when its day starts.
	StartsAfter time.Time
	// Returns only bookings that start before this time, RFC 3339.
	StartsBefore time.Time
	// Returns only rows that have exactly these pairs, such as `metadata[order]=17`. At most 10 pairs.
	Metadata map[string]string
	// Related resources to add to each row, separated by commas. Each requires its own read scope.
	Expand []ExpandableResource
}

func (p BookingsListParams) encode(q *query) {
	q.number("limit", p.Limit)
	q.text("cursor", p.Cursor)
	q.text("sort", string(p.Sort))
	q.time("created_after", p.CreatedAfter)
	q.time("created_before", p.CreatedBefore)
	q.time("updated_after", p.UpdatedAfter)
	q.time("updated_before", p.UpdatedBefore)
	join(q, "status", p.Status)
	join(q, "payment_status", p.PaymentStatus)
	q.text("number", p.Number)
	q.text("customer_id", p.CustomerID)
	q.text("service_id", p.ServiceID)
	q.text("unit_id", p.UnitID)
	q.text("package_id", p.PackageID)
	q.text("event_type", p.EventType)
	q.text("event_date_from", p.EventDateFrom)
	q.text("event_date_to", p.EventDateTo)
	q.time("starts_after", p.StartsAfter)
	q.time("starts_before", p.StartsBefore)
	q.pairs("metadata", p.Metadata)
	join(q, "expand", p.Expand)
}

// List iterates over bookings, newest first. To keep a copy in sync, use `sort=updated_at`: it lists the oldest change
// first and skips none. For a schedule, use `sort=starts_at` with `starts_after` and `starts_before`. `expand=customer`
// adds each customer and also requires `read:customers`.
//
// The iteration gets a page when it needs its first row, and ends after an error.
//
// Requires the scope read:bookings. Errors: [ErrTenantSuspended].
func (a *BookingsAPI) List(ctx context.Context, params BookingsListParams, options ...Option) iter.Seq2[Booking, error] {
	return all(func(cursor string) (*Page[Booking], error) {
		if cursor != "" {
			params.Cursor = cursor
		}
		return a.ListPage(ctx, params, options...)
	})
}

// ListPage gets one page. The NextCursor of a page is the Cursor of the next one.
func (a *BookingsAPI) ListPage(ctx context.Context, params BookingsListParams, options ...Option) (*Page[Booking], error) {
	return one[Page[Booking]](ctx, a.c, call{method: "GET", path: "/bookings", params: params}, options)
}

// BookingsListCSVParams are the parameters of ListCSV. Parameters without a value are not sent.
type BookingsListCSVParams struct {
	// Order of the rows.
	Sort BookingSortOrder
	// Returns only rows created at or after this time, RFC 3339.
	CreatedAfter time.Time
	// Returns only rows created before this time, RFC 3339.
	CreatedBefore time.Time
	// Returns only rows updated at or after this time, RFC 3339.
	UpdatedAfter time.Time
	// Returns only rows updated before this time, RFC 3339.
	UpdatedBefore time.Time
	// Returns only bookings with one of these statuses, separated by commas. At most 10.
	Status []BookingFilterStatus
	// Returns only bookings with one of these payment statuses, separated by commas. At most 10.
	PaymentStatus []PaymentStatus
	// Returns only the row with this number. Not case-sensitive.
	Number string
	// Returns only rows for this customer, `cu_…`.
	CustomerID string
	// Returns only rows for this service, `srv_…`.
	ServiceID string
	// Returns only rows for this unit, `un_…`.
	UnitID string
	// Returns only rows for this package, `pkg_…`.
	PackageID string
	// Returns only bookings with exactly this event_type, at most 100 characters.
	EventType string
	// Returns only bookings on or after this local day. A booking that spans several days matches on each of them. A
	// booking that ends at midnight does not include the day that starts then.
	EventDateFrom string
	// Returns only bookings on or before this local day.
	EventDateTo string
	// Returns only bookings that start at or after this time, RFC 3339. A booking without times starts when its day starts.
	StartsAfter time.Time
	// Returns only bookings that start before this time, RFC 3339.
	StartsBefore time.Time
	// Returns only rows that have exactly these pairs, such as `metadata[order]=17`. At most 10 pairs.
	Metadata map[string]string
	// Related resources to add to each row, separated by commas. Each requires its own read scope.
	Expand []ExpandableResource
}

func (p BookingsListCSVParams) encode(q *query) {
	q.text("sort", string(p.Sort))
	q.time("created_after", p.CreatedAfter)
	q.time("created_before", p.CreatedBefore)
	q.time("updated_after", p.UpdatedAfter)
	q.time("updated_before", p.UpdatedBefore)
	join(q, "status", p.Status)
	join(q, "payment_status", p.PaymentStatus)
	q.text("number", p.Number)
	q.text("customer_id", p.CustomerID)
	q.text("service_id", p.ServiceID)
	q.text("unit_id", p.UnitID)
	q.text("package_id", p.PackageID)
	q.text("event_type", p.EventType)
	q.text("event_date_from", p.EventDateFrom)
	q.text("event_date_to", p.EventDateTo)
	q.time("starts_after", p.StartsAfter)
	q.time("starts_before", p.StartsBefore)
	q.pairs("metadata", p.Metadata)
	join(q, "expand", p.Expand)
}

// ListCSV returns all matching rows in one document (RFC 4180, UTF-8), at most 100,000. If the transfer fails, discard
// what you received.
//
// Requires the scope read:bookings. Errors: [ErrTenantSuspended].
func (a *BookingsAPI) ListCSV(ctx context.Context, params BookingsListCSVParams, options ...Option) (*Document, error) {
	return document(ctx, a.c, call{method: "GET", path: "/bookings", params: params, accept: "text/csv"}, options)
}

// Create creates a booking and reserves its unit in one step. Two bookings of a unit never overlap: the second request
// gets 409 `slot_unavailable`. So does a booking that overlaps a closure. On a unit in `seats` mode, the time must be a
// slot that availability offers (else 422 on `event_start_time`), and bookings share the slot until its seats are
// taken: 409 `slot_unavailable` then contains the number of seats that are left in `error.seats_available`. With
// `package_id`, the price comes from the package and the holiday rules of the day. The booking starts as `pending`. It
// starts as `confirmed` if you send that status or if the booking policy confirms automatically. Triggers the
// `booking.created` event.
//
// Requires the scope write:bookings. Errors: [ErrTenantSuspended], [ErrSlotUnavailable].
func (a *BookingsAPI) Create(ctx context.Context, body BookingCreate, options ...Option) (*Booking, error) {
	return one[Booking](ctx, a.c, call{method: "POST", path: "/bookings", body: body, key: true, strict: true}, options)
}

// BookingsGetParams are the parameters of Get. Parameters without a value are not sent.
type BookingsGetParams struct {
	// Related resources to add to each row, separated by commas. Each requires its own read scope.
	Expand []ExpandableResource
}

func (p BookingsGetParams) encode(q *query) {
	join(q, "expand", p.Expand)
}

// Get returns one booking. `expand=customer` adds the customer and also requires `read:customers`.
//
// Requires the scope read:bookings. Errors: [ErrTenantSuspended], [ErrBookingNotFound].
func (a *BookingsAPI) Get(ctx context.Context, id string, params BookingsGetParams, options ...Option) (*Booking, error) {
	return one[Booking](ctx, a.c, call{method: "GET", path: "/bookings/{id}", ids: []string{id}, params: params}, options)
}

// Update updates the time, unit, customer, status, notes or other fields of a booking. Fields that you leave out stay
// unchanged. A new date or number of guests keeps the price (see Reprice a booking); another package recalculates it,
// except on the booking of a quote, where it returns 422 on `quote_id`. On a unit in `seats` mode, the same rules apply
// as when you create a booking. On a `cancelled` or `expired` booking you can change only `notes` and `metadata`. You
// can switch between `completed` and `no_show` for 7 days after the booking ends. Triggers the `booking.updated` or
// `booking.cancelled` event.
//
// Requires the scope write:bookings. Errors: [ErrTenantSuspended], [ErrBookingNotFound], [ErrSlotUnavailable],
// [ErrVersionMismatch], [ErrInvalidStatusTransition].
func (a *BookingsAPI) Update(ctx context.Context, id string, body BookingUpdate, options ...Option) (*Booking, error) {
	return one[Booking](ctx, a.c, call{method: "PATCH", path: "/bookings/{id}", ids: []string{id}, body: body, key: true, strict: true}, options)
}

// Cancel cancels a `pending` or `confirmed` booking and releases its unit. Cancelling a cancelled booking again changes
// nothing and returns 200. Triggers the `booking.cancelled` event.
//
// Requires the scope write:bookings. Errors: [ErrTenantSuspended], [ErrBookingNotFound], [ErrVersionMismatch],
// [ErrInvalidStatusTransition].
func (a *BookingsAPI) Cancel(ctx context.Context, id string, body BookingCancel, options ...Option) (*Booking, error) {
	return one[Booking](ctx, a.c, call{method: "POST", path: "/bookings/{id}/cancel", ids: []string{id}, body: body, key: true, strict: true}, options)
}

// BookingsListPaymentsParams are the parameters of ListPayments. Parameters without a value are not sent.
type BookingsListPaymentsParams struct {
	// Maximum number of rows on the page, 1 to 100. A page also ends, with has_more true, when its rows exceed 2 MiB.
	Limit int
	// The next_cursor of the previous page. Send it unchanged, with the same filters. An empty cursor returns the first
	// page.
	Cursor string
}

func (p BookingsListPaymentsParams) encode(q *query) {
	q.number("limit", p.Limit)
	q.text("cursor", p.Cursor)
}

// ListPayments iterates over the payments for a booking, newest first: card payments through the payment gateway, and
// payments recorded on its invoices. The booking's `amount_paid` and `amount_refunded` are the sums of the payments
// that are in the booking's currency and not reversed.
//
// The iteration gets a page when it needs its first row, and ends after an error.
//
// Requires the scope read:bookings. Errors: [ErrTenantSuspended], [ErrBookingNotFound].
func (a *BookingsAPI) ListPayments(ctx context.Context, id string, params BookingsListPaymentsParams, options ...Option) iter.Seq2[BookingPayment, error] {
	return all(func(cursor string) (*Page[BookingPayment], error) {
		if cursor != "" {
			params.Cursor = cursor
		}
		return a.ListPaymentsPage(ctx, id, params, options...)
	})
}

// ListPaymentsPage gets one page. The NextCursor of a page is the Cursor of the next one.
func (a *BookingsAPI) ListPaymentsPage(ctx context.Context, id string, params BookingsListPaymentsParams, options ...Option) (*Page[BookingPayment], error) {
	return one[Page[BookingPayment]](ctx, a.c, call{method: "GET", path: "/bookings/{id}/payments", ids: []string{id}, params: params}, options)
}

// Reprice recalculates the price of a booking from the current terms of its package, the holiday rules of its day and
// the current default taxes. A booking without a package keeps its price. The booking of a quote keeps the price of the
// quote: the response is 422 on `quote_id`. Payments are not affected.
//
// Requires the scope write:bookings. Errors: [ErrTenantSuspended], [ErrBookingNotFound], [ErrVersionMismatch],
// [ErrInvalidStatusTransition].
func (a *BookingsAPI) Reprice(ctx context.Context, id string, options ...Option) (*Booking, error) {
	return one[Booking](ctx, a.c, call{method: "POST", path: "/bookings/{id}/reprice", ids: []string{id}, key: true, strict: true}, options)
}

// CalendarFeedsAPI has the operations on calendar feeds.
type CalendarFeedsAPI struct{ c *Client }

// CalendarFeedsListParams are the parameters of List. Parameters without a value are not sent.
type CalendarFeedsListParams struct {
	// Maximum number of rows on the page, 1 to 100. A page also ends, with has_more true, when its rows exceed 2 MiB.
	Limit int
	// The next_cursor of the previous page. Send it unchanged, with the same filters. An empty cursor returns the first
	// page.
	Cursor string
	// Order of the rows.
	Sort SortOrder
	// Returns only rows created at or after this time, RFC 3339.
	CreatedAfter time.Time
	// Returns only rows created before this time, RFC 3339.
	CreatedBefore time.Time
	// Returns only rows updated at or after this time, RFC 3339.
	UpdatedAfter time.Time
	// Returns only rows updated before this time, RFC 3339.
	UpdatedBefore time.Time
	// Returns only rows for this unit, `un_…`.
	UnitID string
}

func (p CalendarFeedsListParams) encode(q *query) {
	q.number("limit", p.Limit)
	q.text("cursor", p.Cursor)
	q.text("sort", string(p.Sort))
	q.time("created_after", p.CreatedAfter)
	q.time("created_before", p.CreatedBefore)
	q.time("updated_after", p.UpdatedAfter)
	q.time("updated_before", p.UpdatedBefore)
	q.text("unit_id", p.UnitID)
}

// List iterates over calendar feeds without their URLs, newest first. To keep a copy in sync, use `sort=updated_at`: it
// lists the oldest change first and skips none.
//
// The iteration gets a page when it needs its first row, and ends after an error.
//
// Requires the scope read:bookings. Errors: [ErrTenantSuspended].
func (a *CalendarFeedsAPI) List(ctx context.Context, params CalendarFeedsListParams, options ...Option) iter.Seq2[CalendarFeed, error] {
	return all(func(cursor string) (*Page[CalendarFeed], error) {
		if cursor != "" {
			params.Cursor = cursor
		}
		return a.ListPage(ctx, params, options...)
	})
}

// ListPage gets one page. The NextCursor of a page is the Cursor of the next one.
func (a *CalendarFeedsAPI) ListPage(ctx context.Context, params CalendarFeedsListParams, options ...Option) (*Page[CalendarFeed], error) {
	return one[Page[CalendarFeed]](ctx, a.c, call{method: "GET", path: "/calendar-feeds", params: params}, options)
}

// Create creates a URL where calendar programs read bookings without a credential. Keep the URL secret. Only this
// response contains it. If the URL is lost or leaked, delete the feed and create a new one. The feed ends when the API
// key that created it is revoked, its grant ends, or its operator leaves the tenant: the next read of the URL returns
// 404. If the key is rotated, the feed moves to the new key. A feed that includes details also requires
// `read:customers`. A tenant can have at most 50 feeds per mode; one more returns 422 `limit_reached` on `name`.
//
// Requires the scope write:bookings. Errors: [ErrTenantSuspended], [ErrLimitReached].
func (a *CalendarFeedsAPI) Create(ctx context.Context, body CalendarFeedCreate, options ...Option) (*CalendarFeedWithURL, error) {
	return one[CalendarFeedWithURL](ctx, a.c, call{method: "POST", path: "/calendar-feeds", body: body, key: true, strict: true}, options)
}

// Get returns one calendar feed without its URL.
//
// Requires the scope read:bookings. Errors: [ErrTenantSuspended], [ErrCalendarFeedNotFound].
func (a *CalendarFeedsAPI) Get(ctx context.Context, id string, options ...Option) (*CalendarFeed, error) {
	return one[CalendarFeed](ctx, a.c, call{method: "GET", path: "/calendar-feeds/{id}", ids: []string{id}}, options)
}

// Delete deletes a calendar feed. Its URL then returns 404.
//
// Requires the scope write:bookings. Errors: [ErrTenantSuspended], [ErrCalendarFeedNotFound], [ErrVersionMismatch].
func (a *CalendarFeedsAPI) Delete(ctx context.Context, id string, options ...Option) error {
	return none(ctx, a.c, call{method: "DELETE", path: "/calendar-feeds/{id}", ids: []string{id}}, options)
}

// CalendarFeedsGetCalendarParams are the parameters of GetCalendar. Parameters without a value are not sent.
type CalendarFeedsGetCalendarParams struct {
	// Entity tag of your copy of the calendar. If it is unchanged, the response is 304.
	IfNoneMatch string
}

func (p CalendarFeedsGetCalendarParams) encode(q *query) {
	q.head("If-None-Match", p.IfNoneMatch)
}

// GetCalendar returns the calendar of a feed (RFC 5545) for calendar programs: one event for each booking of the last
// 90 and the next 400 days, in the operator's time zone, and one for each of the first 1,000 closures of that time,
// with a title that starts with `Closed:`. The URL is the credential: an `Authorization` header and all query
// parameters are ignored, except `api_key`, which is always refused. The URL also supports `HEAD`. Pending bookings are
// `TENTATIVE`. Cancelled and expired bookings are `CANCELLED` and `TRANSP:TRANSPARENT`, and their title starts with
// `Cancelled:` or `Expired:`. All others are `CONFIRMED`. The calendar contains personal data only if the feed has
// `include_details`. It has at most 20,000 events and about 7 MiB: the bookings closest to today. You can read a feed
// 60 times in 60 seconds. Further reads, or too many concurrent calendars of the tenant, return 429 `rate_limited`.
//
// Errors: [ErrTenantSuspended], [ErrCalendarFeedNotFound].
func (a *CalendarFeedsAPI) GetCalendar(ctx context.Context, token string, params CalendarFeedsGetCalendarParams, options ...Option) (*Document, error) {
	return document(ctx, a.c, call{method: "GET", path: "/calendar/{token}.ics", ids: []string{token}, params: params, accept: "text/calendar"}, options)
}

// TestClockAPI has the operations on the test clock.
type TestClockAPI struct{ c *Client }

// Get returns the tenant's time in test mode: the frozen time if it is set, otherwise real time. Holds, minimum notice
// and the seven days after an event follow this clock, as do `confirmed_at`, `cancelled_at` and similar fields.
// `created_at`, `updated_at`, event times, rate limits, Idempotency-Keys, signatures and tokens use real time. Live
// mode has no test clock and returns 403 `mode_mismatch`.
//
// Requires the scope write:bookings. Errors: [ErrTenantSuspended].
func (a *TestClockAPI) Get(ctx context.Context, options ...Option) (*TestClock, error) {
	return one[TestClock](ctx, a.c, call{method: "GET", path: "/test-clock"}, options)
}

// Set freezes the clock at `now` for all of the tenant's test keys. The response arrives after all holds and quotes
// that are past their expiry time have expired. If the service for quotes is unavailable, their events follow later.
// The clock moves only forward, from the frozen time or from real time: an earlier time returns 422 on `now`.
//
// Requires the scope write:bookings. Errors: [ErrTenantSuspended].
func (a *TestClockAPI) Set(ctx context.Context, body TestClockSet, options ...Option) (*TestClock, error) {
	return one[TestClock](ctx, a.c, call{method: "POST", path: "/test-clock", body: body, key: true, strict: true}, options)
}

// Delete unfreezes the tenant's clock in test mode. Expired resources stay expired. The response is also 204 if the
// clock is not frozen.
//
// Requires the scope write:bookings. Errors: [ErrTenantSuspended].
func (a *TestClockAPI) Delete(ctx context.Context, options ...Option) error {
	return none(ctx, a.c, call{method: "DELETE", path: "/test-clock"}, options)
}

// WebhookEndpointsAPI has the operations on webhook endpoints.
type WebhookEndpointsAPI struct{ c *Client }

// WebhookEndpointsListParams are the parameters of List. Parameters without a value are not sent.
type WebhookEndpointsListParams struct {
	// Maximum number of rows on the page, 1 to 100. A page also ends, with has_more true, when its rows exceed 2 MiB.
	Limit int
	// The next_cursor of the previous page. Send it unchanged, with the same filters. An empty cursor returns the first
	// page.
	Cursor string
	// Order of the rows.
	Sort SortOrder
	// Returns only rows created at or after this time, RFC 3339.
	CreatedAfter time.Time
	// Returns only rows created before this time, RFC 3339.
	CreatedBefore time.Time
	// Returns only rows updated at or after this time, RFC 3339.
	UpdatedAfter time.Time
	// Returns only rows updated before this time, RFC 3339.
	UpdatedBefore time.Time
	// Returns only endpoints with this status.
	Status WebhookEndpointStatus
}

func (p WebhookEndpointsListParams) encode(q *query) {
	q.number("limit", p.Limit)
	q.text("cursor", p.Cursor)
	q.text("sort", string(p.Sort))
	q.time("created_after", p.CreatedAfter)
	q.time("created_before", p.CreatedBefore)
	q.time("updated_after", p.UpdatedAfter)
	q.time("updated_before", p.UpdatedBefore)
	q.text("status", string(p.Status))
}

// List iterates over webhook endpoints, newest first. To keep a copy in sync, use `sort=updated_at`: it lists the
// oldest change first and skips none.
//
// The iteration gets a page when it needs its first row, and ends after an error.
//
// Requires the scope read:webhooks. Errors: [ErrTenantSuspended].
func (a *WebhookEndpointsAPI) List(ctx context.Context, params WebhookEndpointsListParams, options ...Option) iter.Seq2[WebhookEndpoint, error] {
	return all(func(cursor string) (*Page[WebhookEndpoint], error) {
		if cursor != "" {
			params.Cursor = cursor
		}
		return a.ListPage(ctx, params, options...)
	})
}

// ListPage gets one page. The NextCursor of a page is the Cursor of the next one.
func (a *WebhookEndpointsAPI) ListPage(ctx context.Context, params WebhookEndpointsListParams, options ...Option) (*Page[WebhookEndpoint], error) {
	return one[Page[WebhookEndpoint]](ctx, a.c, call{method: "GET", path: "/webhook-endpoints", params: params}, options)
}

// Create registers your server for event types. The response contains the secret that signs the events; only this
// response and a rotation return a secret. Subscribing to a type requires the read scope of its resource. A tenant can
// have at most 50 endpoints per mode; one more returns 422 `limit_reached` on `url`.
//
// Requires the scope write:webhooks. Errors: [ErrTenantSuspended], [ErrLimitReached].
func (a *WebhookEndpointsAPI) Create(ctx context.Context, body WebhookEndpointCreate, options ...Option) (*WebhookEndpointWithSecret, error) {
	return one[WebhookEndpointWithSecret](ctx, a.c, call{method: "POST", path: "/webhook-endpoints", body: body, key: true, strict: true}, options)
}

// ListEventTypes returns all event types with the scope that each requires.
//
// Requires the scope read:webhooks. Errors: [ErrTenantSuspended].
func (a *WebhookEndpointsAPI) ListEventTypes(ctx context.Context, options ...Option) (*Page[EventTypeInfo], error) {
	return one[Page[EventTypeInfo]](ctx, a.c, call{method: "GET", path: "/webhook-endpoints/event-types"}, options)
}

// Get returns one webhook endpoint without its secret.
//
// Requires the scope read:webhooks. Errors: [ErrTenantSuspended], [ErrWebhookEndpointNotFound].
func (a *WebhookEndpointsAPI) Get(ctx context.Context, id string, options ...Option) (*WebhookEndpoint, error) {
	return one[WebhookEndpoint](ctx, a.c, call{method: "GET", path: "/webhook-endpoints/{id}", ids: []string{id}}, options)
}

// Update updates a webhook endpoint. Fields that you leave out stay unchanged. If you disable an endpoint, its pending
// deliveries fail and no new ones are created. If you enable it, the count of failures is reset; use a replay to
// deliver the missed events. Changing `url`, `status` or `event_types` requires the read scopes of all old and new
// types. The 403 names the first missing scope and takes precedence over 412.
//
// Requires the scope write:webhooks. Errors: [ErrTenantSuspended], [ErrWebhookEndpointNotFound], [ErrVersionMismatch].
func (a *WebhookEndpointsAPI) Update(ctx context.Context, id string, body WebhookEndpointUpdate, options ...Option) (*WebhookEndpoint, error) {
	return one[WebhookEndpoint](ctx, a.c, call{method: "PATCH", path: "/webhook-endpoints/{id}", ids: []string{id}, body: body, key: true, strict: true}, options)
}

// Delete deletes a webhook endpoint. Pending deliveries are dropped.
//
// Requires the scope write:webhooks. Errors: [ErrTenantSuspended], [ErrWebhookEndpointNotFound], [ErrVersionMismatch].
func (a *WebhookEndpointsAPI) Delete(ctx context.Context, id string, options ...Option) error {
	return none(ctx, a.c, call{method: "DELETE", path: "/webhook-endpoints/{id}", ids: []string{id}}, options)
}

// RotateSecret creates a new secret and returns it once. Until the earlier secrets expire, each delivery is signed with
// every active secret. Requires the read scopes of the event types that the endpoint subscribes to.
//
// Requires the scope write:webhooks. Errors: [ErrTenantSuspended], [ErrWebhookEndpointNotFound], [ErrVersionMismatch].
func (a *WebhookEndpointsAPI) RotateSecret(ctx context.Context, id string, body WebhookSecretRotate, options ...Option) (*WebhookEndpointWithSecret, error) {
	return one[WebhookEndpointWithSecret](ctx, a.c, call{method: "POST", path: "/webhook-endpoints/{id}/rotate-secret", ids: []string{id}, body: body, key: true, strict: true}, options)
}

// Test sends a sample event to an endpoint immediately, regardless of its subscription, and returns the delivery. The
// sample appears in the deliveries but not in /events. A disabled endpoint returns 422 on `endpoint_id`.
//
// Requires the scope write:webhooks. Errors: [ErrTenantSuspended], [ErrWebhookEndpointNotFound], [ErrVersionMismatch].
func (a *WebhookEndpointsAPI) Test(ctx context.Context, id string, body WebhookTest, options ...Option) (*Delivery, error) {
	return one[Delivery](ctx, a.c, call{method: "POST", path: "/webhook-endpoints/{id}/test", ids: []string{id}, body: body, key: true, strict: true}, options)
}

// WebhookEndpointsListDeliveriesParams are the parameters of ListDeliveries. Parameters without a value are not sent.
type WebhookEndpointsListDeliveriesParams struct {
	// Maximum number of rows on the page, 1 to 100. A page also ends, with has_more true, when its rows exceed 2 MiB.
	Limit int
	// The next_cursor of the previous page. Send it unchanged, with the same filters. An empty cursor returns the first
	// page.
	Cursor string
	// Order of the rows.
	Sort SortOrder
	// Returns only rows created at or after this time, RFC 3339.
	CreatedAfter time.Time
	// Returns only rows created before this time, RFC 3339.
	CreatedBefore time.Time
	// Returns only rows updated at or after this time, RFC 3339.
	UpdatedAfter time.Time
	// Returns only rows updated before this time, RFC 3339.
	UpdatedBefore time.Time
	// Returns only deliveries with this status.
	Status DeliveryStatus
	// Returns only deliveries of this event type.
	EventType EventType
}

func (p WebhookEndpointsListDeliveriesParams) encode(q *query) {
	q.number("limit", p.Limit)
	q.text("cursor", p.Cursor)
	q.text("sort", string(p.Sort))
	q.time("created_after", p.CreatedAfter)
	q.time("created_before", p.CreatedBefore)
	q.time("updated_after", p.UpdatedAfter)
	q.time("updated_before", p.UpdatedBefore)
	q.text("status", string(p.Status))
	q.text("event_type", string(p.EventType))
}

// ListDeliveries iterates over the deliveries of an endpoint with their attempts. Requires the read scope of
// `event_type`. Without that filter, requires the read scopes of all types that the endpoint subscribes to. Deliveries
// of other types, from a replay or an earlier subscription, appear if the credential has their scope.
//
// The iteration gets a page when it needs its first row, and ends after an error.
//
// Requires the scope read:webhooks. Errors: [ErrTenantSuspended], [ErrWebhookEndpointNotFound].
func (a *WebhookEndpointsAPI) ListDeliveries(ctx context.Context, id string, params WebhookEndpointsListDeliveriesParams, options ...Option) iter.Seq2[Delivery, error] {
	return all(func(cursor string) (*Page[Delivery], error) {
		if cursor != "" {
			params.Cursor = cursor
		}
		return a.ListDeliveriesPage(ctx, id, params, options...)
	})
}

// ListDeliveriesPage gets one page. The NextCursor of a page is the Cursor of the next one.
func (a *WebhookEndpointsAPI) ListDeliveriesPage(ctx context.Context, id string, params WebhookEndpointsListDeliveriesParams, options ...Option) (*Page[Delivery], error) {
	return one[Page[Delivery]](ctx, a.c, call{method: "GET", path: "/webhook-endpoints/{id}/deliveries", ids: []string{id}, params: params}, options)
}

// RetryDelivery attempts a delivery again now, whether it is pending, succeeded or failed. If it is being sent or its
// endpoint is disabled, the response is 422 `invalid_status_transition`. Requires the read scope of its event type.
//
// Requires the scope write:webhooks. Errors: [ErrTenantSuspended], [ErrDeliveryNotFound], [ErrWebhookEndpointNotFound],
// [ErrInvalidStatusTransition].
func (a *WebhookEndpointsAPI) RetryDelivery(ctx context.Context, id string, deliveryID string, options ...Option) (*Delivery, error) {
	return one[Delivery](ctx, a.c, call{method: "POST", path: "/webhook-endpoints/{id}/deliveries/{delivery_id}/retry", ids: []string{id, deliveryID}, key: true, strict: true}, options)
}

// EventsAPI has the operations on events.
type EventsAPI struct{ c *Client }

// EventsListParams are the parameters of List. Parameters without a value are not sent.
type EventsListParams struct {
	// Maximum number of rows on the page, 1 to 100. A page also ends, with has_more true, when its rows exceed 2 MiB.
	Limit int
	// The next_cursor of the previous page. Send it unchanged, with the same filters. An empty cursor returns the first
	// page.
	Cursor string
	// Order of the rows.
	Sort SortOrder
	// Returns only rows created at or after this time, RFC 3339.
	CreatedAfter time.Time
	// Returns only rows created before this time, RFC 3339.
	CreatedBefore time.Time
	// Returns only rows updated at or after this time, RFC 3339.
	UpdatedAfter time.Time
	// Returns only rows updated before this time, RFC 3339.
	UpdatedBefore time.Time
	// Returns only events of these types, separated by commas. At most 13.
	Type []EventType
	// Returns only events about the object with this ID.
	ObjectID string
}

func (p EventsListParams) encode(q *query) {
	q.number("limit", p.Limit)
	q.text("cursor", p.Cursor)
	q.text("sort", string(p.Sort))
	q.time("created_after", p.CreatedAfter)
	q.time("created_before", p.CreatedBefore)
	q.time("updated_after", p.UpdatedAfter)
	q.time("updated_before", p.UpdatedBefore)
	join(q, "type", p.Type)
	q.text("object_id", p.ObjectID)
}

// List iterates over the events of the last 30 days. Reading a type requires the read scope of its resource. Filter the
// list with `type` or `object_id`, or use a credential that has all read scopes.
//
// The iteration gets a page when it needs its first row, and ends after an error.
//
// Requires the scope read:webhooks. Errors: [ErrTenantSuspended].
func (a *EventsAPI) List(ctx context.Context, params EventsListParams, options ...Option) iter.Seq2[Event, error] {
	return all(func(cursor string) (*Page[Event], error) {
		if cursor != "" {
			params.Cursor = cursor
		}
		return a.ListPage(ctx, params, options...)
	})
}

// ListPage gets one page. The NextCursor of a page is the Cursor of the next one.
func (a *EventsAPI) ListPage(ctx context.Context, params EventsListParams, options ...Option) (*Page[Event], error) {
	return one[Page[Event]](ctx, a.c, call{method: "GET", path: "/events", params: params}, options)
}

// EventsStreamParams are the parameters of Stream. Parameters without a value are not sent.
type EventsStreamParams struct {
	// Returns only events of these types, separated by commas. At most 13.
	Type []EventType
	// ID of the last event that you received, `evt_…`. The stream continues after it.
	LastEventID string
}

func (p EventsStreamParams) encode(q *query) {
	join(q, "type", p.Type)
	q.head("Last-Event-ID", p.LastEventID)
}

// Stream streams events as they happen, as server-sent events with `id`, `event` (the type) and `data` (the event). A
// stream starts now, or after the event in `Last-Event-ID`. It ends after several minutes: reconnect with that header.
// It also ends within about a second after its credential has ended or lost a scope. Reading a type requires the read
// scope of its resource. Filter the stream with `type`, or use a credential that has all read scopes. A tenant can have
// at most 100 open streams, and a credential at most 10; one more returns 429.
//
// When a response ends or the connection fails, the iteration continues with the next event. It ends with an error if
// ctx ends or the API refuses the request.
//
// Requires the scope read:webhooks. Errors: [ErrTenantSuspended].
func (a *EventsAPI) Stream(ctx context.Context, params EventsStreamParams, options ...Option) iter.Seq2[Event, error] {
	return stream(ctx, a.c, call{method: "GET", path: "/events/stream", params: params}, params, options)
}

// Get returns one event of the last 30 days. Requires the read scope of its type.
//
// Requires the scope read:webhooks. Errors: [ErrTenantSuspended], [ErrEventNotFound].
func (a *EventsAPI) Get(ctx context.Context, id string, options ...Option) (Event, error) {
	return event(ctx, a.c, call{method: "GET", path: "/events/{id}", ids: []string{id}}, options)
}

// Resend delivers one event of the last 30 days to an endpoint again, regardless of its subscription, and returns the
// new delivery. Requires the read scope of the event's type. A disabled endpoint, or one with 100,000 pending
// deliveries, returns 422 on `endpoint_id`.
//
// Requires the scope write:webhooks. Errors: [ErrTenantSuspended], [ErrEventNotFound].
func (a *EventsAPI) Resend(ctx context.Context, id string, body EventResend, options ...Option) (*Delivery, error) {
	return one[Delivery](ctx, a.c, call{method: "POST", path: "/events/{id}/resend", ids: []string{id}, body: body, key: true, strict: true}, options)
}

// Replay delivers past events to one endpoint again: those of `types`, or those that it subscribes to. Requires their
// read scopes. One call creates at most 10,000 deliveries; more returns 422 on `to`. An endpoint can have at most
// 100,000 pending deliveries; a replay that exceeds this returns 422 on `endpoint_id`, but new events are still
// accepted. A disabled endpoint returns 422 on `endpoint_id`.
//
// Requires the scope write:webhooks. Errors: [ErrTenantSuspended].
func (a *EventsAPI) Replay(ctx context.Context, body EventReplay, options ...Option) (*EventReplayResult, error) {
	return one[EventReplayResult](ctx, a.c, call{method: "POST", path: "/events/replay", body: body, key: true, strict: true}, options)
}

// RequestLogsAPI has the operations on request logs.
type RequestLogsAPI struct{ c *Client }

// RequestLogsListParams are the parameters of List. Parameters without a value are not sent.
type RequestLogsListParams struct {
	// Maximum number of rows on the page, 1 to 100. A page also ends, with has_more true, when its rows exceed 2 MiB.
	Limit int
	// The next_cursor of the previous page. Send it unchanged, with the same filters. An empty cursor returns the first
	// page.
	Cursor string
	// Returns only rows created at or after this time, RFC 3339.
	CreatedAfter time.Time
	// Returns only rows created before this time, RFC 3339.
	CreatedBefore time.Time
	// Returns only requests with this HTTP status, such as `409`, or with a status of this class, such as `4xx`.
	Status string
	// Returns only requests that failed with this error code.
	Code string
	// Returns only requests with this HTTP method.
	Method RequestMethod
	// Returns only requests of this route, a path of this contract such as `/bookings/{id}/cancel`.
	Route string
	// Returns only requests of the API key, `key_…`, or OAuth grant with this ID.
	CredentialID string
	// Returns only requests about the object with this ID: its ID is in their path, or they created it.
	ObjectID string
}

func (p RequestLogsListParams) encode(q *query) {
	q.number("limit", p.Limit)
	q.text("cursor", p.Cursor)
	q.time("created_after", p.CreatedAfter)
	q.time("created_before", p.CreatedBefore)
	q.text("status", p.Status)
	q.text("code", p.Code)
	q.text("method", string(p.Method))
	q.text("route", p.Route)
	q.text("credential_id", p.CredentialID)
	q.text("object_id", p.ObjectID)
}

// List iterates over the logged requests of the last 7 days in the mode of the credential, newest first. The log
// contains every write, every response of 400 or more, and a sample of the successful reads. Of the responses 401 and
// 429, it contains a few per second.
//
// The iteration gets a page when it needs its first row, and ends after an error.
//
// Requires the scope read:webhooks. Errors: [ErrTenantSuspended].
func (a *RequestLogsAPI) List(ctx context.Context, params RequestLogsListParams, options ...Option) iter.Seq2[RequestLog, error] {
	return all(func(cursor string) (*Page[RequestLog], error) {
		if cursor != "" {
			params.Cursor = cursor
		}
		return a.ListPage(ctx, params, options...)
	})
}

// ListPage gets one page. The NextCursor of a page is the Cursor of the next one.
func (a *RequestLogsAPI) ListPage(ctx context.Context, params RequestLogsListParams, options ...Option) (*Page[RequestLog], error) {
	return one[Page[RequestLog]](ctx, a.c, call{method: "GET", path: "/request-logs", params: params}, options)
}

// Get returns one logged request of the last 7 days. A request appears within seconds of its response.
//
// Requires the scope read:webhooks. Errors: [ErrTenantSuspended], [ErrRequestLogNotFound].
func (a *RequestLogsAPI) Get(ctx context.Context, id string, options ...Option) (*RequestLog, error) {
	return one[RequestLog](ctx, a.c, call{method: "GET", path: "/request-logs/{id}", ids: []string{id}}, options)
}
