package availability

import (
	"slices"

	"holdfast.dev/services/bookings/internal/domain"
)

// Closure is a time at which units are closed. Nil units mean all units.
type Closure struct {
	domain.Span
	Units []domain.UnitID
}

// closed holds the times at which units are closed.
type closed struct {
	all   line
	units map[domain.UnitID]*line
}

func closedBy(list []Closure) closed {
	list = slices.SortedFunc(slices.Values(list), func(a, b Closure) int { return a.From.Compare(b.From) })
	c := closed{units: map[domain.UnitID]*line{}}
	for _, k := range list {
		if k.Units == nil {
			c.all.add(k.Span)
		}
		for _, id := range k.Units {
			if c.units[id] == nil {
				c.units[id] = &line{}
			}
			c.units[id].add(k.Span)
		}
	}
	return c
}

// of returns the times at which a unit is closed, in two lines: with all other units, and by its own closures.
func (c *closed) of(id domain.UnitID) []*line {
	if own := c.units[id]; own != nil {
		return []*line{&c.all, own}
	}
	return []*line{&c.all}
}
