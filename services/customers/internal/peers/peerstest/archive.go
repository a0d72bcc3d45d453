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

// Archive replaces the bookings, payments and webhooks services in exports.
type Archive struct {
	// Before runs before each call. call is "events", a kind such as "bookings", or "ids of bookings". page is the requested page,
	// from 0. The caller sees the error that Before returns.
	Before func(ctx context.Context, call string, page int) error
	// PageSize is the number of bodies on a page.
	PageSize int

	mu        sync.Mutex
	resources map[string]map[owner][]resource // by kind
	events    map[owner][]json.RawMessage
}

type owner struct {
	tenant ids.Tenant
	mode   caller.Mode
	id     string
}

type resource struct {
	id   string
	body json.RawMessage
}

func ownerOf(ctx context.Context, id string) owner {
	c := caller.FromContext(ctx)
	return owner{c.Tenant, c.Mode, id}
}

// Add adds a resource of a kind as the newest one of a customer.
func (f *Archive) Add(ctx context.Context, kind, customer, id string, body json.RawMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.resources == nil {
		f.resources = map[string]map[owner][]resource{}
	}
	if f.resources[kind] == nil {
		f.resources[kind] = map[owner][]resource{}
	}
	o := ownerOf(ctx, customer)
	f.resources[kind][o] = append([]resource{{id, body}}, f.resources[kind][o]...)
}

// AddEvent adds an event as the newest one about an object.
func (f *Archive) AddEvent(ctx context.Context, object string, body json.RawMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.events == nil {
		f.events = map[owner][]json.RawMessage{}
	}
	o := ownerOf(ctx, object)
	f.events[o] = append(f.events[o], body)
}

// Of returns the service that owns a kind of resource.
func (f *Archive) Of(kind string) *ArchiveOf { return &ArchiveOf{f, kind} }

// ArchiveOf is one kind of resource of an Archive. It implements app.CustomerResources.
type ArchiveOf struct {
	archive *Archive
	kind    string
}

// BodiesOf returns a page of the bodies.
func (f *ArchiveOf) BodiesOf(ctx context.Context, customer domain.CustomerID, cursor string) ([]json.RawMessage, string, error) {
	list, next, err := f.page(ctx, f.kind, customer, cursor)
	bodies := make([]json.RawMessage, len(list))
	for i, r := range list {
		bodies[i] = r.body
	}
	return bodies, next, err
}

// IDsOf returns a page of the ids.
func (f *ArchiveOf) IDsOf(ctx context.Context, customer domain.CustomerID, cursor string) ([]string, string, error) {
	list, next, err := f.page(ctx, "ids of "+f.kind, customer, cursor)
	names := make([]string, len(list))
	for i, r := range list {
		names[i] = r.id
	}
	return names, next, err
}

// page reads the page after the resource that the cursor names. The cursor is the number of the page, a space and the id of the
// resource.
func (f *ArchiveOf) page(ctx context.Context, call string, customer domain.CustomerID, cursor string) ([]resource, string, error) {
	n, after := cut(cursor)
	a := f.archive
	if err := a.before(ctx, call, n); err != nil {
		return nil, "", err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.resources[f.kind][ownerOf(ctx, customer.String())]
	all = all[slices.IndexFunc(all, func(r resource) bool { return r.id == after })+1:]
	if len(all) <= a.size() {
		return all, "", nil
	}
	return all[:a.size()], strconv.Itoa(n+1) + " " + all[a.size()-1].id, nil
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
