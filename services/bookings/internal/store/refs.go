package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

// Refs reads the rows that a booking is to name, in one round trip. The unit is locked as by LockUnits.
// lapsed says whether the unit has holds that have run out by now.
func Refs(ctx context.Context, tx pg.Tx, l domain.Links, now time.Time) (refs domain.Refs, lapsed bool, err error) {
	b := &pgx.Batch{}
	b.Queue(`select `+unitColumns+` from units u where u.id = $1 for no key update of u`, l.Unit)
	b.Queue(`select `+packageColumns+` from packages p where p.id = $1`, l.Package)
	b.Queue(`select `+serviceColumns+` from services s
		where s.id = coalesce($1::uuid, (select p.service_id from packages p where p.id = $2))`, l.Service, l.Package)
	b.Queue(`select `+customerColumns+` from customers c where c.id = $1`, l.Customer)
	b.Queue(`select `+ruleColumns+` from holiday_rules r where r.active and $1::uuid is not null`, l.Package)
	b.Queue(`select exists (select from bookings b where b.unit_id = $1 and b.status = 'pending'
		and b.hold_expires_at is not null and b.hold_expires_at <= $2)`, l.Unit, now)
	res := tx.SendBatch(ctx, b)
	defer func() { err = errors.Join(err, res.Close()) }()
	if refs.Unit, err = first(next(res, pgx.RowToStructByName[domain.Unit])); err != nil {
		return domain.Refs{}, false, fmt.Errorf("unit: %w", err)
	}
	if refs.Package, err = first(next(res, scanPackage)); err != nil {
		return domain.Refs{}, false, fmt.Errorf("package: %w", err)
	}
	if refs.Service, err = first(next(res, pgx.RowToStructByName[domain.Service])); err != nil {
		return domain.Refs{}, false, fmt.Errorf("service: %w", err)
	}
	if refs.Customer, err = first(next(res, pgx.RowToStructByName[domain.Customer])); err != nil {
		return domain.Refs{}, false, fmt.Errorf("customer: %w", err)
	}
	if refs.Rules, err = next(res, pgx.RowToStructByName[domain.HolidayRule]); err != nil {
		return domain.Refs{}, false, fmt.Errorf("holiday rules: %w", err)
	}
	exists, err := first(next(res, pgx.RowTo[bool]))
	if err != nil {
		return domain.Refs{}, false, fmt.Errorf("holds: %w", err)
	}
	return refs, *exists, nil
}

// first is the only row of a look-up by key, nil when there is none.
func first[T any](list []T, err error) (*T, error) {
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}
