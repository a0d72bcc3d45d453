package api

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// bookings defines how the handlers read and show a booking.
func (a *API) bookings() rest.Collection[ids.ID[domain.BookingPrefix], domain.Booking] {
	return rest.Collection[ids.ID[domain.BookingPrefix], domain.Booking]{
		Parse: ids.Parse[domain.BookingPrefix],
		DB:    a.DB, Idempotency: a.Idempotency, Path: "bookings", NotFound: domain.ErrBookingNotFound, Load: store.Booking,
		Show: func(b domain.Booking, mode api.Mode) rest.Response {
			return rest.Response{ID: b.ID.String(), Version: b.Version, Body: view.Booking(b, mode)}
		},
	}
}

func (a *API) createBooking(c *gin.Context) error {
	return rest.Create(c, a.bookings(), fromBookingCreate, a.Bookings.PrepareCreate, a.Bookings.Create)
}

func (a *API) updateBooking(c *gin.Context) error {
	return rest.Update(c, a.bookings(), fromBookingUpdate, a.Bookings.PrepareUpdate, a.Bookings.Update)
}

func (a *API) cancelBooking(c *gin.Context) error {
	return rest.Update(c, a.bookings(), fromBookingCancel, rest.None, a.Bookings.Update)
}

func (a *API) repriceBooking(c *gin.Context) error {
	return rest.Action(c, a.bookings(), a.Bookings.PrepareReprice, a.Bookings.Update)
}

func (a *API) getBooking(c *gin.Context) error {
	ctx := c.Request.Context()
	expand, err := expands(ctx, httpx.Query(c))
	if err != nil {
		return err
	}
	b, err := a.bookings().Read(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	b = b.At(a.now(ctx))
	bodies, err := a.bodies(ctx, []domain.Booking{b}, expand)
	if err != nil {
		return err
	}
	return httpx.Resource(c, b.Version, bodies[0])
}

func (a *API) listBookings(c *gin.Context) error {
	ctx, q := c.Request.Context(), httpx.Query(c)
	expand, err := expands(ctx, q)
	if err != nil {
		return err
	}
	filter, none, err := a.bookingFilter(ctx, q)
	if err != nil {
		return err
	}
	names := httpx.PrefersCSV(c)
	return page.ServeShown(c, a.Pages, a.DB, func(ctx context.Context, db pg.Q, r page.Request) (page.Rows[page.Shown[listedBooking]], error) {
		if none {
			return page.Rows[page.Shown[listedBooking]]{}, nil
		}
		return a.shownBookings(ctx, db, r, filter, expand, names)
	})
}

// listedBooking is a booking in a list. Only CSV has its names.
type listedBooking struct {
	api.Booking

	CustomerName string `json:"customer_name,omitzero"`
	UnitName     string `json:"unit_name,omitzero"`
}

// shownBookings reads one page and returns each booking in its current state, with names if names is true.
func (a *API) shownBookings(
	ctx context.Context, db pg.Q, r page.Request, f store.BookingFilter, expand, names bool,
) (page.Rows[page.Shown[listedBooking]], error) {
	rows, err := store.Bookings(ctx, db, f, r)
	if err != nil {
		return page.Rows[page.Shown[listedBooking]]{}, err
	}
	for i, b := range rows.Items {
		rows.Items[i] = b.At(f.Now)
	}
	bodies, err := a.bodies(ctx, rows.Items, expand)
	if err != nil {
		return page.Rows[page.Shown[listedBooking]]{}, err
	}
	listed := make([]listedBooking, len(bodies))
	for i, b := range bodies {
		listed[i].Booking = b
	}
	if names {
		if err := a.addNames(ctx, db, rows.Items, listed); err != nil {
			return page.Rows[page.Shown[listedBooking]]{}, err
		}
	}
	return page.Show(rows, listed, func(b domain.Booking) page.SortKey {
		return page.SortKey{ID: b.ID.UUID(), Created: b.CreatedAt, Updated: b.UpdatedAt, By: b.Begins}
	}), nil
}

// addNames sets the names of the customers and units of bookings, if the credential may read them. It reads them in one query. The names
// of customers are those of the local copy, which omits erased customers.
func (a *API) addNames(ctx context.Context, db pg.Q, list []domain.Booking, listed []listedBooking) error {
	var customers []domain.CustomerID
	var units []domain.UnitID
	who := caller.FromContext(ctx)
	for _, b := range list[:len(listed)] {
		if who.Has("read:customers") && !b.CustomerID.IsZero() {
			customers = append(customers, b.CustomerID)
		}
		if who.Has("read:units") && !b.UnitID.IsZero() {
			units = append(units, b.UnitID)
		}
	}
	names, err := store.Names(ctx, db, customers, units)
	for i := range listed {
		listed[i].CustomerName, listed[i].UnitName = names[list[i].CustomerID.UUID()], names[list[i].UnitID.UUID()]
	}
	return err
}

func (a *API) now(ctx context.Context) time.Time { return caller.FromContext(ctx).Now(a.Now()) }

// expands reports whether to embed customers. Embedding requires the read scope for customers.
func expands(ctx context.Context, q contract.Query) (bool, error) {
	if !slices.Contains(q.List("expand"), "customer") {
		return false, nil
	}
	if !caller.FromContext(ctx).Has("read:customers") {
		return false, domain.ErrScope
	}
	return true, nil
}

// bodies returns the public bodies of bookings. With expand, it embeds their customers with one call. It then returns only the
// first bookings, up to the last one whose customer was looked up, because these customers fill a page.
func (a *API) bodies(ctx context.Context, list []domain.Booking, expand bool) ([]api.Booking, error) {
	out := make([]api.Booking, len(list))
	var requested []domain.CustomerID
	for i, b := range list {
		out[i] = view.Booking(b, httpx.Mode(ctx))
		if !b.CustomerID.IsZero() && !slices.Contains(requested, b.CustomerID) {
			requested = append(requested, b.CustomerID)
		}
	}
	if !expand {
		return out, nil
	}
	var known map[domain.CustomerID]api.Customer
	var rest []domain.CustomerID
	if len(requested) > 0 {
		var err error
		if known, rest, err = a.Directory.Expand(ctx, requested); err != nil {
			return nil, err
		}
	}
	for i, b := range list {
		if slices.Contains(rest, b.CustomerID) {
			return out[:i], nil
		}
		out[i].Customer = api.Null[api.Customer]()
		if c, ok := known[b.CustomerID]; ok {
			out[i].Customer = nullable.NewNullableWithValue(c)
		}
	}
	return out, nil
}

// bookingFilter reads the filters. none is true if one of the ids is malformed, so that no row matches.
func (a *API) bookingFilter(ctx context.Context, q contract.Query) (f store.BookingFilter, none bool, err error) {
	var bad [4]bool
	f = store.BookingFilter{Now: a.now(ctx), EventType: filterText(q, "event_type"), Metadata: q.Map("metadata")}
	f.Customer, bad[0] = rest.FilterID[ids.CustomerPrefix](q, "customer_id")
	f.Service, bad[1] = rest.FilterID[domain.ServicePrefix](q, "service_id")
	f.Unit, bad[2] = rest.FilterID[domain.UnitPrefix](q, "unit_id")
	f.Package, bad[3] = rest.FilterID[domain.PackagePrefix](q, "package_id")
	if q.Has("number") {
		f.Number = new(strings.ToUpper(q.String("number")))
	}
	for _, s := range q.List("status") {
		f.Status = append(f.Status, domain.Status(s))
	}
	for _, s := range q.List("payment_status") {
		f.PaymentStatus = append(f.PaymentStatus, domain.PaymentStatus(s))
	}
	f.StartsAfter, f.StartsBefore = filterTime(q, "starts_after"), filterTime(q, "starts_before")
	if f.From, err = filterDate(q, "event_date_from"); err != nil {
		return f, false, err
	}
	f.To, err = filterDate(q, "event_date_to")
	return f, slices.Contains(bad[:], true), err
}

func filterTime(q contract.Query, name string) *time.Time {
	if at, ok := q.Time(name); ok {
		return &at
	}
	return nil
}

func filterDate(q contract.Query, name string) (*civil.Date, error) {
	if !q.Has(name) {
		return nil, nil // A nil date means no filter.
	}
	d, err := civil.ParseDate(q.String(name))
	if err != nil {
		return nil, fieldOf(name, err)
	}
	return &d, nil
}
