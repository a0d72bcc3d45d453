// Package api is the door for HTTP: handlers by operationId, which decode, call one thing and encode.
package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/app"
	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
)

// Directory gives the public bodies of customers for expand, in one call: as many of the first ones as a page can
// show. The rest it has not looked up.
type Directory interface {
	Expand(ctx context.Context, list []domain.CustomerID) (found map[domain.CustomerID]api.Customer, rest []domain.CustomerID, err error)
}

// API holds what the handlers need.
type API struct {
	DB        *pg.DB // for reads
	Bookings  *app.Bookings
	Catalogue *app.Catalogue
	Clocks    *app.Clocks
	Directory Directory
	Pages     *page.Codec
	Server    *httpx.Server
	Now       func() time.Time // real time
}

// Mount registers the contract's operations.
func (a *API) Mount(e *gin.Engine) error {
	return a.Server.Mount(e, map[string]httpx.Route{
		"createBooking":  {Handle: a.createBooking},
		"listBookings":   {Handle: a.listBookings},
		"getBooking":     {Handle: a.getBooking, Exists: exists(a.booking)},
		"updateBooking":  {Handle: a.updateBooking, Exists: exists(a.booking)},
		"cancelBooking":  {Handle: a.cancelBooking, Exists: exists(a.booking)},
		"repriceBooking": {Handle: a.repriceBooking, Exists: exists(a.booking)},

		"getTestClock":    {Handle: a.getTestClock, Exists: a.testMode},
		"setTestClock":    {Handle: a.setTestClock, Exists: a.testMode},
		"deleteTestClock": {Handle: a.deleteTestClock, Exists: a.testMode},

		"createService":     {Handle: a.createService},
		"listServices":      {Handle: a.listServices},
		"getService":        {Handle: a.getService, Exists: exists(a.service)},
		"updateService":     {Handle: a.updateService, Exists: exists(a.service)},
		"createUnit":        {Handle: a.createUnit},
		"listUnits":         {Handle: a.listUnits},
		"getUnit":           {Handle: a.getUnit, Exists: exists(a.unit)},
		"updateUnit":        {Handle: a.updateUnit, Exists: exists(a.unit)},
		"createPackage":     {Handle: a.createPackage},
		"listPackages":      {Handle: a.listPackages},
		"getPackage":        {Handle: a.getPackage, Exists: exists(a.packaged)},
		"updatePackage":     {Handle: a.updatePackage, Exists: exists(a.packaged)},
		"createHolidayRule": {Handle: a.createHolidayRule},
		"listHolidayRules":  {Handle: a.listHolidayRules},
		"getHolidayRule":    {Handle: a.getHolidayRule, Exists: exists(a.holiday)},
		"updateHolidayRule": {Handle: a.updateHolidayRule, Exists: exists(a.holiday)},

		"listAvailability":    {Handle: a.listAvailability},
		"explainAvailability": {Handle: a.explainAvailability},
	})
}

// create makes a thing of the catalogue by the body's edit.
func create[B any, P ids.Prefix, T any](c *gin.Context, o *app.Offer[P, T], edit func(B) func(*T) error) error {
	b, err := httpx.Body[B](c)
	if err != nil {
		return err
	}
	reply, err := o.Create(c.Request.Context(), edit(b))
	if err != nil {
		return err
	}
	return httpx.Send(c, reply)
}

// update changes a thing of the catalogue by the body's edit; a malformed id is missing.
func update[B any, P ids.Prefix, T any](c *gin.Context, o *app.Offer[P, T], missing error, edit func(B) func(*T) error) error {
	b, err := httpx.Body[B](c)
	if err != nil {
		return err
	}
	id, err := ids.Parse[P](c.Param("id"))
	if err != nil {
		return missing
	}
	reply, err := o.Update(c.Request.Context(), id, httpx.IfMatch(c), edit(b))
	if err != nil {
		return err
	}
	return httpx.Send(c, reply)
}

func exists[T any](read func(ctx context.Context, id string) (T, error)) func(context.Context, string) error {
	return func(ctx context.Context, id string) error {
		_, err := read(ctx, id)
		return err
	}
}

// found reads the row of an id in the path; a miss is missing, or a 403 when the id is of the other mode.
func found[P ids.Prefix, T any](
	ctx context.Context, db *pg.DB, param string, missing error,
	read func(ctx context.Context, q pg.Q, id ids.ID[P]) (T, error),
) (T, error) {
	var none T
	id, err := ids.Parse[P](param)
	if err != nil {
		return none, missing
	}
	v, err := read(ctx, db.Read(ctx), id)
	if errors.Is(err, missing) {
		err = store.Missing(ctx, db, func(ctx context.Context, q pg.Q) error {
			_, err := read(ctx, q, id)
			return err
		})
	}
	return v, err
}

// filterID reads an id in a filter. One that is malformed is no row's: the list is empty.
func filterID[P ids.Prefix](q contract.Query, name string) (id *ids.ID[P], none bool) {
	if !q.Has(name) {
		return nil, false
	}
	parsed, err := ids.Parse[P](q.String(name))
	return &parsed, err != nil
}

func filterBool(q contract.Query, name string) *bool {
	if !q.Has(name) {
		return nil
	}
	v := q.String(name) == "true"
	return &v
}

func filterText(q contract.Query, name string) *string {
	if !q.Has(name) {
		return nil
	}
	v := q.String(name)
	return &v
}

// list answers a page of rows as read finds them; none is that a filter leaves no row.
func list[T, V any](
	a *API, c *gin.Context, operation string, none bool,
	read func(ctx context.Context, q pg.Q, r page.Request) (page.Rows[T], error), place func(T) page.Place, shape func(T, api.Mode) V,
) error {
	ctx := c.Request.Context()
	req, err := a.Pages.Parse(ctx, httpx.Query(c), operation)
	if err != nil {
		return err
	}
	if none {
		return sendNone(c)
	}
	rows, err := read(ctx, req.Reader(ctx, a.DB), req)
	if err != nil {
		return err
	}
	return page.Send(c, a.Pages, req, rows, place, func(t T) V { return shape(t, mode(ctx)) })
}

// sendNone answers a list that a filter leaves empty.
func sendNone(c *gin.Context) error {
	return httpx.JSON(c, http.StatusOK, "", httpx.ListBody(nil, false, ""))
}

func mode(ctx context.Context) api.Mode { return api.Mode(caller.Must(ctx).Mode) }

// fieldOf puts a failed value on its query parameter.
func fieldOf(name string, err error) error { return apperr.Field(name, "%s", err) }
