// Package numbers assigns human-readable numbers to documents, such as B-000001. They are unique per tenant and mode, but not
// gapless.
package numbers

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
)

const (
	blockSize = 16
	maxBlocks = 10_000
)

// Numbers assigns the numbers of one kind of document, from 1 upwards per tenant and mode. A process reserves them in blocks, in a
// separate transaction, so that concurrent creates of a tenant do not wait for each other's commit at the row of a counter. No
// tenant can see how many documents another tenant has. Numbers that a stopped process reserved, or that a failed create used, are
// never assigned again. Numbers of different processes are not in chronological order.
type Numbers struct {
	DB     *pg.DB
	Table  string // table of the next free number of each tenant and mode: (tenant_id, livemode, next)
	Format string // such as B-%06d

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

// Next returns a number that no other document of the tenant and mode has.
func (n *Numbers) Next(ctx context.Context) (string, error) {
	c := caller.FromContext(ctx)
	b := n.block(owner{tenant: c.Tenant, live: c.Live()})
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left == 0 {
		first, err := n.take(ctx)
		if err != nil {
			return "", err
		}
		b.next, b.left = first, blockSize
	}
	b.next, b.left = b.next+1, b.left-1
	return fmt.Sprintf(n.Format, b.next-1), nil
}

// take reserves a block of the caller's tenant and mode and returns its first number.
func (n *Numbers) take(ctx context.Context) (first int64, err error) {
	err = n.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		first, err = pg.One(ctx, tx, pgx.RowTo[int64], pgx.ErrNoRows, `
			insert into `+n.Table+` as c (tenant_id, livemode, next) values (@tenant, @live, 1 + @n)
			on conflict (tenant_id, livemode) do update set next = c.next + @n
			returning c.next - @n`, pg.Args{"n": int64(blockSize)})
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("take numbers: %w", err)
	}
	return first, nil
}

func (n *Numbers) block(o owner) *block {
	n.mu.Lock()
	defer n.mu.Unlock()
	if b := n.blocks[o]; b != nil {
		return b
	}
	if n.blocks == nil || len(n.blocks) >= maxBlocks { // dropped blocks only leave gaps
		n.blocks = map[owner]*block{}
	}
	b := &block{}
	n.blocks[o] = b
	return b
}
