package app

import (
	"context"
	"fmt"
	"sync"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/store"
)

const (
	blockSize = 16
	maxBlocks = 10_000
)

// Numbers gives bookings their numbers, B-000001 upwards per tenant and mode. A process takes them in blocks,
// in a transaction of its own: creates of one tenant do not queue at a counter's row until each other's
// commit, and no tenant sees how much another books. What a stopped process or a refused create held is
// never used: numbers are unique, not gapless, and of two processes not in the order of time.
type Numbers struct {
	DB *pg.DB

	mu     sync.Mutex
	blocks map[owner]*block
}

type owner struct {
	tenant ids.Tenant
	live   bool
}

type block struct {
	mu         sync.Mutex
	next, left int64
}

// Next returns a number that no other booking of the tenant and mode has.
func (n *Numbers) Next(ctx context.Context) (string, error) {
	c := caller.FromContext(ctx)
	b := n.block(owner{tenant: c.Tenant, live: c.Live()})
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left == 0 {
		err := n.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
			b.next, err = store.TakeNumbers(ctx, tx, blockSize)
			return err
		})
		if err != nil {
			return "", err
		}
		b.left = blockSize
	}
	b.next, b.left = b.next+1, b.left-1
	return fmt.Sprintf("B-%06d", b.next-1), nil
}

func (n *Numbers) block(o owner) *block {
	n.mu.Lock()
	defer n.mu.Unlock()
	if b := n.blocks[o]; b != nil {
		return b
	}
	if n.blocks == nil || len(n.blocks) >= maxBlocks { // dropped blocks leave gaps, nothing worse
		n.blocks = map[owner]*block{}
	}
	b := &block{}
	n.blocks[o] = b
	return b
}
