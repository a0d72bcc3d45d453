package view

import (
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
)

// Package returns the public body of a package in the caller's mode.
func Package(p domain.Package, mode api.Mode) api.Package {
	return api.Package{
		Id:              p.ID.String(),
		Object:          api.PackageObjectPackage,
		ServiceId:       p.ServiceID.String(),
		Name:            p.Name,
		Description:     api.OrNull(p.Description),
		BasePrice:       amount(p.BasePrice),
		Pricing:         api.Pricing(p.Pricing),
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
