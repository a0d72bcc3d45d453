package app

import (
	"context"
	"fmt"
	"slices"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/limit"
)

// This file holds what the verbs of the catalogue share. The catalogue has no events: no public type is about it. Each
// write holds the lock of the caller's catalogue and returns the row as it is read after the write.

// checkRoom returns the 422 when one more row, active or inactive, would exceed its cap. It counts under the catalogue's
// lock.
func checkRoom(
	ctx context.Context, tx pg.Tx, caps limit.Caps, count func(ctx context.Context, tx pg.Tx) (limit.Count, error), active bool,
) error {
	there, err := count(ctx, tx)
	if err != nil {
		return err
	}
	return caps.Room(there, active)
}

func mode(ctx context.Context) api.Mode { return api.Mode(caller.FromContext(ctx).Mode) }

func listed(name string) func(i int) string {
	return func(i int) string { return fmt.Sprintf("%s.%d", name, i) }
}

// checkExist returns the 422 of the ids that the caller does not have, and sorts the list as it is read back.
func checkExist[P ids.Prefix](
	ctx context.Context, q pg.Q, field func(i int) string, message string, list *[]ids.ID[P],
	known func(context.Context, pg.Q, []ids.ID[P]) ([]ids.ID[P], error),
) error {
	have, err := known(ctx, q, *list)
	if err != nil {
		return err
	}
	var failed []apperr.FieldError
	for i, id := range *list {
		if !slices.Contains(have, id) {
			failed = append(failed, apperr.FieldError{Field: field(i), Message: message})
		}
	}
	if len(failed) > 0 {
		return apperr.Fields(failed)
	}
	sorted := slices.Clone(*list)
	slices.SortFunc(sorted, domain.CompareIDs[P])
	*list = slices.Compact(sorted)
	return nil
}
