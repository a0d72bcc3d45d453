// Package usage answers the calls of proto/internal/usage.yaml, with which the service of the tenants measures their usage and lists
// their background work. Each service with a database mounts it and adds the measures that it owns.
package usage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/quota"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto"
	"holdfast.dev/proto/internalapi"
)

// measureFor is the time after which a response does not begin another tenant.
const measureFor = 5 * time.Second

// atOnce is the number of tenants that a response measures at the same time. Each needs a connection of the app role, so requests keep
// the rest of the pool.
const atOnce = 2

// The time limits of the statements that count the events of a day and the stored rows. Both, for both modes of a tenant, are shorter
// than the server's time-out for a response.
const (
	countLimit  = 10 * time.Second
	storedLimit = 15 * time.Second
)

// Source is the part of a service.
type Source struct {
	Service string
	DB      *pg.DB // app role
	// Count adds the measures that the service owns, of the caller's tenant and mode; nil: it owns none but its rows.
	Count func(ctx context.Context, q pg.Q, day Day, to *internalapi.TenantUsage) error
	// Ready reports whether the service has received everything that others sent it on the day; nil: it counts only its own writes.
	Ready func(ctx context.Context) (bool, error)
	// Seal makes the day final for the caller's tenant and mode before it is measured; nil: nothing can be added to a past day.
	Seal func(ctx context.Context, day Day) error
	// Waiting are the kinds of background work, in addition to events that are not sent to Kafka yet.
	Waiting []Waiting
	// StoredLimit is the time limit for counting the stored rows of a tenant in one mode; 0: 15 seconds.
	StoredLimit time.Duration

	once   sync.Once
	places *quota.Places // of the measurements of running days
}

// Day is a day in UTC: From belongs to it, and To does not.
type Day struct {
	Date     civil.Date
	From, To time.Time
}

// DayOf returns the day of a date in UTC.
func DayOf(d civil.Date) Day {
	from := time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC)
	return Day{Date: d, From: from, To: from.AddDate(0, 0, 1)}
}

// Mount registers the calls.
func (s *Source) Mount(server *httpx.Server, e *gin.Engine) error {
	return server.MountInternal(e, proto.InternalUsage, map[string]httpx.Route{
		"measureUsage":        {Handle: s.measureUsage},
		"measureCurrentUsage": {Handle: s.measureCurrentUsage},
		"listBackgroundWork":  {Handle: s.listBackgroundWork},
	})
}

func (s *Source) measureUsage(c *gin.Context) error {
	body, err := httpx.Body[internalapi.UsageQuery](c)
	if err != nil {
		return err
	}
	date, err := civil.ParseDate(body.Day)
	if err != nil {
		return apperr.Field("day", "Must be a date YYYY-MM-DD, not %q.", body.Day).WithCause(err)
	}
	tenants := make([]ids.Tenant, len(body.Tenants))
	for i, text := range body.Tenants {
		if tenants[i], err = ids.Parse[ids.TenantPrefix](text); err != nil {
			return apperr.Field("tenants", "Invalid tenant ID: %q.", text).WithCause(err)
		}
	}
	page, err := s.Measure(c.Request.Context(), DayOf(date), tenants)
	if err != nil {
		return err
	}
	return rest.Object(c, page)
}

// Measure returns the usage of the first tenants on a day, of at least one. The result is not settled and has no data if writes of
// the day can still come.
func (s *Source) Measure(ctx context.Context, day Day, tenants []ids.Tenant) (internalapi.UsagePage, error) {
	page := internalapi.UsagePage{Data: []internalapi.TenantUsage{}}
	ok, err := s.settled(ctx, day)
	if err != nil || !ok {
		return page, err
	}
	page.Settled = true
	page.Data, err = s.measureAll(ctx, day, tenants)
	return page, err
}

// measureAll measures the first tenants, several at the same time. After measureFor, it begins no further one.
func (s *Source) measureAll(ctx context.Context, day Day, tenants []ids.Tenant) ([]internalapi.TenantUsage, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	rows := make([][]internalapi.TenantUsage, len(tenants))
	var workers sync.WaitGroup
	var begun atomic.Int64
	start := time.Now()
	for range min(atOnce, len(tenants)) {
		workers.Go(func() {
			for ctx.Err() == nil && (begun.Load() == 0 || time.Since(start) < measureFor) {
				i := int(begun.Add(1)) - 1
				if i >= len(tenants) {
					return
				}
				var err error
				if rows[i], err = s.measureTenant(ctx, day, tenants[i]); err != nil {
					cancel(err)
				}
			}
		})
	}
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return slices.Concat(rows...), nil // the tenants that were not begun are the last ones
}

// measureTenant returns the usage of a tenant in both modes.
func (s *Source) measureTenant(ctx context.Context, day Day, tenant ids.Tenant) (rows []internalapi.TenantUsage, err error) {
	for _, mode := range []caller.Mode{caller.Live, caller.Test} {
		one, err := s.measure(ctx, day, tenant, mode)
		if err != nil {
			return nil, fmt.Errorf("usage of %s in %s mode: %w", tenant, mode, err)
		}
		rows = append(rows, one)
	}
	return rows, nil
}

// settled reports whether the day is over for the database: its clock has passed it, and every transaction that began on it has
// ended.
func (s *Source) settled(ctx context.Context, day Day) (bool, error) {
	over, err := pg.One(ctx, s.DB.Read(ctx), scanBool, errNoRow, `select oldest_write() >= $1`, day.To)
	if err != nil || !over || s.Ready == nil {
		return over, err
	}
	return s.Ready(ctx)
}

func (s *Source) measure(ctx context.Context, day Day, tenant ids.Tenant, mode caller.Mode) (internalapi.TenantUsage, error) {
	ctx = caller.With(ctx, caller.Service(s.Service, tenant, mode))
	if s.Seal != nil {
		if err := s.Seal(ctx, day); err != nil {
			return internalapi.TenantUsage{}, err
		}
	}
	out, err := s.count(ctx, day, countLimit)
	if err == nil {
		out.StoredRows, out.StoredBytes, err = s.stored(ctx)
	}
	return out, err
}

// count returns what the service has recorded on the day for the caller's tenant and mode. Each of its statements ends after a time.
func (s *Source) count(ctx context.Context, day Day, within time.Duration) (out internalapi.TenantUsage, err error) {
	who := caller.FromContext(ctx)
	err = s.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		out = internalapi.TenantUsage{TenantID: who.Tenant.String(), Mode: string(who.Mode)}
		if s.Count == nil {
			return nil
		}
		if err := limit(ctx, tx, within); err != nil {
			return err
		}
		return s.Count(ctx, tx, day, &out)
	})
	return out, err
}

// stored counts the stored rows. It returns nil if that takes too long, so that one tenant's rows do not delay the day for all.
func (s *Source) stored(ctx context.Context) (rows, bytes *int64, err error) {
	var all size
	err = s.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		all, err = stored(ctx, tx, cmp.Or(s.StoredLimit, storedLimit))
		return err
	})
	if pg.Code(err) == "57014" && ctx.Err() == nil { // query_canceled
		return nil, nil, nil
	}
	return &all.Rows, &all.Bytes, err
}

// limit sets the time limit of the next statements, at least a millisecond, because 0 is no limit.
func limit(ctx context.Context, tx pg.Tx, statement time.Duration) error {
	if _, err := tx.Exec(ctx, `select set_config('statement_timeout', $1, true)`, fmt.Sprint(max(1, statement.Milliseconds()))); err != nil {
		return fmt.Errorf("statement_timeout: %w", err)
	}
	return nil
}
