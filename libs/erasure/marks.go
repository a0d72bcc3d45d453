package erasure

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
)

const (
	// marksFor is longer than an event of an erased tenant can arrive: Kafka stores it for at most 7 days, and a redrive can send a dead
	// letter again.
	marksFor = 90 * 24 * time.Hour
	// marksFresh is how old the marks of a consumer can be.
	marksFresh = time.Second
)

// Marks are the tenants that are erased from the database of a service, for its consumers. They are read at most once per second.
type Marks struct {
	Worker *pg.DB // the worker role

	mu     sync.Mutex
	read   time.Time
	erased map[ids.Tenant]bool
}

// Erased returns the tenants whose erasure began in the last 90 days, at most a second late. Do not change the map.
func (m *Marks) Erased(ctx context.Context) (map[ids.Tenant]bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.read) < marksFresh {
		return m.erased, nil
	}
	began := time.Now()
	var list []ids.Tenant
	err := m.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		list, err = pg.Many(ctx, tx, pgx.RowTo[ids.Tenant], `select tenant_id from tenant_erasures where started_at > $1`, began.Add(-marksFor))
		return err
	})
	if err != nil {
		return nil, err
	}
	m.read, m.erased = began, make(map[ids.Tenant]bool, len(list))
	for _, tenant := range list {
		m.erased[tenant] = true
	}
	return m.erased, nil
}

// Filter returns the messages without the events of erased tenants. It returns a message that is not an event.
func (m *Marks) Filter(ctx context.Context, list []kafkax.Message) ([]kafkax.Message, error) {
	erased, err := m.Erased(ctx)
	if err != nil || len(erased) == 0 {
		return list, err
	}
	rest := make([]kafkax.Message, 0, len(list))
	for _, message := range list {
		if e, err := outbox.Decode(message.Value); err == nil {
			if tenant, err := ids.Parse[ids.TenantPrefix](e.GetTenantId()); err == nil && erased[tenant] {
				continue
			}
		}
		rest = append(rest, message)
	}
	return rest, nil
}
