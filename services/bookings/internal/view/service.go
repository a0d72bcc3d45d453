package view

import (
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
		Mode:                mode,
		Version:             s.Version,
		CreatedAt:           s.CreatedAt.UTC(),
		UpdatedAt:           s.UpdatedAt.UTC(),
	}
}
