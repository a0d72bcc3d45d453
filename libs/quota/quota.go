// Package quota limits the rows of one kind that a tenant can have in one mode, and the costly work in a process.
package quota

import "holdfast.dev/libs/apperr"

// ErrReached is the 422 if a cap allows no more rows. Cap.Room sets its field and message.
var ErrReached = apperr.New(apperr.Invalid, "limit_reached", "The tenant has reached the limit.").WithField("name")

// Cap is the maximum number of rows of one kind that a tenant can have in one mode.
type Cap struct {
	Name   string // in caller.Caller.Caps; "" if the platform cannot set the cap for a tenant
	Most   int
	Rows   string // what the rows are called, as in "active services"
	Field  string // the field of the error
	Remedy string // a sentence that explains what to do
}

// For returns the cap for a tenant with its own caps. own is the maximum by name, like caller.Caller.Caps.
func (c Cap) For(own map[string]int) Cap {
	if most, ok := own[c.Name]; ok && c.Name != "" {
		c.Most = most
	}
	return c
}

// Room returns nil if one more row fits. there is the number of existing rows. The caller must count them under a lock that every
// other writer of such rows acquires, so that two writers cannot both add the last row.
func (c Cap) Room(there int) error {
	if there < c.Most {
		return nil
	}
	return ErrReached.WithMessage("At most %d %s are allowed per tenant and mode. %s", c.Most, c.Rows, c.Remedy).WithField(c.Field)
}
