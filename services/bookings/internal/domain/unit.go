package domain

import (
	"slices"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
)

// UnitStatus specifies whether a unit can be booked.
type UnitStatus string

// The states of a unit. Only an active one accepts new bookings.
const (
	UnitActive      UnitStatus = "active"
	UnitMaintenance UnitStatus = "maintenance"
	UnitRetired     UnitStatus = "retired"
)

// Unit is what a booking occupies, such as a boat. At most one booking can occupy it at a time.
type Unit struct {
	ID           UnitID
	Name         string
	Description  *string
	Status       UnitStatus
	Capacity     *int         // guests; nil: no limit
	OpeningHours OpeningHours // nil: always open
	ServiceIDs   []ServiceID
	Version      int64
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// UnitPatch contains the fields of a create or an update. An absent field stays unchanged.
type UnitPatch struct {
	Name         patch.Field[string]
	Description  patch.Field[string]
	Status       patch.Field[UnitStatus]
	Capacity     patch.Field[int]
	OpeningHours patch.Field[map[string][][]string] // as sent
	ServiceIDs   patch.Field[[]string]              // as sent
}

// NewUnit returns a unit before its first patch.
func NewUnit() Unit { return Unit{ID: ids.New[UnitPrefix](), Status: UnitActive} }

// Apply returns the unit with the given fields.
func (u Unit) Apply(p UnitPatch) (Unit, error) {
	p.Name.Set(&u.Name)
	p.Description.SetNullable(&u.Description)
	p.Status.Set(&u.Status)
	p.Capacity.SetNullable(&u.Capacity)
	err := setIDs(&u.ServiceIDs, p.ServiceIDs, "service_ids", "Service not found.")
	if p.OpeningHours.Given() {
		var table map[string][][]string // nil for null
		p.OpeningHours.Set(&table)
		hours, invalid := ParseOpeningHours(table)
		u.OpeningHours, err = hours, apperr.Join(err, invalid)
	}
	return u, err
}

// InUse reports whether the unit is not retired.
func (u Unit) InUse() bool { return u.Status != UnitRetired }

// Serves reports whether the unit and the service are compatible: either they are linked, or neither has any link.
func (u Unit) Serves(s Service) bool {
	if len(u.ServiceIDs) == 0 && len(s.UnitIDs) == 0 {
		return true
	}
	return slices.Contains(u.ServiceIDs, s.ID)
}
