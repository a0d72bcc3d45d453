package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

const leadColumns = `l.id, l.status, l.source, l.first_name, l.last_name, l.email, l.phone, l.company, l.event_type, l.event_day, l.event_at,
	l.guest_count, l.budget, l.budget_currency, l.message, l.service_id, l.unit_id, l.package_id, l.customer_id, l.converted_booking_id,
	` + quotesOfLead + `, l.lost_reason, l.metadata, l.version, l.created_at, l.updated_at, l.converted_at,
	l.converting_attempt, l.converting_since, l.converting_until, l.converting_customer_id, l.converting_new_customer, l.converting_body, l.converting_tries,
	l.converting_actor`

// quotesOfLead selects the ids of a lead's quotes, the newest first.
const quotesOfLead = `array(select q.id from quotes q where q.tenant_id = @tenant and q.livemode = @live and q.lead_id = l.id
	order by q.created_at desc, q.id desc limit 100) as quote_ids`

const oneLead = `select ` + leadColumns + ` from leads l where l.tenant_id = @tenant and l.livemode = @live and l.id = @id`

// leadTerms is the table of the search terms by which q finds a lead, leadMetadata that of the metadata pairs.
var (
	leadTerms    = termTable{name: "lead_words", owner: "lead_id"}
	leadMetadata = pg.MetadataTable{Name: "lead_metadata", Owner: "lead_id"}
)

func scanLead(row pgx.CollectableRow) (domain.Lead, error) {
	var l domain.Lead
	c := &l.Conversion
	var day *time.Time
	var budget *int64
	var currency *string
	err := row.Scan(&l.ID, &l.Status, &l.Source, &l.FirstName, &l.LastName, &l.Email, &l.Phone, &l.Company, &l.EventType, &day, &l.EventAt,
		&l.GuestCount, &budget, &currency, &l.Message, &l.ServiceID, &l.UnitID, &l.PackageID, &l.CustomerID, &l.BookingID,
		&l.QuoteIDs, &l.LostReason, &l.Metadata, &l.Version, &l.CreatedAt, &l.UpdatedAt, &l.ConvertedAt,
		&c.Attempt, &c.Since, &c.Until, &c.Customer, &c.NewCustomer, &c.Body, &c.Tries, &c.Actor)
	if err != nil {
		return domain.Lead{}, fmt.Errorf("scan lead: %w", err)
	}
	if day != nil {
		l.EventDay = new(civil.DateOf(day.UTC()))
	}
	if budget != nil && currency != nil {
		l.Budget = &money.Amount{Minor: *budget, Currency: *currency}
	}
	return l, nil
}

// Lead reads one lead, or returns domain.ErrLeadNotFound.
func Lead(ctx context.Context, q pg.Q, id domain.LeadID) (domain.Lead, error) {
	return pg.One(ctx, q, scanLead, domain.ErrLeadNotFound, oneLead, pg.Args{"id": id})
}

// LeadsByID reads those leads among ids that exist, in the order of ids, as many as one page can show.
func LeadsByID(ctx context.Context, q pg.Q, ids []domain.LeadID) (page.Rows[domain.Lead], error) {
	return page.Read(ctx, q, page.Request{Limit: len(ids)}, scanLead, `
		select `+leadColumns+` from unnest(@ids::uuid[]) with ordinality w(id, n)
		join leads l on l.tenant_id = @tenant and l.livemode = @live and l.id = w.id
		order by w.n`, pg.Args{"ids": ids})
}

// LeadForUpdate locks the row until the transaction ends.
func LeadForUpdate(ctx context.Context, tx pg.Tx, id domain.LeadID) (domain.Lead, error) {
	return pg.One(ctx, tx, scanLead, domain.ErrLeadNotFound, oneLead+` for update of l`, pg.Args{"id": id})
}

// InsertLead writes a new lead and returns it with version and times.
func InsertLead(ctx context.Context, tx pg.Tx, l domain.Lead) (domain.Lead, error) {
	b := &pgx.Batch{}
	b.Queue(`
		with stamp as materialized (select clock_timestamp() as at)
		insert into leads as l (tenant_id, livemode, id, status, source, first_name, last_name, email, email_lower, phone, company, event_type,
			event_day, event_at, guest_count, budget, budget_currency, message, service_id, unit_id, package_id, lost_reason, metadata,
			created_at, updated_at)
		select @tenant, @live, @id, @status, @source, @first_name, @last_name, @email, @email_lower, @phone, @company, @event_type,
			@event_day::date, @event_at::timestamptz, @guest_count::integer, @budget::bigint, @budget_currency, @message, @service_id::uuid,
			@unit_id::uuid, @package_id::uuid, @lost_reason, @metadata, at, at from stamp
		returning l.version, l.created_at, l.updated_at`, leadArgs(l))
	queueLeadIndexes(b, l)
	return stampedLead(ctx, tx, b, l)
}

// leadArgs returns the columns that are written, by name.
func leadArgs(l domain.Lead) pg.Args {
	args := pg.Args{
		"id": l.ID, "status": l.Status, "source": l.Source, "first_name": l.FirstName, "last_name": l.LastName, "email": l.Email,
		"email_lower": nil, "phone": l.Phone, "company": l.Company, "event_type": l.EventType, "event_day": nil, "event_at": l.EventAt,
		"guest_count": l.GuestCount, "budget": nil, "budget_currency": nil, "message": l.Message, "service_id": l.ServiceID,
		"unit_id": l.UnitID, "package_id": l.PackageID, "customer_id": l.CustomerID, "booking_id": l.BookingID,
		"lost_reason": l.LostReason, "metadata": pg.JSONText(l.Metadata), "converted_at": l.ConvertedAt,
	}
	if l.Email != nil {
		args["email_lower"] = domain.Fold(*l.Email)
	}
	if l.EventDay != nil {
		args["event_day"] = l.EventDay.UTC()
	}
	if l.Budget != nil {
		args["budget"], args["budget_currency"] = l.Budget.Minor, l.Budget.Currency
	}
	return args
}

// UpdateLead writes what can change on a lead that the transaction has locked, and ends its conversion. It increments the version,
// and returns the lead with the new version and time.
func UpdateLead(ctx context.Context, tx pg.Tx, l domain.Lead) (domain.Lead, error) {
	b := &pgx.Batch{}
	b.Queue(`
		update leads l set status = @status, source = @source, first_name = @first_name, last_name = @last_name, email = @email,
			email_lower = @email_lower, phone = @phone, company = @company, event_type = @event_type, event_day = @event_day,
			event_at = @event_at, guest_count = @guest_count, budget = @budget, budget_currency = @budget_currency, message = @message,
			service_id = @service_id, unit_id = @unit_id, package_id = @package_id, customer_id = @customer_id,
			converted_booking_id = @booking_id, lost_reason = @lost_reason, metadata = @metadata, converted_at = @converted_at,
			`+noConversion+`, version = l.version + 1, updated_at = clock_timestamp()
		where l.tenant_id = @tenant and l.livemode = @live and l.id = @id
		returning l.version, l.created_at, l.updated_at`, leadArgs(l))
	leadTerms.queueDelete(b, l.ID)
	leadMetadata.QueueDelete(b, l.ID)
	queueLeadIndexes(b, l)
	l.Conversion = l.Conversion.End()
	return stampedLead(ctx, tx, b, l)
}

func queueLeadIndexes(b *pgx.Batch, l domain.Lead) {
	leadTerms.queueInsert(b, l.ID, l.SearchTerms())
	leadMetadata.QueueInsert(b, l.ID, l.Metadata)
}

// stampedLead sends a batch in one round trip. Its first statement returns version and times.
func stampedLead(ctx context.Context, tx pg.Tx, b *pgx.Batch, l domain.Lead) (domain.Lead, error) {
	res := tx.SendBatch(ctx, b)
	err := res.QueryRow().Scan(&l.Version, &l.CreatedAt, &l.UpdatedAt)
	if err = errors.Join(err, res.Close()); err != nil {
		return domain.Lead{}, fmt.Errorf("write lead: %w", err)
	}
	return l, nil
}
