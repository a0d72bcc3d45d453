package stack

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast.dev/proto"

	"holdfast.dev/services/local/internal/supervise"
)

// The start fails if a service crashes this many times before it is ready.
const (
	tooManyDeaths = 4
	readyLimit    = 2 * time.Minute
)

// startServices starts every service and returns when all are ready.
func (p *Platform) startServices(ctx context.Context) error {
	for _, s := range proto.Services() {
		err := p.group.Start(supervise.Spec{
			Name: s.Name, Path: p.binary(s.Name), Args: []string{"serve"}, Env: p.environment(s), Dir: p.Root,
			Log: p.screen.ServiceLog(s.Name), StopTimeout: 20 * time.Second,
		})
		if err != nil {
			return err
		}
	}
	all, ctx := errgroup.WithContext(ctx)
	names := proto.ServiceNames()
	for _, name := range names {
		all.Go(func() error { return p.awaitService(ctx, name) })
	}
	if err := all.Wait(); err != nil {
		return err
	}
	p.screen.Say("%s are healthy", strings.Join(names, ", "))
	return nil
}

func (p *Platform) awaitService(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	address := "http://" + p.wiring().address(name) + "/readyz"
	for {
		err := CheckOK(ctx, address)
		if err == nil {
			return nil
		}
		if p.group.Deaths(name) >= tooManyDeaths {
			return p.explain(name, fmt.Errorf("%s does not start", name))
		}
		select {
		case <-ctx.Done():
			return p.explain(name, fmt.Errorf("%s is not ready after %v: %w", name, readyLimit, err))
		case <-time.After(30 * time.Millisecond):
		}
	}
}

// CheckOK returns an error unless an address responds with 200.
func CheckOK(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s returned %s", address, resp.Status)
	}
	return nil
}
