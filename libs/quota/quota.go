// Package quota bounds how many rows of one kind a tenant may have in one mode.
package quota

import "holdfast.dev/libs/apperr"

// ErrReached is the 422 of one row more than a cap allows; Cap.Room gives it its field and message.
var ErrReached = apperr.New(apperr.Invalid, "limit_reached", "There are as many as a tenant may have.").WithField("name")

// Cap is the most rows of one kind that a tenant may have in one mode.
type Cap struct {
	Most   int
	Rows   string // what they are called, as in "active services"
	Field  string // that the error is on
	Remedy string // a sentence that says what to do
}

// Room returns nil when one row more fits beside those that are there. Whoever asks has counted them under a lock that
// every other writer of such rows takes too, so that no two take the last place.
func (c Cap) Room(there int) error {
	if there < c.Most {
		return nil
	}
	return ErrReached.WithMessage("At most %d %s are allowed per tenant and mode. %s", c.Most, c.Rows, c.Remedy).WithField(c.Field)
}
