package peerstest

import (
	"context"
	"sync"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"

	"holdfast.dev/services/payments/internal/domain"
)

// Bookings replaces the bookings service. Each tenant and mode has its own bookings.
type Bookings struct {
	// Fail returns the error that the caller sees; nil: none.
	Fail func() error

	mu       sync.Mutex
	rows     map[domain.BookingID]owned[domain.Booking]
	settled  map[domain.BookingID]owned[domain.Settlement]
	requests int
}

// Invoices replaces the customers service. What is not due of a booking by its Add was paid on other invoices.
type Invoices struct {
	Bookings *Bookings
	// Respond changes the dues that the caller receives; nil: unchanged.
	Respond func(d domain.Dues) domain.Dues
	// Fail returns the error that the caller sees; nil: none.
	Fail func() error

	mu   sync.Mutex
	rows map[domain.InvoiceID]owned[domain.Invoice]
}

type owned[T any] struct {
	tenant ids.Tenant
	mode   caller.Mode
	value  T
}

func (o owned[T]) of(ctx context.Context) bool {
	c := caller.FromContext(ctx)
	return o.tenant == c.Tenant && o.mode == c.Mode
}

func own[T any](ctx context.Context, v T) owned[T] {
	c := caller.FromContext(ctx)
	return owned[T]{c.Tenant, c.Mode, v}
}

// Add creates a booking of the caller.
func (f *Bookings) Add(ctx context.Context, status string, total, due int64, currency string) domain.Booking {
	b := domain.Booking{
		ID: ids.New[ids.BookingPrefix](), CustomerID: ids.New[ids.CustomerPrefix](), Status: status, Version: 1,
		Total: money.Amount{Minor: total, Currency: currency}, Due: money.Amount{Minor: due, Currency: currency},
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rows == nil {
		f.rows = map[domain.BookingID]owned[domain.Booking]{}
	}
	f.rows[b.ID] = own(ctx, b)
	return b
}

// Booking implements app.BookingService.
func (f *Bookings) Booking(ctx context.Context, id domain.BookingID) (domain.Booking, error) {
	if f.Fail != nil {
		if err := f.Fail(); err != nil {
			return domain.Booking{}, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	b, ok := f.rows[id]
	if !ok || !b.of(ctx) {
		return domain.Booking{}, domain.ErrBookingNotFound
	}
	return b.value, nil
}

// SetSettlement sets the settlement of a booking of the caller.
func (f *Bookings) SetSettlement(ctx context.Context, id domain.BookingID, s domain.Settlement) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.settled == nil {
		f.settled = map[domain.BookingID]owned[domain.Settlement]{}
	}
	f.settled[id] = own(ctx, s)
}

// SettlementRequests returns how often a settlement was requested.
func (f *Bookings) SettlementRequests() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests
}

// Settlement implements app.SettlementService.
func (f *Bookings) Settlement(ctx context.Context, id domain.BookingID) (domain.Settlement, error) {
	if f.Fail != nil {
		if err := f.Fail(); err != nil {
			return domain.Settlement{}, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests++
	s, ok := f.settled[id]
	if !ok || !s.of(ctx) {
		return domain.Settlement{}, domain.ErrBookingNotFound
	}
	return s.value, nil
}

// Add creates an invoice of the caller.
func (f *Invoices) Add(ctx context.Context, booking domain.BookingID, status string, due int64, currency string) domain.Invoice {
	v := domain.Invoice{ID: ids.New[ids.InvoicePrefix](), BookingID: booking, Status: status, Due: money.Amount{Minor: due, Currency: currency}}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rows == nil {
		f.rows = map[domain.InvoiceID]owned[domain.Invoice]{}
	}
	f.rows[v.ID] = own(ctx, v)
	return v
}

// Dues implements app.InvoiceService. It has counted exactly the given version of the account.
func (f *Invoices) Dues(ctx context.Context, account domain.MoneyKey, version int64, named domain.InvoiceID) (domain.Dues, error) {
	if f.Fail != nil {
		if err := f.Fail(); err != nil {
			return domain.Dues{}, err
		}
	}
	b, err := f.Bookings.Booking(ctx, account.Booking)
	if err != nil {
		return domain.Dues{}, err
	}
	paid := max(0, b.Total.Minor-b.Due.Minor)
	out := domain.Dues{Version: version, Invoiced: paid, Placed: paid}
	f.mu.Lock()
	if v, ok := f.rows[named]; ok && v.of(ctx) {
		out.Invoice = &v.value
	}
	f.mu.Unlock()
	if f.Respond != nil {
		out = f.Respond(out)
	}
	return out, nil
}
