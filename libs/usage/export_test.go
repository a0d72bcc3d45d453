package usage

import (
	"context"
	"time"

	"holdfast.dev/libs/pg"
)

// Stored returns the number and the size of the stored rows of the caller's tenant and mode.
func Stored(ctx context.Context, tx pg.Tx) (rows, bytes int64, err error) {
	all, err := stored(ctx, tx, time.Minute)
	return all.Rows, all.Bytes, err
}
