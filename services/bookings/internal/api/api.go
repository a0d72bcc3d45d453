// Package api contains the HTTP handlers by operationId. A handler decodes the request, calls one use case and encodes the result.
package api

import (
	"context"
	"errors"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/app"
	"holdfast.dev/services/bookings/internal/domain"
)

// Directory returns the public bodies of customers for expand in one call: as many, from the start of the list, as a page can show.
// It does not look up the rest.
type Directory interface {
	Expand(ctx context.Context, list []domain.CustomerID) (found map[domain.CustomerID]api.Customer, rest []domain.CustomerID, err error)
}

// API holds what the handlers need.
type API struct {
	DB          *pg.DB
	Idempotency *idemstore.Store
	Bookings    *app.Bookings
	Catalogue   *app.Catalogue
	Clocks      *app.Clocks
	Feeds       *app.Feeds
	Directory   Directory
	Pages       *page.Codec
	Server      *httpx.Server
	Now         func() time.Time // real time
}

// Mount registers the contract's operations and the internal calls.
func (a *API) Mount(e *gin.Engine) error {
	if err := errors.Join(a.mountInternal(e), a.usage().Mount(a.Server, e)); err != nil {
		return err
	}
	return a.Server.Mount(e, map[string]httpx.Route{
		"createBooking":  {Handle: a.createBooking},
		"listBookings":   {Handle: a.listBookings},
		"getBooking":     {Handle: a.getBooking, Exists: a.bookings().Exists},
		"updateBooking":  {Handle: a.updateBooking, Exists: a.bookings().Exists},
		"cancelBooking":  {Handle: a.cancelBooking, Exists: a.bookings().Exists},
		"repriceBooking": {Handle: a.repriceBooking, Exists: a.bookings().Exists},

		"listBookingPayments": {Handle: a.listBookingPayments, Exists: a.bookings().Exists},

		"getTestClock":    {Handle: a.getTestClock, Exists: a.testMode},
		"setTestClock":    {Handle: a.setTestClock, Exists: a.testMode},
		"deleteTestClock": {Handle: a.deleteTestClock, Exists: a.testMode},

		"createService":     {Handle: a.createService},
		"listServices":      {Handle: a.listServices},
		"getService":        {Handle: a.getService, Exists: a.services().Exists},
		"updateService":     {Handle: a.updateService, Exists: a.services().Exists},
		"createUnit":        {Handle: a.createUnit},
		"listUnits":         {Handle: a.listUnits},
		"getUnit":           {Handle: a.getUnit, Exists: a.units().Exists},
		"updateUnit":        {Handle: a.updateUnit, Exists: a.units().Exists},
		"createPackage":     {Handle: a.createPackage},
		"listPackages":      {Handle: a.listPackages},
		"getPackage":        {Handle: a.getPackage, Exists: a.packages().Exists},
		"updatePackage":     {Handle: a.updatePackage, Exists: a.packages().Exists},
		"createHolidayRule": {Handle: a.createHolidayRule},
		"listHolidayRules":  {Handle: a.listHolidayRules},
		"getHolidayRule":    {Handle: a.getHolidayRule, Exists: a.holidayRules().Exists},
		"updateHolidayRule": {Handle: a.updateHolidayRule, Exists: a.holidayRules().Exists},

		"createClosure": {Handle: a.createClosure},
		"listClosures":  {Handle: a.listClosures},
		"getClosure":    {Handle: a.getClosure, Exists: a.closures().Exists},
		"updateClosure": {Handle: a.updateClosure, Exists: a.closures().Exists},
		"deleteClosure": {Handle: a.deleteClosure, Exists: a.closures().Exists},

		"createCalendarFeed": {Handle: a.createFeed},
		"listCalendarFeeds":  {Handle: a.listFeeds},
		"getCalendarFeed":    {Handle: a.getFeed, Exists: a.feeds().Exists},
		"deleteCalendarFeed": {Handle: a.deleteFeed, Exists: a.feeds().Exists},
		"getCalendar":        {Handle: a.getCalendar, Exists: a.calendarExists},

		"listAvailability":    {Handle: a.listAvailability},
		"explainAvailability": {Handle: a.explainAvailability},
	})
}

func filterText(q contract.Query, name string) *string {
	if !q.Has(name) {
		return nil
	}
	v := q.String(name)
	return &v
}

// fieldOf returns an error on the query parameter with a wrong value.
func fieldOf(name string, err error) error { return apperr.Field(name, "%s", err) }
