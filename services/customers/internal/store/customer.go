// Package store is the only room with SQL. Readers take a pg.Q, writers a pg.Tx; tenant and mode are the
// transaction's own settings, which row-level security and the columns' defaults read.
package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

const customerColumns = `c.id, c.first_name, c.last_name, c.email, c.phone, c.company, c.metadata, c.version, c.created_at, c.updated_at`

// Customer reads one customer, or domain.ErrCustomerNotFound.
func Customer(ctx context.Context, q pg.Q, id domain.CustomerID) (domain.Customer, error) {
	return one(ctx, q, `select `+customerColumns+` from customers c where c.id = $1 and c.erased_at is null`, id)
}

// CustomerForUpdate locks the row until the transaction ends.
func CustomerForUpdate(ctx context.Context, tx pg.Tx, id domain.CustomerID) (domain.Customer, error) {
	return one(ctx, tx, `select `+customerColumns+` from customers c where c.id = $1 and c.erased_at is null for update`, id)
}

func one(ctx context.Context, q pg.Q, sql string, args ...any) (domain.Customer, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return domain.Customer{}, fmt.Errorf("customer: %w", err)
	}
	c, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[domain.Customer])
	if errors.Is(err, pgx.ErrNoRows) {
		return domain.Customer{}, domain.ErrCustomerNotFound
	}
	if err != nil {
		return domain.Customer{}, fmt.Errorf("customer: %w", err)
	}
	return c, nil
}

// CustomersByID reads those of ids that exist, in their order, as far as one page can show them.
func CustomersByID(ctx context.Context, q pg.Q, ids []domain.CustomerID) (page.Rows[domain.Customer], error) {
	return page.Read(ctx, q, page.Request{Limit: len(ids)}, pgx.RowToStructByName[domain.Customer], `
		select `+customerColumns+` from unnest($1::uuid[]) with ordinality w(id, n) join customers c on c.id = w.id
		where c.erased_at is null order by w.n`, ids)
}

// MissingCustomer says why an id was not found: apperr.ErrMode when it is the tenant's in the other mode,
// else domain.ErrCustomerNotFound. It costs a statement, so it is asked after a miss only.
func MissingCustomer(ctx context.Context, db *pg.DB, id domain.CustomerID) error {
	other := pg.OtherMode(ctx)
	_, err := Customer(other, db.Read(other), id)
	if err == nil {
		return apperr.ErrMode
	}
	return err
}

// InsertCustomer writes a new customer and returns it with version and times.
func InsertCustomer(ctx context.Context, tx pg.Tx, c domain.Customer) (domain.Customer, error) {
	b := &pgx.Batch{}
	b.Queue(`
		with stamp as materialized (select clock_timestamp() as at)
		insert into customers as c (id, first_name, last_name, email, email_lower, phone, company, metadata, created_at, updated_at)
		select $1, $2, $3, $4, $5, $6, $7, $8, at, at from stamp
		returning c.version, c.created_at, c.updated_at`,
		c.ID, c.FirstName, c.LastName, c.Email, domain.Fold(c.Email), c.Phone, c.Company, textOrNull(c.Metadata))
	queueIndexes(b, c)
	return stamped(ctx, tx, b, c)
}

// UpdateCustomer writes all fields of a customer that the transaction has locked, raises its version and
// returns it with the new version and time.
func UpdateCustomer(ctx context.Context, tx pg.Tx, c domain.Customer) (domain.Customer, error) {
	b := &pgx.Batch{}
	b.Queue(`
		update customers c set first_name = $2, last_name = $3, email = $4, email_lower = $5, phone = $6, company = $7,
		       metadata = $8, version = c.version + 1, updated_at = clock_timestamp()
		where c.id = $1
		returning c.version, c.created_at, c.updated_at`,
		c.ID, c.FirstName, c.LastName, c.Email, domain.Fold(c.Email), c.Phone, c.Company, textOrNull(c.Metadata))
	dropIndexes(b, c.ID)
	queueIndexes(b, c)
	return stamped(ctx, tx, b, c)
}

// EraseCustomer clears the personal data of a customer that the transaction has locked and leaves a
// tombstone; it returns the version of the erasure.
func EraseCustomer(ctx context.Context, tx pg.Tx, id domain.CustomerID) (int64, error) {
	b := &pgx.Batch{}
	b.Queue(`
		update customers c set first_name = '', last_name = null, email = '', email_lower = '', phone = null, company = null,
		       metadata = null, version = c.version + 1, updated_at = clock_timestamp(),
		       erased_at = clock_timestamp()
		where c.id = $1
		returning c.version, c.created_at, c.updated_at`, id)
	dropIndexes(b, id)
	c, err := stamped(ctx, tx, b, domain.Customer{ID: id})
	return c.Version, err
}

func queueIndexes(b *pgx.Batch, c domain.Customer) {
	b.Queue(`insert into customer_words (word, customer_id) select unnest($1::text[]), $2`, c.Words(), c.ID)
	pairs := c.MetadataPairs()
	if len(pairs) == 0 {
		return
	}
	keys, values := make([]string, 0, len(pairs)), make([]string, 0, len(pairs))
	for k, v := range pairs {
		keys, values = append(keys, k), append(values, v)
	}
	b.Queue(`insert into customer_metadata (key, value, customer_id) select k, v, $3 from unnest($1::text[], $2::text[]) as p(k, v)`,
		keys, values, c.ID)
}

func dropIndexes(b *pgx.Batch, id domain.CustomerID) {
	b.Queue(`delete from customer_words where customer_id = $1`, id)
	b.Queue(`delete from customer_metadata where customer_id = $1`, id)
}

// stamped sends a batch whose first statement returns version and times, in one round trip.
func stamped(ctx context.Context, tx pg.Tx, b *pgx.Batch, c domain.Customer) (domain.Customer, error) {
	res := tx.SendBatch(ctx, b)
	err := res.QueryRow().Scan(&c.Version, &c.CreatedAt, &c.UpdatedAt)
	if err = errors.Join(err, res.Close()); err != nil {
		return domain.Customer{}, fmt.Errorf("write customer: %w", err)
	}
	return c, nil
}

// textOrNull hands JSON over as text: as bytes of a json.Marshaler it would be encoded anew.
func textOrNull(raw []byte) *string {
	if len(raw) == 0 {
		return nil
	}
	s := string(raw)
	return &s
}
