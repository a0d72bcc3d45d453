package stack

import (
	"context"
	"errors"
	"path/filepath"
	"time"
)

// Alone calls do while only PostgreSQL runs: every other process of the platform, and those that Run has started, are
// stopped. It returns when the services are ready again.
func (p *Platform) Alone(ctx context.Context, do func() error) error {
	postgres, err := p.PID("postgres")
	if err != nil {
		return err
	}
	pids := []int{p.local.PID()} // all other processes of the platform are its descendants
	for _, one := range p.others {
		pids = append(pids, one.PID())
	}
	s, err := suspend(postgres, pids...)
	if err != nil {
		return err
	}
	if err := errors.Join(do(), s.resume()); err != nil {
		return err
	}
	return p.awaitReady(ctx)
}

// readyLimit is how long the services may take until they are ready after they were stopped.
const readyLimit = 30 * time.Second

// awaitReady waits until every service reports that it is ready.
func (p *Platform) awaitReady(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(p.Dir, ".run", "services", "*.env"))
	if err != nil {
		return err
	}
	for _, file := range files {
		settings, err := readEnv(file)
		if err != nil {
			return err
		}
		addr := settings["HTTP_ADDR"]
		if addr == "" { // the stand-in for Stripe, whose settings have a prefix
			continue
		}
		ready := func(ctx context.Context) error { return checkOK(ctx, "http://"+addr+"/readyz") }
		if err := p.local.await(ctx, readyLimit, ready); err != nil {
			return err
		}
	}
	return nil
}
