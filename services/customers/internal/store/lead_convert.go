package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// noConversion sets the columns of a lead that is not being converted.
const noConversion = `converting_until = null, converting_customer_id = null, converting_new_customer = false,
	converting_body = null, converting_tries = 0, converting_since = null, converting_actor = ''`

// BeginConversion writes the conversion of a lead that the transaction has locked, or the next attempt at it. The number of the
// attempt must be higher than the stored one.
func BeginConversion(ctx context.Context, tx pg.Tx, l domain.Lead) error {
	c := l.Conversion
	_, err := tx.Exec(ctx, `
		update leads l set converting_until = @until, converting_attempt = @attempt, converting_customer_id = @customer,
			converting_new_customer = @new, converting_body = @body, converting_tries = @tries, converting_actor = @actor,
			converting_since = @since
		where l.tenant_id = @tenant and l.livemode = @live and l.id = @id`, pg.Args{
		"id": l.ID, "until": c.Until, "attempt": c.Attempt, "customer": c.Customer, "new": c.NewCustomer, "body": pg.JSONText(c.Body),
		"tries": c.Tries, "actor": c.Actor, "since": c.Since,
	})
	if err != nil {
		return fmt.Errorf("begin conversion: %w", err)
	}
	return nil
}

// EndConversion removes the conversion of a lead that the transaction has locked.
func EndConversion(ctx context.Context, tx pg.Tx, id domain.LeadID) error {
	_, err := tx.Exec(ctx, `update leads l set `+noConversion+` where l.tenant_id = @tenant and l.livemode = @live and l.id = @id`, pg.Args{"id": id})
	if err != nil {
		return fmt.Errorf("end conversion: %w", err)
	}
	return nil
}

// LockEmail serializes conversions of leads with the same e-mail address, ignoring case, until the transaction ends. At most one of
// them therefore finds that there is no customer yet.
func LockEmail(ctx context.Context, tx pg.Tx, email string) error {
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('customer' || @tenant::uuid::text || @live::boolean::text || @email::text, 0))`,
		pg.Args{"email": domain.Fold(email)})
	if err != nil {
		return fmt.Errorf("lock e-mail address: %w", err)
	}
	return nil
}

// EmailIsConverting reports whether a customer with the e-mail address, ignoring case, is about to be created from a lead.
func EmailIsConverting(ctx context.Context, q pg.Q, email string) (bool, error) {
	return pg.One(ctx, q, pgx.RowTo[bool], nil, `
		select exists (select from leads l where l.tenant_id = @tenant and l.livemode = @live and l.email_lower = @email
			and l.converting_until is not null and l.converting_new_customer)`, pg.Args{"email": domain.Fold(email)})
}

// LockPhones serializes conversions of leads that look for a customer by telephone number, in the caller's tenant and mode, until
// the transaction ends. Numbers that differ can be those of one customer, so the lock is the same for all of them.
func LockPhones(ctx context.Context, tx pg.Tx) error {
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('phone' || @tenant::uuid::text || @live::boolean::text, 0))`, pg.Args{})
	if err != nil {
		return fmt.Errorf("lock telephone numbers: %w", err)
	}
	return nil
}

// ConvertingPhones returns the telephone numbers of up to limit customers that are about to be created from leads.
func ConvertingPhones(ctx context.Context, q pg.Q, limit int) ([]string, error) {
	return pg.Many(ctx, q, pgx.RowTo[string], `
		select coalesce(l.phone, '') from leads l where l.tenant_id = @tenant and l.livemode = @live
			and l.converting_until is not null and l.converting_new_customer limit @limit`, pg.Args{"limit": limit})
}

// LeadOfNewCustomer reads the lead from which a customer is about to be created, or returns domain.ErrCustomerNotFound.
func LeadOfNewCustomer(ctx context.Context, q pg.Q, id domain.CustomerID) (domain.Lead, error) {
	return pg.One(ctx, q, scanLead, domain.ErrCustomerNotFound, `
		select `+leadColumns+` from leads l where l.tenant_id = @tenant and l.livemode = @live and l.converting_customer_id = @id
		  and l.converting_until is not null and l.converting_new_customer`, pg.Args{"id": id})
}

// LeadsLeft returns up to limit leads of all tenants and modes whose conversion was abandoned before now, oldest first. It skips
// the owners in except. tx has the worker role.
func LeadsLeft(ctx context.Context, tx pg.Tx, now time.Time, except []operation.Owner, limit int) ([]Left[domain.LeadID], error) {
	tenants, modes := operation.Owners(except)
	return pg.Many(ctx, tx, pgx.RowToStructByName[Left[domain.LeadID]], `
		select l.tenant_id, l.livemode, l.id from leads l where l.converting_until is not null and l.converting_until <= $3`+operation.Outside("l")+`
		order by l.converting_until, l.id limit $4`, tenants, modes, now, limit)
}

// StuckLeadForUpdate locks a lead whose conversion was abandoned before now. It returns domain.ErrLeadNotFound if another process
// has the lead.
func StuckLeadForUpdate(ctx context.Context, tx pg.Tx, id domain.LeadID, now time.Time) (domain.Lead, error) {
	return pg.One(ctx, tx, scanLead, domain.ErrLeadNotFound,
		oneLead+` and l.converting_until is not null and l.converting_until <= @now for update of l skip locked`, pg.Args{"id": id, "now": now})
}
