package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/money"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

var leads = pg.NewTable("leads", "l", domain.ErrLeadNotFound, func(l *domain.Lead) pg.Fields {
	var lower, currency *string
	var budget *int64
	if l.Email != nil {
		lower = new(domain.Fold(*l.Email))
	}
	if l.Budget != nil {
		budget, currency = &l.Budget.Minor, &l.Budget.Currency
	}
	return pg.Fields{
		Fixed: pg.F{"id", &l.ID},
		Values: pg.F{
			"status", &l.Status, "source", &l.Source, "first_name", &l.FirstName, "last_name", &l.LastName, "email", &l.Email, "phone", &l.Phone,
			"company", &l.Company, "event_type", &l.EventType, "event_day", &l.EventDay, "event_at", &l.EventAt, "guest_count", &l.GuestCount,
			"budget", &budget, "budget_currency", &currency, "message", &l.Message, "service_id", &l.ServiceID, "unit_id", &l.UnitID,
			"package_id", &l.PackageID, "customer_id", &l.CustomerID, "converted_booking_id", &l.BookingID, "lost_reason", &l.LostReason,
			"metadata", pg.Raw(&l.Metadata), "converted_at", &l.ConvertedAt,
		},
		Written: pg.F{"email_lower", lower},
		Read: append(pg.F{
			"version", &l.Version, "created_at", &l.CreatedAt, "updated_at", &l.UpdatedAt, quotesOfLead, &l.QuoteIDs,
		}, conversionFields(&l.Conversion)...),
		Done: func() error {
			if budget != nil && currency != nil {
				l.Budget = &money.Amount{Minor: *budget, Currency: *currency}
			}
			return nil
		},
	}
})

// quotesOfLead selects the ids of a lead's quotes, the newest first.
const quotesOfLead = `array(select q.id from quotes q where q.tenant_id = @tenant and q.livemode = @live and q.lead_id = l.id
	order by q.created_at desc, q.id desc limit 100) as quote_ids`

// leadTerms is the table of the search terms by which q finds a lead, leadMetadata that of the metadata pairs.
var (
	leadTerms    = termTable{name: "lead_words", owner: "lead_id"}
	leadMetadata = pg.MetadataTable{Name: "lead_metadata", Owner: "lead_id"}
)

// Lead reads one lead, or returns domain.ErrLeadNotFound.
func Lead(ctx context.Context, q pg.Q, id domain.LeadID) (domain.Lead, error) {
	return leads.Get(ctx, q, id, "")
}

// LeadsByID reads those leads among ids that exist, in the order of ids, as many as one page can show.
func LeadsByID(ctx context.Context, q pg.Q, ids []domain.LeadID) (page.Rows[domain.Lead], error) {
	return page.Read(ctx, q, page.Request{Limit: len(ids)}, leads.Scan, `
		select `+leads.Columns+` from unnest(@ids::uuid[]) with ordinality w(id, n)
		join leads l on l.tenant_id = @tenant and l.livemode = @live and l.id = w.id
		order by w.n`, pg.Args{"ids": ids})
}

// LeadForUpdate locks the row until the transaction ends.
func LeadForUpdate(ctx context.Context, tx pg.Tx, id domain.LeadID) (domain.Lead, error) {
	return leads.Get(ctx, tx, id, "for update of l")
}

var (
	insertLead = leads.InsertNow("") + leads.Stamp
	updateLead = leads.UpdateWith(noConversion+`, version = l.version + 1, updated_at = clock_timestamp()`) + leads.Stamp
)

// InsertLead writes a new lead and returns it with version and times.
func InsertLead(ctx context.Context, tx pg.Tx, l domain.Lead) (domain.Lead, error) {
	return writeLead(ctx, tx, insertLead, l)
}

// UpdateLead writes what can change on a lead that the transaction has locked, and ends its conversion. It increments the version,
// and returns the lead with the new version and time.
func UpdateLead(ctx context.Context, tx pg.Tx, l domain.Lead) (domain.Lead, error) {
	l.Conversion = l.Conversion.End()
	return writeLead(ctx, tx, updateLead, l)
}

// writeLead sends the statement and those of the lead's indexes in one round trip.
func writeLead(ctx context.Context, tx pg.Tx, sql string, l domain.Lead) (domain.Lead, error) {
	b := &pgx.Batch{}
	b.Queue(sql, leads.Args(l)).QueryRow(pg.Into(&l.Version, &l.CreatedAt, &l.UpdatedAt))
	if sql != insertLead {
		leadTerms.queueDelete(b, l.ID)
		leadMetadata.QueueDelete(b, l.ID)
	}
	leadTerms.queueInsert(b, l.ID, l.SearchTerms())
	leadMetadata.QueueInsert(b, l.ID, l.Metadata)
	return pg.SendFor(ctx, tx, b, "write lead", &l)
}
