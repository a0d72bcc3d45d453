package view

import (
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
)

// Package is the public shape of a package; the mode is the caller's.
func Package(p domain.Package, mode api.Mode) api.Package {
	return api.Package{
		Id:              p.ID.String(),
		Object:          api.PackageObjectPackage,
		ServiceId:       p.ServiceID.String(),
		Name:            p.Name,
		Description:     api.OrNull(p.Description),
		BasePrice:       amount(p.BasePrice),
		DepositType:     api.DepositType(p.DepositType),
		DepositValue:    p.DepositValue,
		DurationMinutes: api.OrNull(p.DurationMinutes),
		UnitIds:         texts(p.UnitIDs),
		Visible:         p.Visible,
		Active:          p.Active,
		Mode:            mode,
		Version:         p.Version,
		CreatedAt:       p.CreatedAt.UTC(),
		UpdatedAt:       p.UpdatedAt.UTC(),
	}
}
