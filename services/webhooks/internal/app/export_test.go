package app

import (
	"context"
	"sync"
)

// Step gives every lane that is ready one turn and writes what came of it, so that a test can move the clock between
// steps. It returns how many attempts were made.
func (d *Dispatcher) Step(ctx context.Context) (int, error) {
	end, n, err := d.Begin(ctx)
	if err != nil || n == 0 {
		return n, err
	}
	return n, end()
}

// Begin is the half of Step before the end is written: what a process has done that dies then.
func (d *Dispatcher) Begin(ctx context.Context) (end func() error, n int, err error) {
	d.prepare()
	var under sync.WaitGroup
	if _, err := d.turn(ctx, &under); err != nil {
		return nil, 0, err
	}
	under.Wait()
	var batch []ending
	for len(d.ended) > 0 {
		batch = append(batch, <-d.ended)
	}
	return func() error { return d.settle(ctx, batch) }, len(batch), nil
}
