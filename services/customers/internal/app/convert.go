package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/failpoint"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/lease"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
)

// LeadConversion is the input of a conversion.
type LeadConversion struct {
	CustomerID *string          // nil: the one with the lead's e-mail address or telephone number, or a new one
	Booking    *api.LeadBooking // nil: none
}

// createWithin is the time after which bookings no longer acts on a request. It is longer than the time-outs of a call. It is
// shorter than domain.Lease, so that a request is over before another process repeats it.
const createWithin = 10 * time.Second

// validUntil returns when bookings no longer acts on a request that begins now. A process that stalls after Begin has less time, so that its
// request is over too before its lease expires.
func validUntil(l lease.Lease, real time.Time) time.Time {
	until, last := real.Add(createWithin), l.Until.Add(createWithin-domain.Lease)
	if last.Before(until) {
		return last
	}
	return until
}

// conversion converts a lead to a customer. Without a booking it is one transaction. With a booking, Begin selects the customer,
// Call requests the booking from bookings, and Finish writes the rest. A conversion that bookings refuses changes nothing.
type conversion struct {
	*Leads

	id      domain.LeadID
	in      LeadConversion
	match   patch.Precondition
	lead    domain.Lead // with its conversion, once it has begun
	booking domain.BookingID
}

// Convert returns the operation that converts a lead.
func (a *Leads) Convert(id domain.LeadID, in LeadConversion, match patch.Precondition) operation.Operation[domain.Lead] {
	return &conversion{Leads: a, id: id, in: in, match: match}
}

// Name implements operation.Operation.
func (o *conversion) Name() string { return o.lead.ID.String() }

// Begin selects the customer and begins the conversion with a booking. Without a booking, or for a converted lead, no call follows.
func (o *conversion) Begin(ctx context.Context, tx pg.Tx, _ string) (done bool, err error) {
	o.lead = domain.Lead{} // clears an earlier attempt
	if err := authorizeConversion(ctx, o.in); err != nil || o.in.Booking == nil {
		return true, err
	}
	l, customer, isNew, err := o.selectCustomer(ctx, tx, o.id, o.in, o.match)
	if err != nil || l.Status == domain.LeadConverted {
		return true, err
	}
	body, err := view.BookingOfLead(l, *o.in.Booking, customer)
	if err != nil {
		return false, err
	}
	l.Conversion = domain.Conversion{
		Lease: l.Conversion.Lease, Customer: customer, NewCustomer: isNew, Body: body, Actor: caller.FromContext(ctx).Actor(),
	}.Begin(o.Now())
	o.lead = l
	return false, store.BeginConversion(ctx, tx, l)
}

// Call requests the booking from bookings.
func (o *conversion) Call(ctx context.Context) error {
	failpoint.Here("convert.marked")
	b, err := o.Bookings.Create(ctx, domain.LinkedBooking{
		Key: "lead:" + o.lead.ID.String(), Lead: o.lead.ID, Body: o.lead.Conversion.Body, ValidUntil: validUntil(o.lead.Conversion.Lease, o.Now()),
	})
	switch {
	case err == nil:
		failpoint.Here("convert.booked")
		o.booking = b.ID
		return nil
	case operation.Refused(err):
		return &operation.RefusedError{Err: ofBooking(err)}
	default:
		return apperr.ErrUnavailable.WithCause(err)
	}
}

// Finish writes the customer, if it is new, and the converted lead.
func (o *conversion) Finish(ctx context.Context, tx pg.Tx) (domain.Lead, error) {
	tx.AfterCommit(func() { failpoint.Here("convert.committed") })
	if !o.lead.Conversion.UnderWay() {
		return o.convert(ctx, tx)
	}
	mine, err := lockAttempt(ctx, tx, o.lead)
	if err != nil {
		return domain.Lead{}, err
	}
	return o.finishBooked(ctx, tx, mine, o.booking)
}

// convert converts a lead without a booking. A converted lead stays unchanged.
func (o *conversion) convert(ctx context.Context, tx pg.Tx) (domain.Lead, error) {
	l, customer, isNew, err := o.selectCustomer(ctx, tx, o.id, o.in, o.match)
	if err != nil || l.Status == domain.LeadConverted {
		return l, err
	}
	return o.finish(ctx, tx, l, customer, isNew, domain.BookingID{})
}

// authorizeConversion checks the scopes that a conversion needs because of its effects. It does not reveal whether a customer has the
// e-mail address or the telephone number to a caller that can neither read nor write customers.
func authorizeConversion(ctx context.Context, in LeadConversion) error {
	c := caller.FromContext(ctx)
	if in.Booking != nil && !c.Has("write:bookings") {
		return domain.MissingScope("write:bookings")
	}
	if !c.Has("write:customers") && !c.Has("read:customers") {
		return domain.MissingScope("write:customers")
	}
	return nil
}

// selectCustomer locks a lead that is to be converted and selects its customer.
func (a *Leads) selectCustomer(
	ctx context.Context, tx pg.Tx, id domain.LeadID, in LeadConversion, match patch.Precondition,
) (l domain.Lead, customer domain.CustomerID, isNew bool, err error) {
	if l, err = lockLead(ctx, tx, id); err != nil {
		return l, customer, false, err
	}
	state := l.Convertible()
	if state == nil {
		customer, isNew, err = a.customer(ctx, tx, l, in.CustomerID)
	}
	if err != nil {
		return l, customer, false, err
	}
	if err := match.Check(l.Version); err != nil {
		return l, customer, false, err
	}
	if l.Status == domain.LeadConverted {
		return l, customer, false, nil
	}
	return l, customer, isNew, state
}

// lockAttempt locks a lead if its conversion still belongs to the given attempt. It returns errConverting if another process has
// taken over.
func lockAttempt(ctx context.Context, tx pg.Tx, l domain.Lead) (domain.Lead, error) {
	now, err := store.LeadForUpdate(ctx, tx, l.ID)
	if err == nil && !now.Conversion.Is(l.Conversion.Lease) {
		err = errConverting
	}
	return now, err
}

// finishBooked finishes a conversion with its booking. If the customer was erased in the meantime, it erases the lead too.
func (a *Leads) finishBooked(ctx context.Context, tx pg.Tx, l domain.Lead, booking domain.BookingID) (domain.Lead, error) {
	c := l.Conversion
	if c.NewCustomer {
		return a.finish(ctx, tx, l, c.Customer, true, booking)
	}
	_, err := store.CustomerForShare(ctx, tx, c.Customer)
	if !errors.Is(err, domain.ErrCustomerNotFound) {
		if err != nil {
			return domain.Lead{}, err
		}
		return a.finish(ctx, tx, l, c.Customer, false, booking)
	}
	if _, err := a.finish(ctx, tx, l.Erase(), c.Customer, false, booking); err != nil {
		return domain.Lead{}, err
	}
	if err := a.Customers.eraseOwned(ctx, tx, c.Customer); err != nil {
		return domain.Lead{}, err
	}
	return store.LeadForUpdate(ctx, tx, l.ID)
}

// finish writes the customer, if it is new, and the converted lead, each with its event.
func (a *Leads) finish(
	ctx context.Context, tx pg.Tx, l domain.Lead, customer domain.CustomerID, isNew bool, booking domain.BookingID,
) (domain.Lead, error) {
	if isNew {
		if _, err := a.Customers.insert(ctx, tx, l.NewCustomer(customer)); err != nil {
			return domain.Lead{}, err
		}
	}
	now := caller.FromContext(ctx).Now(a.Now()).UTC().Truncate(time.Microsecond)
	saved, err := a.save(ctx, tx, l, l.Convert(customer, booking, now))
	failpoint.Here("convert.written")
	return saved, err
}

// Release ends a conversion without effect. Bookings may have requested the new customer, which is not created now. An event
// therefore makes bookings erase its copy.
func (o *conversion) Release(ctx context.Context, tx pg.Tx) error {
	mine, err := lockAttempt(ctx, tx, o.lead)
	if err != nil {
		return err
	}
	if err := store.EndConversion(ctx, tx, o.lead.ID); err != nil || !mine.Conversion.NewCustomer {
		return err
	}
	body, err := contract.Encode(view.ErasedCustomer(mine.Conversion.Customer))
	if err != nil {
		return err
	}
	const afterLookup = 2 // a lookup of the customer returned version 1
	return outbox.Emit(ctx, tx, o.Wake, customerErased(mine.Conversion.Customer, afterLookup, body))
}

// ofBooking renames the fields of a refused booking to those in the body of the conversion.
func ofBooking(err error) error {
	e := *apperr.As(err)
	fields := make([]apperr.FieldError, len(e.Fields))
	for i, f := range e.Fields {
		if f.Field != "customer_id" {
			f.Field = "booking." + f.Field
		}
		fields[i] = f
	}
	e.Fields = fields
	return &e
}

// customer returns the given customer, or else the one with the lead's e-mail address, or else the one with its telephone number, or
// else the id of a new one.
func (a *Leads) customer(ctx context.Context, tx pg.Tx, l domain.Lead, given *string) (id domain.CustomerID, isNew bool, err error) {
	if given != nil {
		id, err = existing(ctx, tx, *given)
		return id, false, err
	}
	if err := l.CanBecomeCustomer(); err != nil {
		return id, false, err
	}
	if l.Email != nil {
		id, err = ofEmail(ctx, tx, *l.Email)
	}
	if err == nil && id.IsZero() && l.Phone != nil {
		id, err = ofPhone(ctx, tx, *l.Phone)
	}
	if err != nil || !id.IsZero() {
		return id, false, err
	}
	if !caller.FromContext(ctx).Has("write:customers") {
		return id, false, domain.MissingScope("write:customers")
	}
	return ids.New[ids.CustomerPrefix](), true, nil
}

// existing returns the id of a customer that a body names.
func existing(ctx context.Context, tx pg.Tx, text string) (domain.CustomerID, error) {
	id, err := domain.ParseCustomerID(text)
	if err == nil {
		_, err = store.CustomerForShare(ctx, tx, id)
	}
	if errors.Is(err, domain.ErrCustomerNotFound) {
		err = apperr.Field("customer_id", "Customer not found.")
	}
	return id, err
}

// ofEmail returns the only customer with an e-mail address, or zero. It returns errConverting while a customer with the address is
// being created from a lead. Until the transaction ends, no other conversion can find that there is no such customer.
func ofEmail(ctx context.Context, tx pg.Tx, email string) (none domain.CustomerID, err error) {
	if err := store.LockEmail(ctx, tx, email); err != nil {
		return none, err
	}
	// This check precedes the search for customers, so that the search finds the customer of a conversion that ends in between.
	busy, err := store.EmailIsConverting(ctx, tx, email)
	if err != nil {
		return none, err
	}
	if busy {
		return none, errConverting
	}
	found, err := store.CustomersByEmail(ctx, tx, email, maxNamed+1)
	if err != nil {
		return none, err
	}
	return onlyOne(ctx, tx, found, "email address")
}

// maxConverting limits how many customers that are about to be created are compared with a telephone number. They exceed it only
// while bookings is not available.
const maxConverting = 1_000

// ofPhone is ofEmail for a telephone number. A number without digits is that of no customer.
func ofPhone(ctx context.Context, tx pg.Tx, phone string) (none domain.CustomerID, err error) {
	if domain.PhoneTerm(phone) == nil {
		return none, nil
	}
	if err := store.LockPhones(ctx, tx); err != nil {
		return none, err
	}
	converting, err := store.ConvertingPhones(ctx, tx, maxConverting+1)
	if err != nil {
		return none, err
	}
	same := func(other string) bool { return domain.SamePhone(other, phone) }
	if len(converting) > maxConverting || slices.ContainsFunc(converting, same) {
		return none, errConverting
	}
	found, err := store.CustomersByPhone(ctx, tx, phone, maxNamed+1)
	if err != nil {
		return none, err
	}
	found = slices.DeleteFunc(found, func(c domain.Customer) bool { return c.Phone != nil && !same(*c.Phone) }) // another extension
	return onlyOne(ctx, tx, found, "phone number")
}

// onlyOne returns the only customer of a search and prevents its erasure until the transaction ends, or zero if there is none.
func onlyOne(ctx context.Context, tx pg.Tx, found []domain.Customer, field string) (none domain.CustomerID, err error) {
	switch {
	case len(found) == 0:
		return none, nil
	case len(found) > 1:
		return none, severalCustomers(found, field)
	}
	if _, err = store.CustomerForShare(ctx, tx, found[0].ID); errors.Is(err, domain.ErrCustomerNotFound) {
		err = errConverting // erased in between; a retry searches again
	}
	return found[0].ID, err
}

// maxNamed limits how many customers with the same e-mail address or telephone number a message lists.
const maxNamed = 10

func severalCustomers(found []domain.Customer, field string) error {
	names := make([]string, min(len(found), maxNamed))
	for i := range names {
		names[i] = found[i].ID.String()
	}
	list := strings.Join(names, ", ")
	if len(found) > maxNamed {
		list += " and more"
	}
	return apperr.Field("customer_id", "Several customers have the lead's %s. Set customer_id to one of %s.", field, list)
}

// takeOver takes over the conversion, unless it has ended or another process holds it.
func (o *conversion) takeOver(ctx context.Context, tx pg.Tx) error {
	now := o.Now()
	l, err := store.StuckLeadForUpdate(ctx, tx, o.id, now)
	if errors.Is(err, domain.ErrLeadNotFound) {
		return errConverting
	}
	if err != nil {
		return err
	}
	l.Conversion = l.Conversion.Begin(now)
	o.lead = l
	return store.BeginConversion(ctx, tx, l)
}

func (o *conversion) began() (request, actor string) { return "", o.lead.Conversion.Actor }

// repeat requests the booking from bookings, which creates it or returns the one that exists.
func (o *conversion) repeat(ctx context.Context) error { return o.Call(ctx) }
