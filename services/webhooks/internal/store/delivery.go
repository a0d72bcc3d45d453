package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
)

// inFlight selects the ids of one endpoint's deliveries in flight: at most max_in_flight.
const inFlight = `array(select q.delivery_id from queue q where q.tenant_id = @tenant and q.livemode = @live and q.endpoint_id = %s
	and q.claimed and q.due_at > clock_timestamp())`

// deliveryColumns returns the columns of a delivery of the endpoint that an argument names.
func deliveryColumns(endpoint string) string {
	return `d.id, d.endpoint_id, d.event_id, d.event_type,
	case when d.status = 'pending' and d.id = any(` + fmt.Sprintf(inFlight, endpoint) + `) then 'delivering' else d.status end as status,
	d.failure_reason, d.attempts, d.next_attempt_at, d.updated_at`
}

// deliveryNames are the names of the deliveryColumns.
const deliveryNames = `d.id, d.endpoint_id, d.event_id, d.event_type, d.status, d.failure_reason, d.attempts, d.next_attempt_at, d.updated_at`

var oneDelivery = `select ` + deliveryColumns("@endpoint") + ` from deliveries d
	where d.tenant_id = @tenant and d.livemode = @live and d.endpoint_id = @endpoint and d.id = @id`

// Delivery reads one delivery of an endpoint, or returns domain.ErrDeliveryNotFound.
func Delivery(ctx context.Context, q pg.Q, endpoint domain.EndpointID, id domain.DeliveryID) (domain.Delivery, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.Delivery], domain.ErrDeliveryNotFound,
		oneDelivery, pg.Args{"endpoint": endpoint, "id": id})
}

// DeliveryForUpdate reads one delivery and locks its row until the transaction ends.
func DeliveryForUpdate(ctx context.Context, tx pg.Tx, endpoint domain.EndpointID, id domain.DeliveryID) (domain.Delivery, error) {
	return pg.One(ctx, tx, pgx.RowToStructByName[domain.Delivery], domain.ErrDeliveryNotFound,
		oneDelivery+` for update of d`, pg.Args{"endpoint": endpoint, "id": id})
}

// DeliveryFilter specifies which deliveries a list contains. An empty field excludes none.
type DeliveryFilter struct {
	Endpoint domain.EndpointID
	Status   domain.DeliveryStatus
	Type     string
	Among    []string // the event types; nil means all
}

// Deliveries reads one page of an endpoint's deliveries. The id of a delivery contains its created_at.
func Deliveries(ctx context.Context, q pg.Q, f DeliveryFilter, r page.Request, now time.Time) (page.Rows[domain.Delivery], error) {
	w := &page.Where{}
	w.Add(`d.tenant_id = @tenant and d.livemode = @live and d.endpoint_id = ?`, f.Endpoint)
	w.Add(`d.id >= uuid_floor(?)`, now.Add(-domain.Retention))
	inFlightIDs := fmt.Sprintf(inFlight, "@p1") // the first argument
	switch f.Status {
	case domain.Delivering:
		w.Add(`d.status = 'pending' and d.id = any(` + inFlightIDs + `)`)
	case domain.Pending:
		w.Add(`d.status = 'pending' and d.id <> all(` + inFlightIDs + `)`)
	case domain.Succeeded, domain.Failed:
		w.Add(`d.status = ?`, string(f.Status))
	}
	if f.Type != "" {
		w.Add(`d.event_type = ?`, f.Type)
	}
	if f.Among != nil {
		w.Add(`d.event_type = any(?)`, f.Among)
	}
	tail, args := byID(w, r, "d")
	return page.Read(ctx, q, r, pgx.RowToStructByName[domain.Delivery],
		w.Bounded(`select `+deliveryColumns("@p1")+` from deliveries d `+tail, deliveryNames, `octet_length(d.attempts::text)`), args...)
}

// PendingDeliveries counts the queued deliveries of an endpoint, up to limit.
func PendingDeliveries(ctx context.Context, q pg.Q, endpoint domain.EndpointID, limit int) (int, error) {
	n, err := pg.One(ctx, q, pgx.RowTo[int], pgx.ErrNoRows, `
		select count(*)::int from (
			select from queue where tenant_id = @tenant and livemode = @live and endpoint_id = @endpoint limit @limit) q`,
		pg.Args{"endpoint": endpoint, "limit": limit})
	if err != nil {
		return 0, fmt.Errorf("count pending deliveries: %w", err)
	}
	return n, nil
}

// FailingDeliveries reads the newest deliveries of all endpoints since a time that failed, or whose attempts have all failed so
// far. It returns at most domain.ShownFailing deliveries, of some event types. For each endpoint it searches the oldest
// domain.SearchedFailing waiting deliveries.
func FailingDeliveries(ctx context.Context, q pg.Q, types []string, since time.Time) ([]domain.Delivery, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.Delivery], `
		select `+deliveryNames+` from endpoints e cross join lateral (
			(select `+deliveryColumns("e.id")+` from deliveries d
			 where d.tenant_id = @tenant and d.livemode = @live and d.endpoint_id = e.id and d.status = 'failed'
			   and d.id >= uuid_floor(@since) and d.event_type = any(@types)
			 order by d.id desc limit @rows)
			union all
			(select `+deliveryColumns("e.id")+` from (
				select `+deliveryNames+` from deliveries d
				where d.tenant_id = @tenant and d.livemode = @live and d.endpoint_id = e.id and d.status = 'pending' and d.id >= uuid_floor(@since)
				order by d.id limit @searched) d
			 where d.attempts <> '[]' and d.event_type = any(@types)
			 order by d.id desc limit @rows)) d
		where e.tenant_id = @tenant and e.livemode = @live
		order by d.id desc limit @rows`,
		pg.Args{"types": types, "since": since, "rows": domain.ShownFailing, "searched": domain.SearchedFailing})
}
