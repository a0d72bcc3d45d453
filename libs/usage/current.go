package usage

import (
	"context"
	"fmt"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/quota"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/internalapi"
)

// currentLimit is the time limit for measuring the running day of a tenant in both modes, also for waiting. It is shorter than the time
// that identity waits.
const currentLimit = 1500 * time.Millisecond

// currentAtOnce is the number of tenants whose running day a process measures at the same time, each with one connection of the app role.
// A tenant whose rows take long to count has one of them.
const currentAtOnce = 2

func (s *Source) measureCurrentUsage(c *gin.Context) error {
	date, err := civil.ParseDate(httpx.Query(c).String("day"))
	if err != nil {
		return apperr.Field("day", "Must be a date YYYY-MM-DD.").WithCause(err)
	}
	data, err := s.Current(c.Request.Context(), DayOf(date))
	if err != nil {
		return err
	}
	return rest.Object(c, internalapi.CurrentUsage{Data: data})
}

// Current returns what the service has recorded until now on a day, for the caller's tenant in both modes, live mode first. It does not
// seal the day, wait for writes, or count stored rows. It returns apperr.ErrUnavailable if that takes too long.
func (s *Source) Current(ctx context.Context, day Day) ([]internalapi.TenantUsage, error) {
	who, err := caller.Require(ctx)
	if err != nil {
		return nil, err
	}
	s.once.Do(func() { s.places = quota.NewPlaces(currentAtOnce, 1) })
	end := time.Now().Add(currentLimit)
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	tenant := who.Tenant.String()
	if err := s.places.Acquire(ctx, tenant); err != nil {
		return nil, apperr.ErrUnavailable.WithCause(err)
	}
	defer s.places.Release(tenant)
	var out []internalapi.TenantUsage
	for _, mode := range []caller.Mode{caller.Live, caller.Test} {
		one, err := s.count(caller.With(ctx, caller.Service(s.Service, who.Tenant, mode)), day, time.Until(end))
		if ctx.Err() != nil || pg.Code(err) == "57014" { // query_canceled
			return nil, apperr.ErrUnavailable.WithCause(err)
		}
		if err != nil {
			return nil, fmt.Errorf("current usage in %s mode: %w", mode, err)
		}
		out = append(out, one)
	}
	return out, nil
}
