// Package store is the only layer with SQL. Readers take a pg.Q, writers a pg.Tx. Each statement specifies the caller's tenant and
// mode, and row-level security checks them again.
package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

var customers = pg.NewTable("customers", "c", domain.ErrCustomerNotFound, func(c *domain.Customer) pg.Fields {
	return pg.Fields{
		Fixed: pg.F{"id", &c.ID},
		Values: pg.F{
			"first_name", &c.FirstName, "last_name", &c.LastName, "email", &c.Email, "phone", &c.Phone, "company", &c.Company, "tax_id", &c.TaxID,
			"billing_address", &c.BillingAddress, "country", &c.Country, "locale", &c.Locale, "metadata", pg.Raw(&c.Metadata),
		},
		Written: pg.F{"email_lower", domain.Fold(c.Email)}, // for case-insensitive lookups
		Read:    pg.F{"version", &c.Version, "created_at", &c.CreatedAt, "updated_at", &c.UpdatedAt, "erased_at", &c.ErasedAt},
	}
})

const thisCustomer = `c.id = @id and c.erased_at is null`

var (
	insertCustomer = customers.InsertNow("") + customers.Stamp
	eraseCustomer  = customers.UpdateWith(`erased_at = clock_timestamp(), version = c.version + 1, updated_at = clock_timestamp()`) + customers.Stamp
)

// customerTerms is the table of the search terms by which q finds a customer.
var customerTerms = termTable{name: "customer_words", owner: "customer_id"}

// customerMetadata is the table of the metadata pairs by which lists are filtered.
var customerMetadata = pg.MetadataTable{Name: "customer_metadata", Owner: "customer_id"}

// Customer reads one customer, or returns domain.ErrCustomerNotFound.
func Customer(ctx context.Context, q pg.Q, id domain.CustomerID) (domain.Customer, error) {
	return customers.One(ctx, q, thisCustomer, pg.Args{"id": id})
}

// CustomerForUpdate locks the row until the transaction ends.
func CustomerForUpdate(ctx context.Context, tx pg.Tx, id domain.CustomerID) (domain.Customer, error) {
	return customers.One(ctx, tx, thisCustomer+` for update`, pg.Args{"id": id})
}

// CustomerForShare prevents the erasure of the customer until the transaction ends.
func CustomerForShare(ctx context.Context, tx pg.Tx, id domain.CustomerID) (domain.Customer, error) {
	return customers.One(ctx, tx, thisCustomer+` for share`, pg.Args{"id": id})
}

// CustomersByID reads those customers among ids that exist, in the order of ids, as many as one page can show.
func CustomersByID(ctx context.Context, q pg.Q, ids []domain.CustomerID) (page.Rows[domain.Customer], error) {
	return page.Read(ctx, q, page.Request{Limit: len(ids)}, customers.Scan, `
		select `+customers.Columns+` from unnest(@ids::uuid[]) with ordinality w(id, n)
		join customers c on c.tenant_id = @tenant and c.livemode = @live and c.id = w.id
		where c.erased_at is null order by w.n`, pg.Args{"ids": ids})
}

// CustomerNames returns the names of those customers that exist, by id. An erased customer has none.
func CustomerNames(ctx context.Context, q pg.Q, ids []domain.CustomerID) (map[domain.CustomerID]string, error) {
	list, err := pg.Many(ctx, q, pgx.RowToStructByNameLax[domain.Customer], `
		select c.id, c.first_name, c.last_name from customers c
		where c.tenant_id = @tenant and c.livemode = @live and c.id = any(@ids::uuid[]) and c.erased_at is null`, pg.Args{"ids": ids})
	names := make(map[domain.CustomerID]string, len(list))
	for _, c := range list {
		names[c.ID] = c.Name()
	}
	return names, err
}

// CustomersByEmail reads up to limit customers with an e-mail address, ignoring case, newest first.
func CustomersByEmail(ctx context.Context, q pg.Q, email string, limit int) ([]domain.Customer, error) {
	return customers.Many(ctx, q, `c.email_lower = @email and c.erased_at is null
		order by c.created_at desc, c.id desc limit @limit`, pg.Args{"email": domain.Fold(email), "limit": limit})
}

// CustomersByPhone reads up to limit customers with a telephone number, those that the filter of the list finds. If there are more,
// it reads any of them. It returns none for a number without digits.
func CustomersByPhone(ctx context.Context, q pg.Q, phone string, limit int) ([]domain.Customer, error) {
	if domain.PhoneTerm(phone) == nil {
		return nil, nil
	}
	w := where(CustomerFilter{}, false)
	for _, c := range phoneConditions(&phone) {
		ids := make([]string, len(c.IDs))
		for i, part := range c.IDs { // the limit of each part bounds what is read of its index
			ids[i] = `(` + part + fmt.Sprintf(` limit %d)`, limit)
		}
		w.Add(`c.id = any(array(`+strings.Join(ids, ` union `)+`))`, c.Args...)
	}
	tail, args := w.Page(page.Request{Limit: limit - 1}, "c") // it reads one row more than a page has
	return pg.Many(ctx, q, customers.Scan, customers.Select+tail, args...)
}

// InsertCustomer writes a new customer and returns it with version and times.
func InsertCustomer(ctx context.Context, tx pg.Tx, c domain.Customer) (domain.Customer, error) {
	return writeCustomer(ctx, tx, insertCustomer, c)
}

// UpdateCustomer writes all fields of a customer that the transaction has locked. It increments the version, and returns the
// customer with the new version and time.
func UpdateCustomer(ctx context.Context, tx pg.Tx, c domain.Customer) (domain.Customer, error) {
	return writeCustomer(ctx, tx, customers.Update, c)
}

// EraseCustomer clears every column that a client can set, for a customer that the transaction has locked. It returns the rest of the
// customer. The row stays.
func EraseCustomer(ctx context.Context, tx pg.Tx, id domain.CustomerID) (domain.Customer, error) {
	return writeCustomer(ctx, tx, eraseCustomer, domain.Customer{ID: id})
}

// writeCustomer sends the statement and those of the customer's indexes in one round trip.
func writeCustomer(ctx context.Context, tx pg.Tx, sql string, c domain.Customer) (domain.Customer, error) {
	b := &pgx.Batch{}
	b.Queue(sql+`, c.erased_at`, customers.Args(c)).QueryRow(pg.Into(&c.Version, &c.CreatedAt, &c.UpdatedAt, &c.ErasedAt))
	if sql != insertCustomer {
		customerTerms.queueDelete(b, c.ID)
		customerMetadata.QueueDelete(b, c.ID)
	}
	if sql != eraseCustomer {
		customerTerms.queueInsert(b, c.ID, c.SearchTerms())
		customerMetadata.QueueInsert(b, c.ID, c.Metadata)
	}
	return pg.SendFor(ctx, tx, b, "write customer", &c)
}

// CustomerFilter selects customers of a list. Nil and empty fields select all.
type CustomerFilter struct {
	Email    *string           // ignores case
	Phone    *string           // compares digits, as domain.PhoneTerm does
	Search   string            // each token: a prefix of a term of name, e-mail or company, or a part of the phone number
	Metadata map[string]string // exact pairs
}

// Customers reads one page. Sorted by update, it includes erased customers, so that copies learn of erasures.
func Customers(ctx context.Context, q pg.Q, f CustomerFilter, r page.Request) (page.Rows[domain.Customer], error) {
	return page.Search(ctx, q, r, page.List[domain.Customer]{
		Alias: "c",
		Scan:  customers.Scan,
		Statement: func(r page.Request, narrow func(*page.Where)) (string, []any) {
			w := where(f, r.Updated)
			narrow(w)
			tail, args := w.Page(r, "c")
			return customers.Select + tail, args
		},
		Conditions: slices.Concat(phoneConditions(f.Phone), customerTerms.conditions("c", domain.Terms(f.Search)),
			page.MetadataConditions(customerMetadata, "c", f.Metadata)),
	})
}

// where returns the conditions on a customer's own row. erased includes the erased ones.
func where(f CustomerFilter, erased bool) *page.Where {
	w := &page.Where{}
	w.Add(`c.tenant_id = @tenant and c.livemode = @live`)
	if !erased {
		w.Add(`c.erased_at is null`)
	}
	if f.Email != nil {
		w.Add(`c.email_lower = nullif(?, '')`, domain.Fold(*f.Email)) // no customer has an empty address
	}
	return w
}

// phoneConditions returns the condition of a phone filter: the number or, if the text has no digits, the same text.
func phoneConditions(phone *string) []page.Condition {
	if phone == nil {
		return nil
	}
	if number := domain.PhoneTerm(*phone); number != nil {
		return customerTerms.conditions("c", []domain.Term{number})
	}
	return []page.Condition{{
		IDs:  []string{`select p.id from customers p where p.tenant_id = @tenant and p.livemode = @live and p.phone = ? and p.erased_at is null`},
		Has:  `c.phone = ?`,
		Args: []any{*phone},
	}}
}
