// Package stack runs Holdfast on one machine: it starts, connects, awaits, and stops the servers and the services of a checkout. It
// also starts temporary servers for tests.
package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast.dev/proto"

	"holdfast.dev/services/local/internal/parts"
	"holdfast.dev/services/local/internal/seed"
	"holdfast.dev/services/local/internal/state"
	"holdfast.dev/services/local/internal/supervise"
	"holdfast.dev/services/local/internal/terminal"
)

// Platform is a complete Holdfast, run from one checkout.
type Platform struct {
	Checkout
	Servers

	config config
}

// Up runs the platform of this checkout until ctx ends. An interrupted start is not an error.
func Up(ctx context.Context) error {
	p, release, err := newPlatform()
	if err != nil {
		return err
	}
	defer release()
	if err := p.serversConfig().check(ctx); err != nil {
		return err
	}
	defer p.stop()
	if err := p.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // A signal ended the start.
		}
		return err
	}
	<-ctx.Done()
	return nil
}

// newPlatform reads settings and state, acquires the checkout's lock, and ends the processes that a killed supervisor left behind.
func newPlatform() (*Platform, func(), error) {
	p := &Platform{}
	var err error
	if p.config, err = readConfig(); err != nil {
		return nil, nil, err
	}
	p.fullJIT, p.sockets = p.config.KafkaFullJIT, p.config.Sockets
	if p.Checkout, err = OpenCheckout(); err != nil {
		return nil, nil, err
	}
	if err := p.requirePrograms(); err != nil {
		return nil, nil, err
	}
	for _, dir := range []string{p.Run, logFolder(p.Run), p.pids()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, nil, err
		}
	}
	release, err := p.lock()
	if err != nil {
		return nil, nil, err
	}
	if err := p.prepare(); err != nil {
		release()
		return nil, nil, err
	}
	return p, release, nil
}

// prepare runs all steps that can fail before the first process starts.
func (p *Platform) prepare() error {
	_ = os.Remove(p.envFile())
	rotateLogs(logFolder(p.Run))
	p.screen = terminal.New(os.Stdout, logFolder(p.Run))
	var err error
	if p.data, err = p.makeData(); err != nil {
		return err
	}
	if left := supervise.CleanUp(p.pids(), p.marks(p.data)...); len(left) > 0 {
		p.screen.Say("ended what an earlier start left: %v", left)
	}
	p.mark = p.Root
	p.group = &supervise.Group{PIDs: p.pids(), Notice: p.screen.Say}
	remembered := filepath.Join(p.Run, "state.json")
	aside, err := setAside(p.data, remembered)
	if err != nil {
		return err
	}
	if aside != "" {
		p.screen.Say("a deleted checkout left data here; the data was moved to %s", aside)
	}
	if p.state, err = state.Load(remembered); err != nil {
		return err
	}
	return p.assignPorts()
}

// start starts everything and prints the addresses. It writes .run/env last.
func (p *Platform) start(ctx context.Context) error {
	if err := supervise.WritePID(p.group.PIDs, "local", os.Getpid()); err != nil {
		return err
	}
	if err := p.startServers(ctx, p.serversConfig()); err != nil {
		return err
	}
	if err := p.writeServiceEnvs(); err != nil {
		return err
	}
	if err := p.state.Save(); err != nil {
		return err
	}
	if err := p.migrate(ctx); err != nil {
		return err
	}
	if err := p.startStripe(ctx); err != nil {
		return err
	}
	if err := p.startServices(ctx); err != nil {
		return err
	}
	seeded, err := p.seed(ctx)
	if err != nil {
		return err
	}
	if err := p.connectStripe(ctx, seeded.DemoID); err != nil {
		return err
	}
	if err := p.writeEnv(seeded); err != nil {
		return err
	}
	p.greet(ctx, seeded)
	if now := time.Now(); p.config.Logs == "all" {
		p.screen.ShowAll(now)
	}
	return nil
}

func (p *Platform) serversConfig() serversConfig {
	return serversConfig{
		postgresURL: p.config.DatabaseURL, redisURL: p.config.RedisURL,
		brokers: p.config.KafkaBrokers, kafka: []string{p.config.Kafka}, pooler: p.config.Pooler,
	}
}

// assignPorts assigns two ports to each service, and one to the Stripe stand-in. A requested port must be free.
func (p *Platform) assignPorts() error {
	public := proto.PublicService().Name
	if requested := p.config.GatewayPort; requested != 0 {
		if !p.ports.Take(requested) {
			return fmt.Errorf("GATEWAY_PORT=%d is in use by another program: choose another port, or unset it", requested)
		}
		p.state.SetPort(public, requested)
	} else if err := p.takePort(public, defaultGatewayPort); err != nil {
		return err
	}
	for _, name := range proto.ServiceNames() {
		if name != public {
			if err := p.takePort(name, 0); err != nil {
				return err
			}
		}
		if err := p.takePort(name+".metrics", 0); err != nil {
			return err
		}
	}
	return p.takePort(stripeName, 0)
}

// administrator returns the URL of the role that creates databases and roles.
func (p *Platform) administrator(ctx context.Context) (string, error) {
	if p.config.DatabaseURL != "" {
		return p.postgresURL, nil
	}
	var databases []parts.Database
	for _, s := range proto.Services() {
		if s.Database {
			databases = append(databases, p.wiring().Database(s.Name))
		}
	}
	password := p.state.Secret("postgres.administrator")
	if err := p.state.Save(); err != nil {
		return "", err
	}
	return parts.Administrator(ctx, p.postgresURL, password, databases)
}

// migrate creates the databases and updates each service's tables.
func (p *Platform) migrate(ctx context.Context) error {
	admin, err := p.administrator(ctx)
	if err != nil {
		return err
	}
	all, ctx := errgroup.WithContext(ctx)
	for _, s := range proto.Services() {
		if !s.Database {
			continue
		}
		all.Go(func() error {
			if err := parts.EnsureDatabase(ctx, admin, p.wiring().Database(s.Name)); err != nil {
				return fmt.Errorf("database of %s: %w", s.Name, err)
			}
			out, err := p.tool(ctx, s, "migrate")
			if err != nil {
				return fmt.Errorf("migrating %s: %w\n%s", s.Name, err, out)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	p.screen.Say("databases are migrated")
	return nil
}

// tool runs a service's executable with arguments in the service's own environment. It returns the output; after an error, both
// streams.
func (p *Platform) tool(ctx context.Context, s proto.Service, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, p.binary(s.Name), args...)
	cmd.Env, cmd.Dir = p.environment(s), p.Root
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		out = append(out, exit.Stderr...)
	}
	return out, err
}

// seed fills the running platform through its own tools and its public API.
func (p *Platform) seed(ctx context.Context) (seed.Result, error) {
	tool := func(ctx context.Context, name string, args ...string) ([]byte, error) {
		s, ok := proto.ServiceNamed(name)
		if !ok {
			return nil, fmt.Errorf("%s is not a service of proto/services.yaml", name)
		}
		out, err := p.tool(ctx, s, args...)
		if err != nil {
			err = fmt.Errorf("bin/%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
		}
		return out, err
	}
	s := seed.Seeder{Base: p.wiring().publicURL() + "/api/v1", Tool: tool, State: p.state}
	r, err := s.Run(ctx)
	if err != nil {
		return r, fmt.Errorf("seeding: %w", err)
	}
	p.screen.Say("tenants demo and other are seeded")
	return r, nil
}

// stop removes .run/env and stops everything, the last started first.
func (p *Platform) stop() {
	_ = os.Remove(p.envFile())
	p.screen.ShowWarnings()
	p.screen.Say("stopping")
	p.group.Stop()
	_ = os.Remove(filepath.Join(p.pids(), "local"))
	p.screen.Say("stopped; the data stays until `make clean`")
}

// requirePrograms checks that the programs of the services and of the Stripe stand-in are built.
func (p *Platform) requirePrograms() error {
	for _, name := range append(proto.ServiceNames(), "local-stripe") {
		if _, err := exec.LookPath(p.binary(name)); err != nil {
			return fmt.Errorf("bin/%s is missing: run `make build`", name)
		}
	}
	return nil
}
