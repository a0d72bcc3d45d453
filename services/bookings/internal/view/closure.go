package view

import (
	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/civil"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
)

// Closure returns the public body of a closure in the caller's mode. It omits conflicts that were not read.
func Closure(c domain.Closure, mode api.Mode) api.Closure {
	out := api.Closure{
		Id:        c.ID.String(),
		Object:    api.ClosureObjectClosure,
		Name:      c.Name,
		UnitIds:   api.Null[[]string](),
		DateFrom:  dateOrNull(c.From),
		DateTo:    dateOrNull(c.To),
		StartsAt:  c.StartsAt.UTC(),
		EndsAt:    c.EndsAt.UTC(),
		Timezone:  c.Timezone,
		Mode:      mode,
		Version:   c.Version,
		CreatedAt: c.CreatedAt.UTC(),
		UpdatedAt: c.UpdatedAt.UTC(),
	}
	if c.UnitIDs != nil {
		out.UnitIds = nullable.NewNullableWithValue(texts(c.UnitIDs))
	}
	if c.Conflicts != nil {
		out.ConflictingBookingIds = new(texts(c.Conflicts))
	}
	return out
}

func dateOrNull(d *civil.Date) nullable.Nullable[string] {
	if d == nil {
		return api.Null[string]()
	}
	return nullable.NewNullableWithValue(d.String())
}
