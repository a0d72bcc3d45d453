package api

import (
	"context"
	"slices"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

func (a *API) createBooking(c *gin.Context) error {
	body, err := httpx.Body[api.BookingCreate](c)
	if err != nil {
		return err
	}
	reply, err := a.Bookings.Create(c.Request.Context(), fromBookingCreate(body))
	if err != nil {
		return err
	}
	return httpx.Send(c, reply)
}

func (a *API) updateBooking(c *gin.Context) error {
	body, err := httpx.Body[api.BookingUpdate](c)
	if err != nil {
		return err
	}
	id, err := bookingID(c)
	if err != nil {
		return err
	}
	reply, err := a.Bookings.Update(c.Request.Context(), id, fromBookingUpdate(body), httpx.IfMatch(c))
	if err != nil {
		return err
	}
	return httpx.Send(c, reply)
}

func (a *API) cancelBooking(c *gin.Context) error {
	body, err := httpx.Body[api.BookingCancel](c)
	if err != nil {
		return err
	}
	id, err := bookingID(c)
	if err != nil {
		return err
	}
	reply, err := a.Bookings.Cancel(c.Request.Context(), id, change(body.Reason).Value, httpx.IfMatch(c))
	if err != nil {
		return err
	}
	return httpx.Send(c, reply)
}

func (a *API) getBooking(c *gin.Context) error {
	ctx := c.Request.Context()
	expand, err := expands(ctx, httpx.Query(c))
	if err != nil {
		return err
	}
	b, err := a.booking(ctx, c.Param("id"))
	if err != nil {
		return err
	}
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
	req, err := a.Pages.Parse(ctx, q, "listBookings")
	if err != nil {
		return err
	}
	if none {
		return sendNone(c)
	}
	rows, err := store.Bookings(ctx, req.Reader(ctx, a.DB), filter, req)
	if err != nil {
		return err
	}
	for i, b := range rows.Items {
		rows.Items[i] = b.At(filter.Now)
	}
	bodies, err := a.bodies(ctx, rows.Items, expand)
	if err != nil {
		return err
	}
	shown := page.Rows[shownBooking]{More: rows.More || len(bodies) < len(rows.Items)}
	for i, body := range bodies {
		b := rows.Items[i]
		shown.Items = append(shown.Items, shownBooking{page.Place{ID: b.ID.UUID(), Created: b.CreatedAt, Updated: b.UpdatedAt}, body})
	}
	return page.Send(c, a.Pages, req, shown, func(s shownBooking) page.Place { return s.place }, func(s shownBooking) api.Booking { return s.body })
}

// shownBooking is a row of the list with its body, which is made of all rows together.
type shownBooking struct {
	place page.Place
	body  api.Booking
}

// booking reads one as it is now.
func (a *API) booking(ctx context.Context, id string) (domain.Booking, error) {
	b, err := found(ctx, a.DB, id, domain.ErrBookingNotFound, store.Booking)
	return b.At(a.now(ctx)), err
}

func (a *API) now(ctx context.Context) time.Time { return caller.Must(ctx).Now(a.Now()) }

func bookingID(c *gin.Context) (domain.BookingID, error) {
	id, err := ids.Parse[domain.BookingPrefix](c.Param("id"))
	if err != nil {
		return id, domain.ErrBookingNotFound
	}
	return id, nil
}

// expands reports whether customers are to be embedded, which needs their own read scope.
func expands(ctx context.Context, q contract.Query) (bool, error) {
	if !slices.Contains(q.List("expand"), "customer") {
		return false, nil
	}
	if !caller.Must(ctx).Has("read:customers") {
		return false, domain.ErrScope
	}
	return true, nil
}

// bodies are the public bodies of bookings, their customers embedded where asked, by one call; then only of so many of
// the first bookings as it has looked the customers up of: their customers alone fill a page.
func (a *API) bodies(ctx context.Context, list []domain.Booking, expand bool) ([]api.Booking, error) {
	out := make([]api.Booking, len(list))
	var wanted []domain.CustomerID
	for i, b := range list {
		out[i] = view.Booking(b, mode(ctx))
		if !b.CustomerID.IsZero() && !slices.Contains(wanted, b.CustomerID) {
			wanted = append(wanted, b.CustomerID)
		}
	}
	if !expand {
		return out, nil
	}
	var known map[domain.CustomerID]api.Customer
	var rest []domain.CustomerID
	if len(wanted) > 0 {
		var err error
		if known, rest, err = a.Directory.Expand(ctx, wanted); err != nil {
			return nil, err
		}
	}
	for i, b := range list {
		if slices.Contains(rest, b.CustomerID) {
			return out[:i], nil
		}
		out[i].Customer = nullable.NewNullNullable[api.Customer]()
		if c, ok := known[b.CustomerID]; ok {
			out[i].Customer = nullable.NewNullableWithValue(c)
		}
	}
	return out, nil
}

// bookingFilter reads the filters; none when an id among them is malformed, so that no row matches.
func (a *API) bookingFilter(ctx context.Context, q contract.Query) (f store.BookingFilter, none bool, err error) {
	var bad [4]bool
	f = store.BookingFilter{Now: a.now(ctx), EventType: filterText(q, "event_type"), Metadata: q.Map("metadata")}
	f.Customer, bad[0] = filterID[ids.CustomerPrefix](q, "customer_id")
	f.Service, bad[1] = filterID[domain.ServicePrefix](q, "service_id")
	f.Unit, bad[2] = filterID[domain.UnitPrefix](q, "unit_id")
	f.Package, bad[3] = filterID[domain.PackagePrefix](q, "package_id")
	for _, s := range q.List("status") {
		f.Status = append(f.Status, domain.Status(s))
	}
	for _, s := range q.List("payment_status") {
		f.PaymentStatus = append(f.PaymentStatus, domain.PaymentStatus(s))
	}
	if f.From, err = filterDate(q, "event_date_from"); err != nil {
		return f, false, err
	}
	f.To, err = filterDate(q, "event_date_to")
	return f, slices.Contains(bad[:], true), err
}

func filterDate(q contract.Query, name string) (*domain.Date, error) {
	if !q.Has(name) {
		return nil, nil //nolint:nilnil // no filter
	}
	d, err := domain.ParseDate(q.String(name))
	if err != nil {
		return nil, fieldOf(name, err)
	}
	return &d, nil
}
