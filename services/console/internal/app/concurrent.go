package app

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// RunConcurrently runs all functions in parallel and returns the first error in their order. A panic becomes an error of its
// function, so that it does not end the process.
func RunConcurrently(all ...func() error) error {
	errs := make([]error, len(all))
	var wait sync.WaitGroup
	for i, f := range all {
		wait.Go(func() { errs[i] = guarded(f) })
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// guarded runs f and turns a panic into an error.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}
