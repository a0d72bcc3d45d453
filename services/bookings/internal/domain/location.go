package domain

import (
	"fmt"
	"sync"
	"time"
)

var locations sync.Map // IANA name → *time.Location; bounded by the number of zones, as only known names enter

// Location returns the zone of an IANA name. Zones are read once: parsing one costs more than a price.
func Location(name string) (*time.Location, error) {
	if loc, ok := locations.Load(name); ok {
		return loc.(*time.Location), nil //nolint:forcetypeassert // only this function stores
	}
	loc, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, fmt.Errorf("timezone %q is unknown", name) //nolint:err113 // an internal error with its cause
	}
	locations.Store(name, loc)
	return loc, nil
}
