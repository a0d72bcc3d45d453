// Package limit holds how much of each kind of the catalogue a tenant may have. It is a part of domain and as pure.
package limit

import "holdfast.dev/libs/quota"

// Places are the caps of one kind of the catalogue: of what is in use, and of what is set aside.
type Places struct{ InUse, Aside quota.Cap }

// The caps of a tenant's catalogue in one mode.
var (
	Services = places(200, "services", "active", "inactive", "Deactivate one of them first (active: false).")
	Units    = places(2000, "units", "active or in maintenance", "retired", "Retire one of them first (status: retired).")
	Packages = places(500, "packages", "active", "inactive", "Deactivate one of them first (active: false).")
	Holidays = places(200, "holiday rules", "active", "inactive", "Deactivate one of them first (active: false).")
)

// asideFactor is how many may be set aside for each that may be in use.
const asideFactor = 10

func places(most int, kind, used, aside, remedy string) Places {
	return Places{
		InUse: quota.Cap{Most: most, Rows: kind + " that are " + used, Field: "name", Remedy: remedy},
		Aside: quota.Cap{
			Most: asideFactor * most, Rows: kind + " that are " + aside, Field: "name",
			Remedy: "Change one of them into what is needed, in place of setting aside another.",
		},
	}
}

// Count is how many rows of one kind a tenant has in one mode.
type Count struct{ InUse, Aside int }

// Room returns the 422 of one row more, in use or set aside.
func (p Places) Room(there Count, inUse bool) error {
	if inUse {
		return p.InUse.Room(there.InUse)
	}
	return p.Aside.Room(there.Aside)
}
