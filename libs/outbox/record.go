package outbox

import (
	"context"
	"encoding/json"
	"fmt"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"
)

// Emit adds an event to the transaction as Add does, and wakes the relay when it has committed; a nil wake leaves that to the relay's own
// pace.
func Emit(ctx context.Context, tx pg.Tx, wake func(), e Event) error {
	if wake != nil {
		tx.AfterCommit(wake)
	}
	if err := Add(ctx, tx, e); err != nil {
		return fmt.Errorf("%s: %w", e.Type, err)
	}
	return nil
}

// Body is what an event shows of a resource: the body of a GET in the caller's mode. show is the resource's function of view.
func Body[T, V any](ctx context.Context, show func(T, api.Mode) V, v T) (json.RawMessage, error) {
	return contract.Encode(show(v, api.Mode(caller.FromContext(ctx).Mode)))
}

// Previous is what an event shows of a resource before a change: the fields that differ, with their values before; {} when none does.
func Previous[T, V any](ctx context.Context, show func(T, api.Mode) V, before, after T) (json.RawMessage, error) {
	was, err := Body(ctx, show, before)
	if err != nil {
		return nil, err
	}
	is, err := Body(ctx, show, after)
	if err != nil {
		return nil, err
	}
	return Diff(was, is), nil
}
