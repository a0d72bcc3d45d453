package domain

import (
	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
)

// Links contains the ids that a booking refers to after an input. A malformed id is in Bad under its field and counts as unknown.
type Links struct {
	Customer CustomerID
	Service  ServiceID // zero if a package is set: the package's service
	Unit     UnitID
	Package  PackageID
	Implied  bool // the unit's only active service applies
}

// Links merges the booking's ids with those of the input. If the package changes, its service applies.
func (b Booking) Links(in BookingInput) Links {
	l := Links{
		Customer: merged(b.CustomerID, in.CustomerID),
		Service:  merged(b.ServiceID, in.ServiceID),
		Unit:     merged(b.UnitID, in.UnitID),
		Package:  merged(b.PackageID, in.PackageID),
	}
	if !l.Package.IsZero() && l.Package != b.PackageID && !in.ServiceID.Given() {
		l.Service = ServiceID{}
	}
	l.Implied = !in.ServiceID.Given() && l.Service.IsZero() && l.Package.IsZero() && !l.Unit.IsZero() && in.needsDuration(b.Timed())
	return l
}

// merged returns the id after the change. It returns zero, which no row has, for a malformed id.
func merged[P ids.Prefix](now ids.ID[P], f patch.Field[string]) ids.ID[P] {
	if !f.Given() {
		return now
	}
	text := f.Pointer()
	if text == nil {
		return ids.ID[P]{}
	}
	id, err := ids.Parse[P](*text)
	if err != nil {
		return ids.ID[P]{}
	}
	return id
}

// stays reports whether the input contains the id that is already linked.
func stays[P ids.Prefix](f patch.Field[string], now ids.ID[P]) bool {
	text := f.Pointer()
	return text != nil && !now.IsZero() && *text == now.String()
}

// linker collects the failures of one input's links.
type linker struct {
	b      *Booking
	was    Booking
	in     BookingInput
	refs   Refs
	failed []apperr.FieldError
}

func (l *linker) fail(name, message string) {
	l.failed = append(l.failed, apperr.FieldError{Field: name, Message: message})
}

// link sets the ids and the guests of the input, and checks that they match. It does not validate unchanged links again, because
// their target may have been retired in the meantime.
func (b *Booking) link(in BookingInput, refs Refs) error {
	l := linker{b: b, was: *b, in: in, refs: refs}
	l.customer()
	l.packaged()
	l.service()
	l.unit()
	if in.GuestCount.Given() {
		b.GuestCount = in.GuestCount.Pointer()
	}
	if len(l.failed) == 0 {
		l.checkUnit()
	}
	return inOrder(l.failed)
}

func (l *linker) customer() {
	if c := l.in.CustomerID; c.Given() && c.Pointer() == nil {
		l.b.CustomerID = CustomerID{}
		return
	} else if !c.Given() || stays(c, l.b.CustomerID) {
		return
	}
	if l.refs.Customer == nil || l.refs.Customer.Erased {
		l.fail("customer_id", "Customer not found.")
		return
	}
	l.b.CustomerID = l.refs.Customer.ID
}

func (l *linker) packaged() {
	if c := l.in.PackageID; c.Given() && c.Pointer() == nil {
		l.b.PackageID = PackageID{}
		return
	} else if !c.Given() || stays(c, l.b.PackageID) {
		return
	}
	p := l.refs.Package
	switch {
	case p == nil:
		l.fail("package_id", "Package not found.")
	case !p.Active || l.refs.Service == nil && !l.in.ServiceID.Given():
		l.fail("package_id", "The package is not active.")
	case !l.in.ServiceID.Given() && !l.refs.Service.Active:
		l.fail("package_id", "The package's service is not active.")
	default:
		l.b.PackageID = p.ID
		l.b.ServiceID = p.ServiceID
	}
}

func (l *linker) service() {
	c := l.in.ServiceID
	if l.was.Links(l.in).Implied && l.refs.Service != nil {
		l.b.ServiceID = l.refs.Service.ID
	}
	if !c.Given() || stays(c, l.was.ServiceID) && l.b.PackageID == l.was.PackageID {
		return
	}
	s, p := l.refs.Service, l.refs.Package
	switch {
	case c.Pointer() == nil && !l.b.PackageID.IsZero(): // the package's service stays
	case c.Pointer() == nil:
		l.b.ServiceID = ServiceID{}
	case s == nil || s.ID.String() != *c.Pointer():
		l.fail("service_id", "Service not found.")
	case s.ID != l.b.ServiceID && p != nil && p.ServiceID != s.ID:
		l.fail("service_id", "The service does not match the package.")
	case !s.Active:
		l.fail("service_id", "The service is not active.")
	default:
		l.b.ServiceID = s.ID
	}
}

func (l *linker) unit() {
	if c := l.in.UnitID; c.Given() && c.Pointer() == nil {
		l.b.UnitID = UnitID{}
		return
	} else if !c.Given() || stays(c, l.b.UnitID) {
		return
	}
	u := l.refs.Unit
	switch {
	case u == nil:
		l.fail("unit_id", "Unit not found.")
	case u.Status != UnitActive:
		l.fail("unit_id", "The unit takes no bookings: its status is "+string(u.Status)+".")
	default:
		l.b.UnitID = u.ID
	}
}

// checkUnit checks the unit against package, service and guests.
func (l *linker) checkUnit() {
	was := l.was
	u := l.refs.Unit
	if u == nil || l.b.UnitID.IsZero() {
		return
	}
	changed := l.b.UnitID != was.UnitID || l.b.ServiceID != was.ServiceID || l.b.PackageID != was.PackageID
	if changed && l.refs.Service != nil {
		s := *l.refs.Service
		if p := l.refs.Package; p != nil && !p.BookableOn(*u, s) {
			l.fail("unit_id", "The package is not available on this unit.")
		} else if p == nil && !u.Serves(s) {
			l.fail("unit_id", "The service is not available on this unit.")
		}
	}
	guests := l.in.GuestCount.Given() || l.b.UnitID != was.UnitID
	if guests && u.Shared() {
		l.seats()
	}
	if guests && l.b.GuestCount != nil && u.Capacity != nil && *l.b.GuestCount > *u.Capacity {
		l.failed = append(l.failed, apperr.Field("guest_count", "Must be at most %d, the unit's capacity.", *u.Capacity).Fields...)
	}
}

// seats gives a booking of a shared unit at least the one seat that it takes.
func (l *linker) seats() {
	l.b.GuestCount = new(l.b.guests())
	if *l.b.GuestCount < 1 {
		l.fail("guest_count", "Must be at least 1, the number of seats to take.")
	}
}

// guests returns the number of guests for which the booking is priced, and for which it takes seats.
func (b Booking) guests() int {
	if b.GuestCount == nil {
		return 1
	}
	return *b.GuestCount
}

// reprice applies the price of the linked package on the event's day. A booking without a package has no price.
func (b *Booking) reprice(refs Refs) error {
	if b.PackageID.IsZero() || refs.Package == nil {
		b.Snapshot, b.Taxes = nil, nil
		b.Total.Minor, b.Gross.Minor, b.Deposit.Minor = 0, 0, 0
		return nil
	}
	if refs.Package.Pricing == PerGuest {
		if err := b.countsGuests(); err != nil {
			return err
		}
	}
	price, err := Quote(*refs.Package, refs.Rules, b.Day, b.guests(), refs.Taxes.Of(refs.Service))
	if err != nil {
		return err
	}
	if price.Total.Currency != b.Total.Currency { // it has another account from now on
		b.Paid.Minor, b.Refunded.Minor, b.Disputed, b.Account = 0, 0, false, 0
	}
	b.Snapshot, b.Taxes = &price.Snapshot, &price.Taxes
	b.Total, b.Gross, b.Deposit = price.Total, price.Gross, price.Deposit
	b.Paid.Currency, b.Refunded.Currency = price.Total.Currency, price.Total.Currency
	return nil
}

// FixesCurrency returns the error of a price in another currency than the account's if the account has received or returned money.
func (s AccountState) FixesCurrency() error {
	if s.Received == 0 && s.Returned == 0 {
		return nil
	}
	return field("package_id", "The package's currency differs from the currency of the existing payments.")
}

// countsGuests returns the error of a price per guest without guests.
func (b Booking) countsGuests() error {
	if b.guests() < 1 {
		return field("guest_count", "Must be at least 1, because the package has a price per guest.")
	}
	return nil
}

// Customer is this service's copy of a customer, a projection of the customers service's events.
type Customer struct {
	ID      CustomerID
	Name    string // "" after an erasure
	Version int64
	Erased  bool // personal data was erased; no new booking can name the customer
}
