// Package limit contains the caps of a tenant's catalogue. It is part of domain and pure.
package limit

import (
	"holdfast.dev/libs/quota"
	"holdfast.dev/proto"
)

// Caps contains the caps of one kind of row in the catalogue: one for active rows, one for inactive rows.
type Caps struct{ Active, Inactive quota.Cap }

// The caps of a tenant's catalogue in one mode. The platform can set others for a tenant.
var (
	Services = caps(proto.CapServices, "services", "active", "inactive", "Deactivate one of them first (active: false).")
	Units    = caps(proto.CapUnits, "units", "active or in maintenance", "retired", "Retire one of them first (status: retired).")
	Packages = caps(proto.CapPackages, "packages", "active", "inactive", "Deactivate one of them first (active: false).")
	Holidays = caps(proto.CapHolidayRules, "holiday rules", "active", "inactive", "Deactivate one of them first (active: false).")
)

// Closures contains the caps of closures. A closure that has not ended counts as active.
var Closures = Caps{
	Active:   quota.Cap{Most: 1000, Rows: "closures that have not ended", Field: "name", Remedy: "Delete one of them first."},
	Inactive: quota.Cap{Most: 1000 * inactiveFactor, Rows: "closures that have ended", Field: "name", Remedy: "Delete some of them first."},
}

// inactiveFactor is how many inactive rows are allowed per allowed active row.
const inactiveFactor = 10

func caps(c proto.Cap, kind, active, inactive, remedy string) Caps {
	return Caps{
		Active: quota.Cap{Name: c.Name, Most: c.Default, Rows: kind + " that are " + active, Field: "name", Remedy: remedy},
		Inactive: quota.Cap{
			Most: inactiveFactor * c.Default, Rows: kind + " that are " + inactive, Field: "name",
			Remedy: "Update an existing one instead.",
		},
	}
}

// For returns the caps of a tenant with its own caps, by name. As many inactive rows are allowed per active row as by default.
func (c Caps) For(own map[string]int) Caps {
	if _, ok := own[c.Active.Name]; ok && c.Active.Name != "" {
		c.Active = c.Active.For(own)
		c.Inactive.Most = inactiveFactor * c.Active.Most
	}
	return c
}

// Count is how many rows of one kind a tenant has in one mode.
type Count struct{ Active, Inactive int }

// Room returns the 422 if one more active or inactive row would exceed its cap.
func (c Caps) Room(there Count, active bool) error {
	if active {
		return c.Active.Room(there.Active)
	}
	return c.Inactive.Room(there.Inactive)
}
