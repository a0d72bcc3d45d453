package pg_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/peer/peertest"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

// forward connects each connection of a listener to an address.
func forward(l net.Listener, to string) {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = from.Close() }()
			server, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer func() { _ = server.Close() }()
			go func() {
				_, _ = io.Copy(server, from)
				_ = server.Close()
			}()
			_, _ = io.Copy(from, server)
		}()
	}
}

// If one of the poolers behind an address has vanished, no request fails, although some of its connections would never open.
func TestAVanishedPoolerCostsNoRequest(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, notes)
	u, err := url.Parse(db.AppURL)
	if err != nil {
		t.Fatal(err)
	}
	address, living := peertest.DroppingListeners(t, 7)
	for _, l := range living {
		go forward(l, u.Host)
	}
	u.Host = address
	const connections = 40
	pool, err := pg.Open(t.Context(), u.String(), pg.Options{MaxConns: connections})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	ctx := pgtest.Ctx(t, caller.Live)
	opened, release := make(chan error, 2*connections), make(chan struct{})
	var all sync.WaitGroup
	for range connections {
		all.Go(func() {
			err := pool.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
				_, err := tx.Exec(ctx, `select 1`)
				opened <- err
				<-release // each has a connection of its own
				return err
			})
			if err != nil {
				opened <- err
			}
		})
	}
	for range connections {
		if err := <-opened; err != nil {
			t.Error(err)
		}
	}
	close(release)
	all.Wait()
}
