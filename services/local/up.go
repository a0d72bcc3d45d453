package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"holdfast.dev/proto"

	"holdfast.dev/services/local/internal/parts"
	"holdfast.dev/services/local/internal/state"
	"holdfast.dev/services/local/internal/supervise"
)

// platform is a complete Holdfast, run from one checkout.
type platform struct {
	stack
	config config
	root   string // the checkout
	run    string // its .run/
}

func upCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "up",
		Short: "Start the whole platform and keep it running until Ctrl-C or `local down`",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return up(cmd.Context())
		},
	}
}

// up runs the platform until ctx ends. An interrupted start is not an error.
func up(ctx context.Context) error {
	p, release, err := newPlatform()
	if err != nil {
		return err
	}
	defer release()
	if err := p.partsConfig().check(ctx); err != nil {
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
func newPlatform() (*platform, func(), error) {
	p := &platform{}
	var err error
	if p.config, err = readConfig(); err != nil {
		return nil, nil, err
	}
	p.fullJIT, p.sockets = p.config.KafkaFullJIT, p.config.Sockets
	if p.root, err = checkout(); err != nil {
		return nil, nil, err
	}
	if err := requireServices(filepath.Join(p.root, "bin")); err != nil {
		return nil, nil, err
	}
	p.run = filepath.Join(p.root, ".run")
	for _, dir := range []string{p.run, logFolder(p.run), filepath.Join(p.run, "pids")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, nil, err
		}
	}
	release, err := lock(p.run)
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
func (p *platform) prepare() error {
	_ = os.Remove(p.envFile())
	rotateLogs(logFolder(p.run))
	p.screen = newConsole(os.Stdout, logFolder(p.run))
	var err error
	if p.data, err = dataDir(p.root, p.run); err != nil {
		return err
	}
	pids := filepath.Join(p.run, "pids")
	if left := supervise.CleanUp(pids, marks(p.root, p.data)...); len(left) > 0 {
		p.screen.say("ended what an earlier start left: %v", left)
	}
	p.mark = p.root
	p.group = &supervise.Group{PIDs: pids, Notice: p.screen.say}
	remembered := filepath.Join(p.run, "state.json")
	aside, err := setAside(p.data, remembered)
	if err != nil {
		return err
	}
	if aside != "" {
		p.screen.say("a deleted checkout left data here; the data was moved to %s", aside)
	}
	if p.state, err = state.Load(remembered); err != nil {
		return err
	}
	return p.assignPorts()
}

// start starts everything and prints the addresses. It writes .run/env last.
func (p *platform) start(ctx context.Context) error {
	if err := supervise.WritePID(p.group.PIDs, "local", os.Getpid()); err != nil {
		return err
	}
	if err := p.startParts(ctx, p.partsConfig()); err != nil {
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
		p.screen.all.Store(&now)
	}
	return nil
}

func (p *platform) partsConfig() partsConfig {
	return partsConfig{
		postgresURL: p.config.DatabaseURL, redisURL: p.config.RedisURL,
		brokers: p.config.KafkaBrokers, kafka: []string{p.config.Kafka}, pooler: p.config.Pooler,
	}
}

// assignPorts assigns two ports to each service, and one to the Stripe stand-in. A requested port must be free.
func (p *platform) assignPorts() error {
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
func (p *platform) administrator(ctx context.Context) (string, error) {
	if p.config.DatabaseURL != "" {
		return p.postgresURL, nil
	}
	var databases []parts.Database
	for _, s := range proto.Services() {
		if s.Database {
			databases = append(databases, p.wiring().database(s.Name))
		}
	}
	password := p.state.Secret("postgres.administrator")
	if err := p.state.Save(); err != nil {
		return "", err
	}
	return parts.Administrator(ctx, p.postgresURL, password, databases)
}

// migrate creates the databases and updates each service's tables.
func (p *platform) migrate(ctx context.Context) error {
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
			if err := parts.EnsureDatabase(ctx, admin, p.wiring().database(s.Name)); err != nil {
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
	p.screen.say("databases are migrated")
	return nil
}

// tool runs a service's executable with arguments in the service's own environment. It returns the output; after an error, both
// streams.
func (p *platform) tool(ctx context.Context, s proto.Service, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, p.binary(s.Name), args...)
	cmd.Env, cmd.Dir = p.environment(s), p.root
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		out = append(out, exit.Stderr...)
	}
	return out, err
}

func (p *platform) binary(name string) string { return filepath.Join(p.root, "bin", name) }

// stop removes .run/env and stops everything, the last started first.
func (p *platform) stop() {
	_ = os.Remove(p.envFile())
	p.screen.all.Store(nil)
	p.screen.say("stopping")
	p.group.Stop()
	_ = os.Remove(filepath.Join(p.run, "pids", "local"))
	p.screen.say("stopped; the data stays until `make clean`")
}

func requireServices(bin string) error {
	for _, name := range append(proto.ServiceNames(), "local-stripe") {
		if _, err := exec.LookPath(filepath.Join(bin, name)); err != nil {
			return fmt.Errorf("bin/%s is missing: run `make build`", name)
		}
	}
	return nil
}
