package api

import (
	"context"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// closures defines how the handlers read and show a closure.
func (a *API) closures() rest.Collection[ids.ID[domain.ClosurePrefix], domain.Closure] {
	return rest.Collection[ids.ID[domain.ClosurePrefix], domain.Closure]{
		Parse: ids.Parse[domain.ClosurePrefix],
		DB:    a.DB, Idempotency: a.Idempotency, Path: "closures", NotFound: domain.ErrClosureNotFound, Load: store.Closure,
		Show: func(c domain.Closure, mode api.Mode) rest.Response {
			return rest.Response{ID: c.ID.String(), Version: c.Version, Body: view.Closure(c, mode)}
		},
	}
}

func (a *API) createClosure(c *gin.Context) error {
	return rest.Create(c, a.closures(), fromClosure, rest.None, a.Catalogue.CreateClosure)
}

func (a *API) updateClosure(c *gin.Context) error {
	return rest.Update(c, a.closures(), fromClosure, rest.None, a.Catalogue.UpdateClosure)
}

func (a *API) deleteClosure(c *gin.Context) error {
	return rest.Delete(c, a.closures(), a.Catalogue.DeleteClosure)
}

// getClosure also reads the conflicts, which no other handler needs from Load.
func (a *API) getClosure(c *gin.Context) error {
	r := a.closures()
	r.Load = a.Catalogue.Closure
	return rest.Get(c, r)
}

func (a *API) listClosures(c *gin.Context) error {
	f, none, err := closureFilter(c)
	if err != nil {
		return err
	}
	return page.Serve(c, a.Pages, a.DB, func(ctx context.Context, db pg.Q, r page.Request) (page.Rows[domain.Closure], error) {
		if none {
			return page.Rows[domain.Closure]{}, nil
		}
		return store.Closures(ctx, db, f, r)
	}, func(c domain.Closure) page.SortKey {
		return page.SortKey{ID: c.ID.UUID(), Created: c.CreatedAt, Updated: c.UpdatedAt}
	}, view.Closure)
}

// closureFilter reads the filters of a list. none reports that no closure can match them.
func closureFilter(c *gin.Context) (f store.ClosureFilter, none bool, err error) {
	q := httpx.Query(c)
	loc, err := civil.Location(caller.FromContext(c.Request.Context()).Timezone)
	if err != nil {
		return f, false, err
	}
	day := func(name string, end func(civil.Date) time.Time) (at *time.Time, err error) {
		if !q.Has(name) {
			return nil, nil
		}
		d, err := civil.ParseDate(q.String(name))
		if err != nil {
			return nil, fieldOf(name, err)
		}
		return new(end(d)), nil
	}
	from, err1 := day("from", func(d civil.Date) time.Time { return d.AddDays(-1).End(loc) })
	to, err2 := day("to", func(d civil.Date) time.Time { return d.End(loc) })
	f.From, f.To = from, to
	f.Unit, none = rest.FilterID[domain.UnitPrefix](q, "unit_id")
	if from != nil && to != nil && !from.Before(*to) {
		err2 = apperr.Field("to", "Must not be before from.")
	}
	return f, none, apperr.Join(err1, err2)
}

// fromClosure also converts the body of a create, which has the same fields. The contract checks the required ones.
func fromClosure(b api.ClosureUpdate) domain.ClosurePatch {
	return domain.ClosurePatch{
		Name: patch.FromPointer(b.Name), UnitIDs: patch.FromNullable(b.UnitIds),
		From: patch.FromNullable(b.DateFrom), To: patch.FromNullable(b.DateTo),
		StartsAt: patch.FromNullable(b.StartsAt), EndsAt: patch.FromNullable(b.EndsAt),
	}
}
