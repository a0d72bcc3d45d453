package view

import (
	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/money"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
)

// Service returns the public body of a service in the caller's mode.
func Service(s domain.Service, mode api.Mode) api.Service {
	return api.Service{
		Id:                  s.ID.String(),
		Object:              api.ServiceObjectService,
		Name:                s.Name,
		Description:         api.OrNull(s.Description),
		DurationMinutes:     api.OrNull(s.DurationMinutes),
		SlotStepMinutes:     api.OrNull(s.SlotStepMinutes),
		BufferBeforeMinutes: s.BufferBeforeMinutes,
		BufferAfterMinutes:  s.BufferAfterMinutes,
		Active:              s.Active,
		UnitIds:             texts(s.UnitIDs),
		DefaultTaxes:        taxes(s.DefaultTaxes),
		Mode:                mode,
		Version:             s.Version,
		CreatedAt:           s.CreatedAt.UTC(),
		UpdatedAt:           s.UpdatedAt.UTC(),
	}
}

// taxes returns null for a nil list.
func taxes(list *[]money.Tax) nullable.Nullable[[]api.Tax] {
	out := Taxes(list)
	if out == nil {
		return api.Null[[]api.Tax]()
	}
	return nullable.NewNullableWithValue(*out)
}

// Taxes returns the public bodies of taxes. nil stays nil.
func Taxes(list *[]money.Tax) *[]api.Tax {
	if list == nil {
		return nil
	}
	out := make([]api.Tax, len(*list))
	for i, tax := range *list {
		out[i] = api.Tax{Name: tax.Name, Rate: tax.Rate.String()}
	}
	return &out
}
