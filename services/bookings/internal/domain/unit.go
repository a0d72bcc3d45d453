package domain

import (
	"slices"
	"time"
)

// UnitStatus says whether a unit can be booked.
type UnitStatus string

// The states of a unit: only an active one takes new bookings.
const (
	UnitActive      UnitStatus = "active"
	UnitMaintenance UnitStatus = "maintenance"
	UnitRetired     UnitStatus = "retired"
)

// Unit is what a booking occupies, such as a boat: at most one booking at a time.
type Unit struct {
	ID           UnitID
	Name         string
	Description  *string
	Status       UnitStatus
	Capacity     *int         // guests; nil: not limited
	OpeningHours OpeningHours // nil: always open
	ServiceIDs   []ServiceID
	Version      int64
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// Serves reports whether the unit and the service go together: they are linked, or neither has any link.
func (u Unit) Serves(s Service) bool {
	if len(u.ServiceIDs) == 0 && len(s.UnitIDs) == 0 {
		return true
	}
	return slices.Contains(u.ServiceIDs, s.ID)
}
