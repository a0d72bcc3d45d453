package domain

import (
	"slices"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/patch"
)

// DepositType specifies how a package's deposit follows from the total.
type DepositType string

// The deposit is zero, a fixed amount, or a share in basis points.
const (
	DepositNone       DepositType = "none"
	DepositFlat       DepositType = "flat"
	DepositPercentage DepositType = "percentage"
)

// Pricing specifies what the price of a package is for.
type Pricing string

// The price is for a booking, or for each of its guests.
const (
	PerBooking Pricing = "per_booking"
	PerGuest   Pricing = "per_guest"
)

// Terms contains the price terms of a package. A booking stores them as of the time when it was priced.
type Terms struct {
	Name            string       `json:"name"`
	BasePrice       money.Amount `json:"base_price"`
	Pricing         Pricing      `json:"pricing"` // "" in a price of before this field: per booking
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
	Visible     bool     // a hidden package is not offered, but can be booked by id
	Active      bool
	Version     int64
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// PackagePatch contains the fields of a create or an update. An absent field stays unchanged.
type PackagePatch struct {
	ServiceID       patch.Field[string] // as sent
	Name            patch.Field[string]
	Description     patch.Field[string]
	BasePrice       patch.Field[money.Amount]
	Pricing         patch.Field[Pricing]
	DepositType     patch.Field[DepositType]
	DepositValue    patch.Field[int64]
	DurationMinutes patch.Field[int]
	UnitIDs         patch.Field[[]string] // as sent
	Visible         patch.Field[bool]
	Active          patch.Field[bool]
}

// NewPackage returns a package before its first patch.
func NewPackage() Package {
	return Package{ID: ids.New[PackagePrefix](), Visible: true, Active: true, Terms: Terms{Pricing: PerBooking, DepositType: DepositNone}}
}

// Apply returns the package with the given fields. A given price must be in the operator's currency.
func (p Package) Apply(in PackagePatch, currency string) (Package, error) {
	in.Name.Set(&p.Name)
	in.Description.SetNullable(&p.Description)
	in.BasePrice.Set(&p.BasePrice)
	in.Pricing.Set(&p.Pricing)
	in.DepositType.Set(&p.DepositType)
	in.DepositValue.Set(&p.DepositValue)
	in.DurationMinutes.SetNullable(&p.DurationMinutes)
	in.Visible.Set(&p.Visible)
	in.Active.Set(&p.Active)
	var service, price error
	if id := in.ServiceID.Pointer(); id != nil {
		if p.ServiceID, service = ids.Parse[ServicePrefix](*id); service != nil {
			service = field("service_id", "Service not found.")
		}
	}
	if in.BasePrice.Given() && p.BasePrice.Currency != currency {
		price = field("base_price.currency", "Must be %s, the operator's currency.", currency)
	}
	err := apperr.Join(service, price, setIDs(&p.UnitIDs, in.UnitIDs, "unit_ids", "Unit not found."))
	return p, err
}

// Check returns the error of a package whose fields are inconsistent. The contract checks each field separately. A flat deposit can
// exceed the price: it is limited to each booking's total. Without a deposit, its value has no effect.
func (p Package) Check() error {
	if p.DepositType == DepositPercentage && p.DepositValue > money.Whole {
		return field("deposit_value", "Must be at most %d basis points, the full price.", money.Whole)
	}
	return nil
}

// BookableOn reports whether the package can be booked on the unit.
func (p Package) BookableOn(u Unit, s Service) bool {
	if len(p.UnitIDs) > 0 {
		return slices.Contains(p.UnitIDs, u.ID)
	}
	return u.Serves(s)
}
