package usage

import (
	"context"
	"fmt"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/internalapi"
)

// MaxCount is the largest number of items that a count of background work returns.
const MaxCount = 10_000

// Waiting is a kind of background work. SQL selects the column at, a timestamptz: since when each item of the caller's tenant
// (@tenant) and mode (@live) waits, the oldest first where an index has this order. At most MaxCount+1 rows are read.
type Waiting struct{ Kind, SQL string }

// events are the events that the relay has not sent to Kafka yet. Their ids begin with the time.
var events = Waiting{"event", `select created_at as at from outbox where tenant_id = @tenant and livemode = @live order by id`}

// queued is the number of items, at most MaxCount+1.
type queued struct {
	Count  int
	Oldest *time.Time
}

func (s *Source) listBackgroundWork(c *gin.Context) error {
	data, err := s.Work(c.Request.Context())
	if err != nil {
		return err
	}
	return rest.Object(c, internalapi.WaitingWork{Data: data})
}

// Work returns what waits for the caller's tenant in both modes, by kind, live mode first.
func (s *Source) Work(ctx context.Context) ([]internalapi.WaitingItem, error) {
	who, err := caller.Require(ctx)
	if err != nil {
		return nil, err
	}
	out := []internalapi.WaitingItem{}
	for _, kind := range append([]Waiting{events}, s.Waiting...) {
		for _, mode := range []caller.Mode{caller.Live, caller.Test} {
			who.Mode = mode
			ctx := caller.With(ctx, who)
			n, err := pg.One(ctx, s.DB.Read(ctx), pgx.RowToStructByName[queued], errNoRow,
				`select count(*)::int as count, min(at) as oldest from (`+kind.SQL+` limit @most) w`, pg.Args{"most": MaxCount + 1})
			if err != nil {
				return nil, fmt.Errorf("waiting %s: %w", kind.Kind, err)
			}
			if n.Count > 0 {
				out = append(out, internalapi.WaitingItem{
					Kind: kind.Kind, Mode: string(mode), Count: min(n.Count, MaxCount), More: n.Count > MaxCount, OldestAt: n.Oldest,
				})
			}
		}
	}
	return out, nil
}
