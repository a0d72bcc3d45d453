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

// BookingMode specifies whether bookings can share a unit.
type BookingMode string

// The booking modes. In seats mode, the bookings of an offered slot share it, and each takes as many seats as it has guests.
const (
	ExclusiveMode BookingMode = "exclusive"
	SeatsMode     BookingMode = "seats"
)

// Unit is what a booking occupies, such as a boat. In exclusive mode, at most one booking can occupy it at a time.
type Unit struct {
	ID           UnitID
	Name         string
	Description  *string
	Status       UnitStatus
	Capacity     *int // guests of a booking; nil: no limit; in seats mode: seats of a slot, at least 1
	BookingMode  BookingMode
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
	BookingMode  patch.Field[BookingMode]
	OpeningHours patch.Field[map[string][][]string] // as sent
	ServiceIDs   patch.Field[[]string]              // as sent
}

// NewUnit returns a unit before its first patch.
func NewUnit() Unit {
	return Unit{ID: ids.New[UnitPrefix](), Status: UnitActive, BookingMode: ExclusiveMode}
}

// Apply returns the unit with the given fields.
func (u Unit) Apply(p UnitPatch) (Unit, error) {
	p.Name.Set(&u.Name)
	p.Description.SetNullable(&u.Description)
	p.Status.Set(&u.Status)
	p.Capacity.SetNullable(&u.Capacity)
	p.BookingMode.Set(&u.BookingMode)
	err := setIDs(&u.ServiceIDs, p.ServiceIDs, "service_ids", "Service not found.")
	if p.OpeningHours.Given() {
		var table map[string][][]string // nil for null
		p.OpeningHours.Set(&table)
		hours, invalid := ParseOpeningHours(table)
		u.OpeningHours, err = hours, apperr.Join(err, invalid)
	}
	if u.Shared() && u.seats() < 1 {
		err = apperr.Join(field("capacity", "Must be at least 1, the number of seats, because booking_mode is seats."), err)
	}
	return u, err
}

// Shared reports whether bookings of a slot share the unit.
func (u Unit) Shared() bool { return u.BookingMode == SeatsMode }

// Permits returns the error of a change of a unit that bookings from now on prevent. booked is whether there are any, seats the most that
// they take in a slot, and whole whether one of them takes all seats of its slot.
func (u Unit) Permits(before Unit, booked bool, seats int, whole bool) error {
	if u.BookingMode != before.BookingMode {
		if booked {
			return field("booking_mode", "Cannot be changed while the unit has bookings that have not ended.")
		}
		return nil
	}
	if whole {
		seats = before.seats()
	}
	if u.seats() < seats {
		return field("capacity", "Must be at least %d, the number of seats that are taken in a slot from now on.", seats)
	}
	return nil
}

// seats returns the number of seats of a slot of a shared unit.
func (u Unit) seats() int {
	if u.Capacity == nil {
		return 0
	}
	return *u.Capacity
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
