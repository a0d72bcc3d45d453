package app

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/limit"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// Catalogue are the verbs of what an operator offers. They have no events: none of the public types is theirs.
type Catalogue struct {
	Services Offer[domain.ServicePrefix, domain.Service]
	Units    Offer[domain.UnitPrefix, domain.Unit]
	Packages Offer[domain.PackagePrefix, domain.Package]
	Holidays Offer[domain.HolidayPrefix, domain.HolidayRule]
}

// Offer are the verbs of one kind of resource: how it is read, judged, written and shown.
type Offer[P ids.Prefix, T any] struct {
	DB    *pg.DB
	Idem  *idem.Store
	path  string // of the collection
	blank func(id ids.ID[P]) T
	read  func(ctx context.Context, q pg.Q, id ids.ID[P]) (T, error)
	judge func(ctx context.Context, q pg.Q, t *T) error // also brings lists into the order in which they are read
	put   func(ctx context.Context, tx pg.Tx, t T) error
	shape func(t T, mode api.Mode) (body any, version int64)

	places limit.Places
	inUse  func(t T) bool
	count  func(ctx context.Context, tx pg.Tx) (limit.Count, error)
}

// NewCatalogue makes the verbs.
func NewCatalogue(db *pg.DB, answers *idem.Store) *Catalogue {
	return &Catalogue{
		Services: Offer[domain.ServicePrefix, domain.Service]{
			DB: db, Idem: answers, path: "services", read: store.Service, judge: judgeService, put: store.PutService,
			blank:  func(id domain.ServiceID) domain.Service { return domain.Service{ID: id, Active: true} },
			shape:  func(s domain.Service, mode api.Mode) (any, int64) { return view.Service(s, mode), s.Version },
			places: limit.Services, count: store.CountServices, inUse: func(s domain.Service) bool { return s.Active },
		},
		Units: Offer[domain.UnitPrefix, domain.Unit]{
			DB: db, Idem: answers, path: "units", read: store.Unit, judge: judgeUnit, put: store.PutUnit,
			blank:  func(id domain.UnitID) domain.Unit { return domain.Unit{ID: id, Status: domain.UnitActive} },
			shape:  func(u domain.Unit, mode api.Mode) (any, int64) { return view.Unit(u, mode), u.Version },
			places: limit.Units, count: store.CountUnits, inUse: func(u domain.Unit) bool { return u.Status != domain.UnitRetired },
		},
		Packages: Offer[domain.PackagePrefix, domain.Package]{
			DB: db, Idem: answers, path: "packages", read: store.Package, judge: judgePackage, put: store.PutPackage,
			blank: func(id domain.PackageID) domain.Package {
				return domain.Package{ID: id, Visible: true, Active: true, Terms: domain.Terms{DepositType: domain.DepositNone}}
			},
			shape:  func(p domain.Package, mode api.Mode) (any, int64) { return view.Package(p, mode), p.Version },
			places: limit.Packages, count: store.CountPackages, inUse: func(p domain.Package) bool { return p.Active },
		},
		Holidays: Offer[domain.HolidayPrefix, domain.HolidayRule]{
			DB: db, Idem: answers, path: "holiday-rules", read: store.Holiday, judge: judgeHoliday, put: store.PutHoliday,
			blank: func(id domain.HolidayID) domain.HolidayRule {
				return domain.HolidayRule{ID: id, Recurrence: domain.Once, Active: true}
			},
			shape:  func(r domain.HolidayRule, mode api.Mode) (any, int64) { return view.HolidayRule(r, mode), r.Version },
			places: limit.Holidays, count: store.CountHolidays, inUse: func(r domain.HolidayRule) bool { return r.Active },
		},
	}
}

// Create makes one out of the defaults and edit.
func (o *Offer[P, T]) Create(ctx context.Context, edit func(*T) error) (idem.Reply, error) {
	return o.Idem.Run(ctx, func(ctx context.Context, tx pg.Tx) (idem.Reply, error) {
		if err := store.LockCatalogue(ctx, tx); err != nil {
			return idem.Reply{}, err
		}
		id := ids.New[P]()
		t := o.blank(id)
		if err := o.edit(ctx, tx, &t, edit); err != nil {
			return idem.Reply{}, err
		}
		if err := o.room(ctx, tx, t); err != nil {
			return idem.Reply{}, err
		}
		reply, err := o.save(ctx, tx, id, t)
		reply.Status, reply.Location = http.StatusCreated, fmt.Sprintf("/api/v1/%s/%s", o.path, id)
		return reply, err
	})
}

// Update changes what edit changes. A change that nobody could see is none: no new version.
func (o *Offer[P, T]) Update(ctx context.Context, id ids.ID[P], match httpx.Match, edit func(*T) error) (idem.Reply, error) {
	missing := false
	reply, err := o.Idem.Run(ctx, func(ctx context.Context, tx pg.Tx) (idem.Reply, error) {
		if err := store.LockCatalogue(ctx, tx); err != nil {
			return idem.Reply{}, err
		}
		t, err := o.read(ctx, tx, id)
		if err != nil {
			missing = apperr.As(err).Kind == apperr.NotFound
			return idem.Reply{}, err
		}
		was := o.inUse(t)
		before, version, err := o.reply(ctx, id, t)
		if err != nil {
			return idem.Reply{}, err
		}
		if err := o.edit(ctx, tx, &t, edit); err != nil {
			return idem.Reply{}, err
		}
		if err := match.Check(version); err != nil {
			return idem.Reply{}, err
		}
		after, _, err := o.reply(ctx, id, t)
		if err != nil || bytes.Equal(before.Body, after.Body) {
			return before, err
		}
		if o.inUse(t) != was {
			if err := o.room(ctx, tx, t); err != nil {
				return idem.Reply{}, err
			}
		}
		return o.save(ctx, tx, id, t)
	})
	if missing {
		err = store.Missing(ctx, o.DB, func(ctx context.Context, q pg.Q) error {
			_, err := o.read(ctx, q, id)
			return err
		})
	}
	return reply, err
}

func (o *Offer[P, T]) edit(ctx context.Context, tx pg.Tx, t *T, edit func(*T) error) error {
	if err := edit(t); err != nil {
		return err
	}
	return o.judge(ctx, tx, t)
}

// room returns the 422 of one row more such as t, counted under the catalogue's lock.
func (o *Offer[P, T]) room(ctx context.Context, tx pg.Tx, t T) error {
	there, err := o.count(ctx, tx)
	if err != nil {
		return err
	}
	return o.places.Room(there, o.inUse(t))
}

// save writes t, under the catalogue's lock, and answers it as it is read from now on.
func (o *Offer[P, T]) save(ctx context.Context, tx pg.Tx, id ids.ID[P], t T) (idem.Reply, error) {
	if err := o.put(ctx, tx, t); err != nil {
		return idem.Reply{}, err
	}
	t, err := o.read(ctx, tx, id)
	if err != nil {
		return idem.Reply{}, err
	}
	reply, _, err := o.reply(ctx, id, t)
	return reply, err
}

// reply is t as it is answered, and its version.
func (o *Offer[P, T]) reply(ctx context.Context, id ids.ID[P], t T) (idem.Reply, int64, error) {
	body, version := o.shape(t, api.Mode(caller.Must(ctx).Mode))
	raw, err := httpx.Encode(body)
	return idem.Reply{Status: http.StatusOK, ETag: httpx.ETag(version), Resource: id.String(), Body: raw}, version, err
}

func judgeService(ctx context.Context, q pg.Q, s *domain.Service) error {
	return theirs(ctx, q, listed("unit_ids"), "No such unit.", &s.UnitIDs, store.KnownUnits)
}

func judgeUnit(ctx context.Context, q pg.Q, u *domain.Unit) error {
	return theirs(ctx, q, listed("service_ids"), "No such service.", &u.ServiceIDs, store.KnownServices)
}

func judgePackage(ctx context.Context, q pg.Q, p *domain.Package) error {
	service := []domain.ServiceID{p.ServiceID}
	return apperr.Join(
		theirs(ctx, q, func(int) string { return "service_id" }, "No such service.", &service, store.KnownServices),
		p.Check(),
		theirs(ctx, q, listed("unit_ids"), "No such unit.", &p.UnitIDs, store.KnownUnits),
	)
}

func judgeHoliday(ctx context.Context, q pg.Q, r *domain.HolidayRule) error {
	return apperr.Join(
		r.Check(),
		theirs(ctx, q, listed("applies_to.service_ids"), "No such service.", &r.ServiceIDs, store.KnownServices),
		theirs(ctx, q, listed("applies_to.package_ids"), "No such package.", &r.PackageIDs, store.KnownPackages),
	)
}

func listed(name string) func(i int) string {
	return func(i int) string { return fmt.Sprintf("%s.%d", name, i) }
}

// theirs returns the 422 of the ids that the caller does not have, and sorts the list as it is read back.
func theirs[P ids.Prefix](
	ctx context.Context, q pg.Q, field func(i int) string, message string, list *[]ids.ID[P],
	look func(context.Context, pg.Q, []ids.ID[P]) ([]ids.ID[P], error),
) error {
	have, err := look(ctx, q, *list)
	if err != nil {
		return err
	}
	var failed []apperr.FieldError
	for i, id := range *list {
		if !slices.Contains(have, id) {
			failed = append(failed, apperr.FieldError{Field: field(i), Message: message})
		}
	}
	if len(failed) > 0 {
		return apperr.Fields(failed)
	}
	slices.SortFunc(*list, domain.CompareIDs[P])
	*list = slices.Compact(*list)
	return nil
}
