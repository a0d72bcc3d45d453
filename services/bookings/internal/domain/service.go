package domain

import "time"

// Service is what an operator offers, such as a tour. Buffers keep its unit busy around a timed booking.
type Service struct {
	ID                  ServiceID
	Name                string
	Description         *string
	DurationMinutes     *int // of a booking that names no end
	SlotStepMinutes     *int
	BufferBeforeMinutes int
	BufferAfterMinutes  int
	Active              bool
	UnitIDs             []UnitID
	Version             int64
	CreatedAt           time.Time
	UpdatedAt           time.Time
}
