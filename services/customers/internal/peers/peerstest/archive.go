package peerstest

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"

	"holdfast.dev/services/customers/internal/domain"
)

// Archive stands for the bookings and webhooks services in exports.
type Archive struct {
	// Before runs before each call, which is "bookings", "booking ids" or "events", with the page that is asked for, from 0; it may
	// return the error that the caller sees.
	Before func(ctx context.Context, call string, page int) error
	// PageSize is the number of bodies on a page.
	PageSize int

	mu       sync.Mutex
	bookings map[owner][]booking
	events   map[owner][]json.RawMessage
}

type owner struct {
	tenant ids.Tenant
	mode   caller.Mode
	id     string
}

type booking struct {
	id   string
	body json.RawMessage
}

func ownerOf(ctx context.Context, id string) owner {
	c := caller.FromContext(ctx)
	return owner{c.Tenant, c.Mode, id}
}

// AddBooking makes a booking the newest one of a customer.
func (f *Archive) AddBooking(ctx context.Context, customer, id string, body json.RawMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bookings == nil {
		f.bookings = map[owner][]booking{}
	}
	o := ownerOf(ctx, customer)
	f.bookings[o] = append([]booking{{id, body}}, f.bookings[o]...)
}

// AddEvent makes an event the newest one about an object.
func (f *Archive) AddEvent(ctx context.Context, object string, body json.RawMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.events == nil {
		f.events = map[owner][]json.RawMessage{}
	}
	o := ownerOf(ctx, object)
	f.events[o] = append(f.events[o], body)
}

// BookingsOf implements app.CustomerBookings.
func (f *Archive) BookingsOf(ctx context.Context, customer domain.CustomerID, cursor string) ([]json.RawMessage, string, error) {
	list, next, err := f.page(ctx, "bookings", customer, cursor)
	bodies := make([]json.RawMessage, len(list))
	for i, b := range list {
		bodies[i] = b.body
	}
	return bodies, next, err
}

// BookingIDsOf implements app.CustomerBookings.
func (f *Archive) BookingIDsOf(ctx context.Context, customer domain.CustomerID, cursor string) ([]string, string, error) {
	list, next, err := f.page(ctx, "booking ids", customer, cursor)
	names := make([]string, len(list))
	for i, b := range list {
		names[i] = b.id
	}
	return names, next, err
}

// page reads behind the booking that the cursor names; the number of the page stands before it.
func (f *Archive) page(ctx context.Context, call string, customer domain.CustomerID, cursor string) ([]booking, string, error) {
	n, after := cut(cursor)
	if err := f.before(ctx, call, n); err != nil {
		return nil, "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.bookings[ownerOf(ctx, customer.String())]
	all = all[slices.IndexFunc(all, func(b booking) bool { return b.id == after })+1:]
	if len(all) <= f.size() {
		return all, "", nil
	}
	return all[:f.size()], strconv.Itoa(n+1) + " " + all[f.size()-1].id, nil
}

// EventsOf implements app.ObjectEvents.
func (f *Archive) EventsOf(ctx context.Context, objects []string, cursor string) (list []json.RawMessage, next string, err error) {
	n, _ := cut(cursor)
	if err := f.before(ctx, "events", n); err != nil {
		return nil, "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, object := range objects {
		list = append(list, f.events[ownerOf(ctx, object)]...)
	}
	list = list[min(n*f.size(), len(list)):]
	if len(list) <= f.size() {
		return list, "", nil
	}
	return list[:f.size()], strconv.Itoa(n + 1), nil
}

func (f *Archive) before(ctx context.Context, call string, page int) error {
	if f.Before == nil {
		return nil
	}
	return f.Before(ctx, call, page)
}

func (f *Archive) size() int { return max(1, f.PageSize) }

func cut(cursor string) (page int, after string) {
	number, after, _ := strings.Cut(cursor, " ")
	page, _ = strconv.Atoi(number)
	return page, after
}
