package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// noConversion sets the columns of a lead that is not being converted.
const noConversion = `converting_until = null, converting_customer_id = null, converting_new_customer = false,
	converting_body = null, converting_tries = 0, converting_since = null, converting_actor = ''`

func conversionFields(c *domain.Conversion) pg.F {
	return pg.F{
		"converting_attempt", &c.Attempt, "converting_since", &c.Since, "converting_until", &c.Until, "converting_customer_id", &c.Customer,
		"converting_new_customer", &c.NewCustomer, "converting_body", &c.Body, "converting_tries", &c.Tries, "converting_actor", &c.Actor,
	}
}

// BeginConversion writes the conversion of a lead that the transaction has locked, or the next attempt at it. The number of the
// attempt must be higher than the stored one.
func BeginConversion(ctx context.Context, tx pg.Tx, l domain.Lead) error {
	f := conversionFields(&l.Conversion)
	args := f.Args()
	args["id"] = l.ID
	return pg.Exec(ctx, tx, "begin conversion", `update leads l set `+f.Set()+` where l.tenant_id = @tenant and l.livemode = @live and l.id = @id`, args)
}

// EndConversion removes the conversion of a lead that the transaction has locked.
func EndConversion(ctx context.Context, tx pg.Tx, id domain.LeadID) error {
	return pg.Exec(ctx, tx, "end conversion", `update leads l set `+noConversion+` where l.tenant_id = @tenant and l.livemode = @live and l.id = @id`, pg.Args{"id": id})
}

// LockEmail serializes conversions of leads with the same e-mail address, ignoring case, until the transaction ends. At most one of
// them therefore finds that there is no customer yet.
func LockEmail(ctx context.Context, tx pg.Tx, email string) error {
	return pg.Exec(ctx, tx, "lock e-mail address", `select pg_advisory_xact_lock(hashtextextended('customer' || @tenant::uuid::text || @live::boolean::text || @email::text, 0))`,
		pg.Args{"email": domain.Fold(email)})
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
	return pg.Exec(ctx, tx, "lock telephone numbers", `select pg_advisory_xact_lock(hashtextextended('phone' || @tenant::uuid::text || @live::boolean::text, 0))`, pg.Args{})
}

// ConvertingPhones returns the telephone numbers of up to limit customers that are about to be created from leads.
func ConvertingPhones(ctx context.Context, q pg.Q, limit int) ([]string, error) {
	return pg.Many(ctx, q, pgx.RowTo[string], `
		select coalesce(l.phone, '') from leads l where l.tenant_id = @tenant and l.livemode = @live
			and l.converting_until is not null and l.converting_new_customer limit @limit`, pg.Args{"limit": limit})
}

// LeadOfNewCustomer reads the lead from which a customer is about to be created, or returns domain.ErrCustomerNotFound.
func LeadOfNewCustomer(ctx context.Context, q pg.Q, id domain.CustomerID) (domain.Lead, error) {
	return pg.One(ctx, q, leads.Scan, domain.ErrCustomerNotFound, leads.Own+`l.converting_customer_id = @id and l.converting_until is not null
		and l.converting_new_customer`, pg.Args{"id": id})
}

// StuckLeadForUpdate locks a lead whose conversion was abandoned before now. It returns domain.ErrLeadNotFound if another process
// has the lead.
func StuckLeadForUpdate(ctx context.Context, tx pg.Tx, id domain.LeadID, now time.Time) (domain.Lead, error) {
	return leads.One(ctx, tx, `l.id = @id and l.converting_until is not null and l.converting_until <= @now for update of l skip locked`,
		pg.Args{"id": id, "now": now})
}
