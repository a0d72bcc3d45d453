// Package store is the only layer with SQL. Readers take a pg.Q, writers a pg.Tx. Each statement specifies the caller's tenant and
// mode, and row-level security checks them again.
package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// customerRow returns the columns that a client sets, and the id, by name.
func customerRow(c domain.Customer) pg.Args {
	return pg.Args{
		"id": c.ID, "first_name": c.FirstName, "last_name": c.LastName, "email": c.Email, "phone": c.Phone, "company": c.Company,
		"tax_id": c.TaxID, "billing_address": c.BillingAddress, "country": c.Country, "locale": c.Locale, "metadata": pg.JSONText(c.Metadata),
	}
}

// customerArgs returns the columns of customerRow and the e-mail address for case-insensitive lookups.
func customerArgs(c domain.Customer) pg.Args {
	args := customerRow(c)
	args["email_lower"] = domain.Fold(c.Email)
	return args
}

// customerChanged is the end of an update statement.
const customerChanged = `, version = c.version + 1, updated_at = clock_timestamp()
	where c.tenant_id = @tenant and c.livemode = @live and c.id = @id
	returning c.version, c.created_at, c.updated_at, c.erased_at`

var (
	customerColumns = customerRow(domain.Customer{}).Columns().Of("c") + `, c.version, c.created_at, c.updated_at, c.erased_at`
	customerWrites  = customerArgs(domain.Customer{}).Columns()

	oneCustomer = `select ` + customerColumns + ` from customers c
	where c.tenant_id = @tenant and c.livemode = @live and c.id = @id and c.erased_at is null`

	insertCustomer = `
		with stamp as materialized (select clock_timestamp() as at)
		insert into customers as c (tenant_id, livemode, ` + customerWrites.Names() + `, created_at, updated_at)
		select @tenant, @live, ` + customerWrites.Values() + `, at, at from stamp
		returning c.version, c.created_at, c.updated_at, c.erased_at`

	updateCustomer = `update customers c set ` + customerWrites.Set() + customerChanged
	eraseCustomer  = `update customers c set ` + customerWrites.Set() + `, erased_at = clock_timestamp()` + customerChanged
)

// customerTerms is the table of the search terms by which q finds a customer.
var customerTerms = termTable{name: "customer_words", owner: "customer_id"}

// customerMetadata is the table of the metadata pairs by which lists are filtered.
var customerMetadata = pg.MetadataTable{Name: "customer_metadata", Owner: "customer_id"}

// Customer reads one customer, or returns domain.ErrCustomerNotFound.
func Customer(ctx context.Context, q pg.Q, id domain.CustomerID) (domain.Customer, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.Customer], domain.ErrCustomerNotFound, oneCustomer, pg.Args{"id": id})
}

// CustomerForUpdate locks the row until the transaction ends.
func CustomerForUpdate(ctx context.Context, tx pg.Tx, id domain.CustomerID) (domain.Customer, error) {
	return pg.One(ctx, tx, pgx.RowToStructByName[domain.Customer], domain.ErrCustomerNotFound, oneCustomer+` for update`, pg.Args{"id": id})
}

// CustomerForShare prevents the erasure of the customer until the transaction ends.
func CustomerForShare(ctx context.Context, tx pg.Tx, id domain.CustomerID) (domain.Customer, error) {
	return pg.One(ctx, tx, pgx.RowToStructByName[domain.Customer], domain.ErrCustomerNotFound, oneCustomer+` for share`, pg.Args{"id": id})
}

// CustomersByID reads those customers among ids that exist, in the order of ids, as many as one page can show.
func CustomersByID(ctx context.Context, q pg.Q, ids []domain.CustomerID) (page.Rows[domain.Customer], error) {
	return page.Read(ctx, q, page.Request{Limit: len(ids)}, pgx.RowToStructByName[domain.Customer], `
		select `+customerColumns+` from unnest(@ids::uuid[]) with ordinality w(id, n)
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
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.Customer], `
		select `+customerColumns+` from customers c
		where c.tenant_id = @tenant and c.livemode = @live and c.email_lower = @email and c.erased_at is null
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
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.Customer], `select `+customerColumns+` from customers c `+tail, args...)
}

// InsertCustomer writes a new customer and returns it with version and times.
func InsertCustomer(ctx context.Context, tx pg.Tx, c domain.Customer) (domain.Customer, error) {
	b := &pgx.Batch{}
	b.Queue(insertCustomer, customerArgs(c))
	queueIndexes(b, c)
	return stamped(ctx, tx, b, c)
}

// UpdateCustomer writes all fields of a customer that the transaction has locked. It increments the version, and returns the
// customer with the new version and time.
func UpdateCustomer(ctx context.Context, tx pg.Tx, c domain.Customer) (domain.Customer, error) {
	b := &pgx.Batch{}
	b.Queue(updateCustomer, customerArgs(c))
	dropIndexes(b, c.ID)
	queueIndexes(b, c)
	return stamped(ctx, tx, b, c)
}

// EraseCustomer clears every column that a client can set, for a customer that the transaction has locked. It returns the rest of the
// customer. The row stays.
func EraseCustomer(ctx context.Context, tx pg.Tx, id domain.CustomerID) (domain.Customer, error) {
	b := &pgx.Batch{}
	b.Queue(eraseCustomer, customerArgs(domain.Customer{ID: id}))
	dropIndexes(b, id)
	return stamped(ctx, tx, b, domain.Customer{ID: id})
}

func queueIndexes(b *pgx.Batch, c domain.Customer) {
	customerTerms.queueInsert(b, c.ID, c.SearchTerms())
	customerMetadata.QueueInsert(b, c.ID, c.Metadata)
}

func dropIndexes(b *pgx.Batch, id domain.CustomerID) {
	customerTerms.queueDelete(b, id)
	customerMetadata.QueueDelete(b, id)
}

// stamped sends a batch in one round trip. Its first statement returns version and times.
func stamped(ctx context.Context, tx pg.Tx, b *pgx.Batch, c domain.Customer) (domain.Customer, error) {
	res := tx.SendBatch(ctx, b)
	err := res.QueryRow().Scan(&c.Version, &c.CreatedAt, &c.UpdatedAt, &c.ErasedAt)
	if err = errors.Join(err, res.Close()); err != nil {
		return domain.Customer{}, fmt.Errorf("write customer: %w", err)
	}
	return c, nil
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
		Scan:  pgx.RowToStructByName[domain.Customer],
		Statement: func(r page.Request, narrow func(*page.Where)) (string, []any) {
			w := where(f, r.Updated)
			narrow(w)
			tail, args := w.Page(r, "c")
			return `select ` + customerColumns + ` from customers c ` + tail, args
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
