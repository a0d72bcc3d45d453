package app

import (
	"errors"
	"slices"

	"holdfast.dev/libs/apperr"
)

// inOrder joins two verdicts on the fields of a body in the contract's order; each field is named once. An error of another kind
// is returned alone.
func inOrder(a, b error, order ...string) error {
	err := apperr.Join(a, b)
	var e *apperr.Error
	if !errors.As(err, &e) || e.Code != "invalid_request" {
		return err
	}
	failed := slices.Clone(e.Fields)
	slices.SortStableFunc(failed, func(x, y apperr.FieldError) int { return slices.Index(order, x.Field) - slices.Index(order, y.Field) })
	return apperr.Fields(slices.CompactFunc(failed, func(x, y apperr.FieldError) bool { return x.Field == y.Field }))
}
