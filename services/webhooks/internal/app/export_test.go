package app

import (
	"context"
	"sync"
)

// Step makes one pass, waits for its attempts and writes their results, so that a test can move the clock between
// steps. It returns the number of attempts.
func (d *Dispatcher) Step(ctx context.Context) (int, error) {
	complete, n, err := d.Begin(ctx)
	if err != nil || n == 0 {
		return n, err
	}
	return n, complete()
}

// Begin is Step without writing the results, as if the process were killed. complete writes them.
func (d *Dispatcher) Begin(ctx context.Context) (complete func() error, n int, err error) {
	d.prepare()
	var attempts sync.WaitGroup
	if _, err := d.pass(ctx, &attempts); err != nil {
		return nil, 0, err
	}
	attempts.Wait()
	var batch []result
	for len(d.results) > 0 {
		batch = append(batch, <-d.results)
	}
	return func() error { return d.complete(ctx, batch) }, len(batch), nil
}
