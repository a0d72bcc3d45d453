package domain

import (
	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
)

// Links are the ids that a booking names after a wish. A malformed id is Bad on its field and as good as unknown.
type Links struct {
	Customer CustomerID
	Service  ServiceID // zero with a package: the package's
	Unit     UnitID
	Package  PackageID
}

// Links merges the booking's ids with those of the wish. A changed package brings its own service along.
func (b Booking) Links(w Wish) Links {
	l := Links{
		Customer: merged(b.CustomerID, w.CustomerID),
		Service:  merged(b.ServiceID, w.ServiceID),
		Unit:     merged(b.UnitID, w.UnitID),
		Package:  merged(b.PackageID, w.PackageID),
	}
	if !l.Package.IsZero() && l.Package != b.PackageID && !w.ServiceID.Given {
		l.Service = ServiceID{}
	}
	return l
}

// merged is the id after the change; a malformed one is zero, which no row has.
func merged[P ids.Prefix](now ids.ID[P], c Change[string]) ids.ID[P] {
	if !c.Given {
		return now
	}
	if c.Value == nil {
		return ids.ID[P]{}
	}
	id, err := ids.Parse[P](*c.Value)
	if err != nil {
		return ids.ID[P]{}
	}
	return id
}

// stays reports whether the wish names what is linked already.
func stays[P ids.Prefix](c Change[string], now ids.ID[P]) bool {
	return c.Value != nil && !now.IsZero() && *c.Value == now.String()
}

// linker collects the failures of one wish's links.
type linker struct {
	b      *Booking
	was    Booking
	w      Wish
	refs   Refs
	failed []apperr.FieldError
}

func (l *linker) fail(name, message string) {
	l.failed = append(l.failed, apperr.FieldError{Field: name, Message: message})
}

// link sets the ids and the guests that the wish names, and checks that they go together. What was linked
// before and stays is not judged again: it may have been retired since.
func (b *Booking) link(w Wish, refs Refs) error {
	l := linker{b: b, was: *b, w: w, refs: refs}
	l.customer()
	l.packaged()
	l.service()
	l.unit()
	if w.GuestCount.Given {
		b.GuestCount = w.GuestCount.Value
	}
	if len(l.failed) == 0 {
		l.together()
	}
	return inOrder(l.failed)
}

func (l *linker) customer() {
	if c := l.w.CustomerID; c.Given && c.Value == nil {
		l.b.CustomerID = CustomerID{}
		return
	} else if !c.Given || stays(c, l.b.CustomerID) {
		return
	}
	if l.refs.Customer == nil || l.refs.Customer.Erased {
		l.fail("customer_id", "No such customer.")
		return
	}
	l.b.CustomerID = l.refs.Customer.ID
}

func (l *linker) packaged() {
	if c := l.w.PackageID; c.Given && c.Value == nil {
		l.b.PackageID = PackageID{}
		return
	} else if !c.Given || stays(c, l.b.PackageID) {
		return
	}
	p := l.refs.Package
	switch {
	case p == nil:
		l.fail("package_id", "No such package.")
	case !p.Active || l.refs.Service == nil && !l.w.ServiceID.Given:
		l.fail("package_id", "The package is not active.")
	case !l.w.ServiceID.Given && !l.refs.Service.Active:
		l.fail("package_id", "The package's service is not active.")
	default:
		l.b.PackageID = p.ID
		l.b.ServiceID = p.ServiceID
	}
}

func (l *linker) service() {
	c := l.w.ServiceID
	if !c.Given || stays(c, l.was.ServiceID) && l.b.PackageID == l.was.PackageID {
		return
	}
	s, p := l.refs.Service, l.refs.Package
	switch {
	case c.Value == nil && !l.b.PackageID.IsZero(): // the package's service stays
	case c.Value == nil:
		l.b.ServiceID = ServiceID{}
	case s == nil || s.ID.String() != *c.Value:
		l.fail("service_id", "No such service.")
	case s.ID != l.b.ServiceID && p != nil && p.ServiceID != s.ID:
		l.fail("service_id", "The service does not go with the package.")
	case !s.Active:
		l.fail("service_id", "The service is not active.")
	default:
		l.b.ServiceID = s.ID
	}
}

func (l *linker) unit() {
	if c := l.w.UnitID; c.Given && c.Value == nil {
		l.b.UnitID = UnitID{}
		return
	} else if !c.Given || stays(c, l.b.UnitID) {
		return
	}
	u := l.refs.Unit
	switch {
	case u == nil:
		l.fail("unit_id", "No such unit.")
	case u.Status != UnitActive:
		l.fail("unit_id", "The unit takes no bookings: its status is "+string(u.Status)+".")
	default:
		l.b.UnitID = u.ID
	}
}

// together checks unit against package, service and guests.
func (l *linker) together() {
	was := l.was
	u := l.refs.Unit
	if u == nil || l.b.UnitID.IsZero() {
		return
	}
	changed := l.b.UnitID != was.UnitID || l.b.ServiceID != was.ServiceID || l.b.PackageID != was.PackageID
	if changed && l.refs.Service != nil {
		s := *l.refs.Service
		if p := l.refs.Package; p != nil && !p.Takes(*u, s) {
			l.fail("unit_id", "The unit does not go with the package.")
		} else if p == nil && !u.Serves(s) {
			l.fail("unit_id", "The unit does not go with the service.")
		}
	}
	guests := l.w.GuestCount.Given || l.b.UnitID != was.UnitID
	if guests && l.b.GuestCount != nil && u.Capacity != nil && *l.b.GuestCount > *u.Capacity {
		l.failed = append(l.failed, apperr.Field("guest_count", "Must be at most %d, the unit's capacity.", *u.Capacity).Fields...)
	}
}

// reprice takes the price of the linked package on the event's day; without a package there is none.
func (b *Booking) reprice(refs Refs) error {
	if b.PackageID.IsZero() || refs.Package == nil {
		b.Snapshot = nil
		b.Total.Minor, b.Deposit.Minor = 0, 0
		return nil
	}
	price, err := Quote(*refs.Package, refs.Rules, b.Day)
	if err != nil {
		return err
	}
	if moved := b.Paid.Minor != 0 || b.Refunded.Minor != 0; moved && price.Total.Currency != b.Total.Currency {
		return field("package_id", "The package's currency differs from that of the payments made.")
	}
	b.Snapshot = &price.Snapshot
	b.Total, b.Deposit = price.Total, price.Deposit
	b.Paid.Currency, b.Refunded.Currency = price.Total.Currency, price.Total.Currency
	return nil
}

// Customer is what bookings knows of a customer: a projection of the customers service's events.
type Customer struct {
	ID      CustomerID
	Name    string // "" once erased
	Version int64
	Erased  bool // personal data is gone; no new booking may name the customer
}
