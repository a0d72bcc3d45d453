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

// inFlight selects the ids of one endpoint's deliveries that are in flight: at most max_in_flight.
const inFlight = `array(select q.delivery_id from queue q where q.endpoint_id = %s and q.claimed and q.due_at > clock_timestamp())`

// deliveryColumns returns the columns of a delivery of the endpoint that a parameter names.
func deliveryColumns(endpoint string) string {
	return `d.id, d.endpoint_id, d.event_id, d.event_type,
	case when d.status = 'pending' and d.id = any(` + fmt.Sprintf(inFlight, endpoint) + `) then 'delivering' else d.status end as status,
	d.failure_reason, d.attempts, d.next_attempt_at, d.updated_at`
}

// deliveryNames are the names of the deliveryColumns.
const deliveryNames = `d.id, d.endpoint_id, d.event_id, d.event_type, d.status, d.failure_reason, d.attempts, d.next_attempt_at, d.updated_at`

// Delivery reads one delivery of an endpoint, or returns domain.ErrDeliveryNotFound.
func Delivery(ctx context.Context, q pg.Q, endpoint domain.EndpointID, id domain.DeliveryID) (domain.Delivery, error) {
	return one[domain.Delivery](ctx, q, domain.ErrDeliveryNotFound, `select `+deliveryColumns("$1")+`
		from deliveries d where d.endpoint_id = $1 and d.id = $2`, endpoint, id)
}

// DeliveryForUpdate reads one delivery and locks its row until the transaction ends.
func DeliveryForUpdate(ctx context.Context, tx pg.Tx, endpoint domain.EndpointID, id domain.DeliveryID) (domain.Delivery, error) {
	return one[domain.Delivery](ctx, tx, domain.ErrDeliveryNotFound, `select `+deliveryColumns("$1")+`
		from deliveries d where d.endpoint_id = $1 and d.id = $2 for update of d`, endpoint, id)
}

// DeliveryFilter says which deliveries a list has; an empty field excludes none.
type DeliveryFilter struct {
	Endpoint domain.EndpointID
	Status   domain.DeliveryStatus
	Type     string
	Among    []string // the event types; nil means all
}

// Deliveries reads one page of an endpoint's deliveries. The id of a delivery contains its created_at.
func Deliveries(ctx context.Context, q pg.Q, f DeliveryFilter, r page.Request, now time.Time) (page.Rows[domain.Delivery], error) {
	w := &page.Where{}
	w.Add(`d.endpoint_id = ?`, f.Endpoint)
	w.Add(`d.id >= uuid_floor(?)`, now.Add(-domain.Retention))
	inFlightIDs := fmt.Sprintf(inFlight, "@p1")
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
	return page.Read(ctx, q, r, pgx.RowToStructByName[domain.Delivery], w.Bounded(`select `+deliveryColumns("@p1")+` from deliveries d `+tail, deliveryNames, `octet_length(d.attempts::text)`), args...)
}

// PendingDeliveries counts the queued deliveries of an endpoint, up to limit.
func PendingDeliveries(ctx context.Context, q pg.Q, endpoint domain.EndpointID, limit int) (int, error) {
	rows, err := q.Query(ctx, `select count(*)::int from (select from queue where endpoint_id = $1 limit $2) q`, endpoint, limit)
	if err != nil {
		return 0, fmt.Errorf("count pending deliveries: %w", err)
	}
	n, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
	if err != nil {
		return 0, fmt.Errorf("count pending deliveries: %w", err)
	}
	return n, nil
}
