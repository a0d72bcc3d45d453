package view

import (
	"encoding/json"
	"fmt"

	"github.com/oapi-codegen/nullable"

	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
)

// Unit is the public shape of a unit; the mode is the caller's. It fails on opening hours that are no table
// of times, which no door lets in.
func Unit(u domain.Unit, mode api.Mode) (api.Unit, error) {
	hours := nullable.NewNullNullable[map[string][][]string]()
	if len(u.OpeningHours) > 0 {
		var table map[string][][]string
		if err := json.Unmarshal(u.OpeningHours, &table); err != nil {
			return api.Unit{}, fmt.Errorf("unit %s: opening hours: %w", u.ID, err)
		}
		hours = nullable.NewNullableWithValue(table)
	}
	return api.Unit{
		Id:           u.ID.String(),
		Object:       api.UnitObjectUnit,
		Name:         u.Name,
		Description:  orNull(u.Description),
		ServiceIds:   texts(u.ServiceIDs),
		Status:       api.UnitStatus(u.Status),
		Capacity:     orNull(u.Capacity),
		OpeningHours: hours,
		Mode:         mode,
		Version:      u.Version,
		CreatedAt:    u.CreatedAt.UTC(),
		UpdatedAt:    u.UpdatedAt.UTC(),
	}, nil
}
