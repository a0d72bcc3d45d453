package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
)

// Leads are the use cases of a lead.
type Leads struct {
	DB        *pg.DB
	Catalogue *Catalogue
	Customers *Customers
	Bookings  BookingService
	// Wake signals the relay that an event has been committed.
	Wake func()
	// Now returns real time; a caller's test clock is read from the caller.
	Now func() time.Time
}

// LeadWrite is the input of a lead, with the result of checking its ids in the catalogue.
type LeadWrite struct {
	domain.LeadPatch

	unknown error
}

// Prepare checks in the catalogue that the ids exist.
func (a *Leads) Prepare(ctx context.Context, in domain.LeadPatch) (LeadWrite, error) {
	return LeadWrite{LeadPatch: in, unknown: a.Catalogue.Check(ctx, references(in))}, nil
}

// Create creates a lead.
func (a *Leads) Create(ctx context.Context, tx pg.Tx, w LeadWrite) (domain.Lead, error) {
	l, err := a.apply(ctx, domain.NewLead, w)
	if err != nil {
		return domain.Lead{}, err
	}
	if l, err = store.InsertLead(ctx, tx, l); err != nil {
		return domain.Lead{}, err
	}
	body, err := outbox.Body(ctx, view.Lead, l)
	if err != nil {
		return domain.Lead{}, err
	}
	return l, outbox.Emit(ctx, tx, a.Wake, leadCreated(l, body))
}

// Update changes the given fields. A change that is not visible creates no new version and no event.
func (a *Leads) Update(ctx context.Context, tx pg.Tx, id domain.LeadID, w LeadWrite, match patch.Precondition) (domain.Lead, error) {
	current, err := lockLead(ctx, tx, id)
	if err != nil {
		return domain.Lead{}, err
	}
	next, err := a.apply(ctx, current.Apply, w)
	if err != nil {
		return domain.Lead{}, err
	}
	if err := match.Check(current.Version); err != nil {
		return domain.Lead{}, err
	}
	if next, err = next.ApplyStatus(w.Status); err != nil {
		return domain.Lead{}, err
	}
	return a.save(ctx, tx, current, next)
}

// Quoted moves a lead to the state quoted after a quote was sent. It changes only a lead that is new, contacted or qualified.
func (a *Leads) Quoted(ctx context.Context, tx pg.Tx, id domain.LeadID) error {
	l, err := store.LeadForUpdate(ctx, tx, id)
	if err != nil {
		return err
	}
	to, ok := l.Status.Next(domain.QuoteLead)
	if !ok || l.Conversion.UnderWay() {
		return nil
	}
	next := l
	next.Status = to
	_, err = a.save(ctx, tx, l, next)
	return err
}

// apply checks all fields of an input, in the contract's order.
func (a *Leads) apply(ctx context.Context, to func(domain.LeadPatch, domain.Operator) (domain.Lead, error), w LeadWrite) (domain.Lead, error) {
	c := caller.FromContext(ctx)
	zone, err := civil.Location(c.Timezone)
	if err != nil {
		return domain.Lead{}, err
	}
	l, err := to(w.LeadPatch, domain.Operator{Zone: zone, Currency: c.Currency})
	return l, inOrder(err, w.unknown, "event_date", "budget.currency", "service_id", "unit_id", "package_id", "lost_reason")
}

// save writes a changed lead with its event, if the change is visible.
func (a *Leads) save(ctx context.Context, tx pg.Tx, current, next domain.Lead) (domain.Lead, error) {
	previous, err := outbox.Previous(ctx, view.Lead, current, next)
	if err != nil || string(previous) == "{}" {
		return current, err
	}
	updated, err := store.UpdateLead(ctx, tx, next)
	if err != nil {
		return domain.Lead{}, err
	}
	body, err := outbox.Body(ctx, view.Lead, updated)
	if err != nil {
		return domain.Lead{}, err
	}
	return updated, outbox.Emit(ctx, tx, a.Wake, leadUpdated(updated, body, previous))
}

// references returns the ids of an input that must exist in the catalogue.
func references(in domain.LeadPatch) []Reference {
	var out []Reference
	for _, f := range []struct {
		name string
		id   *string
	}{{"service_id", in.ServiceID.Pointer()}, {"unit_id", in.UnitID.Pointer()}, {"package_id", in.PackageID.Pointer()}} {
		if f.id != nil {
			out = append(out, Reference{Field: f.name, ID: *f.id})
		}
	}
	return out
}

// errConverting reports that another request is converting the lead.
var errConverting = operation.ErrUnderWay

// lockLead locks a lead. It returns errConverting while the lead is being converted.
func lockLead(ctx context.Context, tx pg.Tx, id domain.LeadID) (domain.Lead, error) {
	l, err := store.LeadForUpdate(ctx, tx, id)
	if err == nil && l.Conversion.UnderWay() {
		err = errConverting
	}
	return l, err
}

// inOrder joins two errors on the fields of a body in the contract's order, and lists each field once. It returns an error of
// another kind alone.
func inOrder(a, b error, order ...string) error {
	err := apperr.Join(a, b)
	var e *apperr.Error
	if !errors.As(err, &e) || e.Code != "invalid_request" {
		return err
	}
	failed := slices.Clone(e.Fields)
	slices.SortStableFunc(failed, func(x, y apperr.FieldError) int { return slices.Index(order, x.Field) - slices.Index(order, y.Field) })
	return apperr.Fields(slices.CompactFunc(failed, func(x, y apperr.FieldError) bool { return x.Field == y.Field }))
}
