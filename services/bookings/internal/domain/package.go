package domain

import (
	"slices"
	"time"

	"holdfast.dev/libs/money"
)

// DepositType says how a package's deposit follows from the total.
type DepositType string

// The deposit is nothing, a fixed amount, or a share in basis points.
const (
	DepositNone       DepositType = "none"
	DepositFlat       DepositType = "flat"
	DepositPercentage DepositType = "percentage"
)

// Terms are what a package costs; a booking keeps them as they were when it was priced.
type Terms struct {
	Name            string       `json:"name"`
	BasePrice       money.Amount `json:"base_price"`
	DepositType     DepositType  `json:"deposit_type"`
	DepositValue    int64        `json:"deposit_value"` // minor units for flat, basis points for percentage
	DurationMinutes *int         `json:"duration_minutes"`
}

// Package is a service at a price.
type Package struct {
	Terms
	ID          PackageID
	ServiceID   ServiceID
	Description *string
	UnitIDs     []UnitID // empty: any unit of the service
	Visible     bool     // a hidden package is not offered, and can be booked by id
	Active      bool
	Version     int64
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Check returns the error of a package whose fields do not go together; each alone is the contract's affair.
// A flat deposit may exceed the price: it is clamped to each booking's total. Of no deposit the value is idle.
func (p Package) Check() error {
	if p.DepositType == DepositPercentage && p.DepositValue > money.Whole {
		return field("deposit_value", "Must be at most %d basis points, which are all of the price.", money.Whole)
	}
	return nil
}

// Takes reports whether the package can be had on the unit.
func (p Package) Takes(u Unit, s Service) bool {
	if len(p.UnitIDs) > 0 {
		return slices.Contains(p.UnitIDs, u.ID)
	}
	return u.Serves(s)
}
