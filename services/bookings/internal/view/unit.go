package view

import (
	"github.com/oapi-codegen/nullable"

	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
)

// Unit returns the public body of a unit in the caller's mode.
func Unit(u domain.Unit, mode api.Mode) api.Unit {
	hours := api.Null[map[string][][]string]()
	if u.OpeningHours != nil {
		hours = nullable.NewNullableWithValue(u.OpeningHours.Table())
	}
	return api.Unit{
		Id:           u.ID.String(),
		Object:       api.UnitObjectUnit,
		Name:         u.Name,
		Description:  api.OrNull(u.Description),
		ServiceIds:   texts(u.ServiceIDs),
		Status:       api.UnitStatus(u.Status),
		Capacity:     api.OrNull(u.Capacity),
		BookingMode:  api.BookingMode(u.BookingMode),
		OpeningHours: hours,
		Mode:         mode,
		Version:      u.Version,
		CreatedAt:    u.CreatedAt.UTC(),
		UpdatedAt:    u.UpdatedAt.UTC(),
	}
}
