package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast.dev/libs/keyset"
	"holdfast.dev/proto"

	"holdfast.dev/services/local/internal/parts"
	"holdfast.dev/services/local/internal/seed"
	"holdfast.dev/services/local/internal/stack"
	"holdfast.dev/services/local/internal/state"
	"holdfast.dev/services/local/internal/terminal"
)

const (
	keysSecret  = "holdfast-keys"
	dataSecret  = "holdfast-datastores"
	clusterBase = "http://127.0.0.1:30080" // k8s/kind.yaml maps the gateway's port of values-dev
)

// Platform is Holdfast in a development cluster. Its keys are in a separate Secret, because the volumes cannot be read without them.
// Everything else can be created again.
type Platform struct {
	*Cluster
	stack.Wiring

	screen *terminal.Console
	root   string // of the checkout
	base   string // of the gateway, from this machine
}

// OpenPlatform opens the platform of this checkout in the development cluster. Its keys are read from the cluster, or created.
func OpenPlatform(ctx context.Context) (*Platform, error) {
	checkout, err := stack.OpenCheckout()
	if err != nil {
		return nil, err
	}
	screen := terminal.New(os.Stdout, "")
	c, err := Open(ctx, screen.Say)
	if err != nil {
		return nil, err
	}
	p := &Platform{Cluster: c, screen: screen, root: checkout.Root, base: cmp.Or(os.Getenv("CLUSTER_URL"), clusterBase)}
	stored, err := c.Secret(ctx, keysSecret, "state.json")
	if err != nil {
		return nil, err
	}
	p.Keys = state.Memory()
	if stored != nil {
		if err := json.Unmarshal(stored, p.Keys); err != nil {
			return nil, fmt.Errorf("secret %s is damaged: %w", keysSecret, err)
		}
	}
	p.Prefix = stack.DefaultPrefix
	p.PostgresURL = parts.Postgres{Host: Release + "-postgres:5432", Password: p.Keys.Secret("postgres")}.URL()
	p.RedisURL = parts.Redis{Host: Release + "-redis:6379", Password: p.Keys.Secret("redis")}.URL()
	return p, nil
}

// Install installs or upgrades the datastores, the Secrets, and the chart, and seeds demo data.
func (p *Platform) Install(ctx context.Context, in Installation) error {
	begin := time.Now()
	if err := p.MakeNamespace(ctx); err != nil {
		return err
	}
	if err := p.putSecrets(ctx); err != nil {
		return err
	}
	if err := p.StartDatastores(ctx, p.path(in.Datastores)); err != nil {
		return err
	}
	p.Say("PostgreSQL, Redis and Kafka are ready")
	if err := p.makeDatabases(ctx); err != nil {
		return err
	}
	p.Say("databases are there; the chart's Jobs migrate them")
	args := []string{"--set", "defaults.image.tag=" + in.Tag}
	if in.Registry != "" {
		args = []string{"--set", "defaults.image.registry=" + in.Registry}
	}
	for _, file := range append([]string{filepath.Join(in.Chart, "values-dev.yaml")}, in.Values...) {
		args = append(args, "-f", p.path(file))
	}
	if err := p.Upgrade(ctx, p.path(in.Chart), args...); err != nil {
		return err
	}
	p.Say("the release is ready, %.0f s after the beginning", time.Since(begin).Seconds())
	return p.seed(ctx)
}

// Uninstall uninstalls everything except the volumes and their keys.
func (p *Platform) Uninstall(ctx context.Context) error { return p.Remove(ctx, keysSecret) }

// path returns a path in the checkout, or an absolute path as it is.
func (p *Platform) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.root, name)
}

// putSecrets creates the Secrets that the datastores and the services read, and stores the keys in a separate Secret.
func (p *Platform) putSecrets(ctx context.Context) error {
	secrets := map[string]map[string]string{
		dataSecret: {"postgres-password": p.Keys.Secret("postgres"), "redis-password": p.Keys.Secret("redis")},
	}
	set, err := p.Source().New()
	if err != nil {
		return err
	}
	for name, values := range set {
		secrets[keyset.SecretName(Release, name)] = values
	}
	if err := p.saveKeys(ctx); err != nil { // first, because the volumes must stay readable
		return err
	}
	for name, values := range secrets {
		if err := p.PutSecret(ctx, name, values); err != nil {
			return err
		}
	}
	return nil
}

func (p *Platform) saveKeys(ctx context.Context) error {
	text, err := json.Marshal(p.Keys)
	if err != nil {
		return err
	}
	return p.PutSecret(ctx, keysSecret, map[string]string{"state.json": string(text)})
}

func (p *Platform) makeDatabases(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	admin, err := p.reachPostgres(ctx)
	if err != nil {
		return err
	}
	all, ctx := errgroup.WithContext(ctx)
	for _, s := range proto.Services() {
		if s.Database {
			all.Go(func() error { return parts.EnsureDatabase(ctx, admin, p.Database(s.Name)) })
		}
	}
	return all.Wait()
}

// reachPostgres returns the administrator's URL from this machine, valid until ctx ends.
func (p *Platform) reachPostgres(ctx context.Context) (string, error) {
	port, err := (&parts.Ports{}).Free(0)
	if err != nil {
		return "", err
	}
	server := parts.Postgres{Port: port, Password: p.Keys.Secret("postgres")}
	return server.URL(), p.Forward(ctx, Release+"-postgres-0", port, 5432)
}

// seed fills the platform through the command-line tools in its pods and through its public API.
func (p *Platform) seed(ctx context.Context) error {
	if err := p.awaitGateway(ctx); err != nil {
		return err
	}
	r, err := p.seeded(ctx)
	if err != nil {
		return err
	}
	if err := p.saveKeys(ctx); err != nil {
		return err
	}
	if err := p.writeEnv(p.env()); err != nil {
		return err
	}
	p.screen.Print(fmt.Sprintf("\n  API  %s/api/v1     Docs  %s/docs     Test key  %s\n  All of it: .run/kind/.run/env     Uninstall: make kind-uninstall\n",
		p.base, p.base, r.TestKey))
	p.screen.Print(r.FirstCall(p.base + "/api/v1"))
	return nil
}

func (p *Platform) seeded(ctx context.Context) (seed.Result, error) {
	tool := func(ctx context.Context, name string, args ...string) ([]byte, error) {
		return p.Kubectl(ctx, nil, append([]string{"exec", "deployment/" + Release + "-" + name, "--", "/service"}, args...)...)
	}
	s := seed.Seeder{Base: p.base + "/api/v1", Tool: tool, State: p.Keys}
	r, err := s.Run(ctx)
	if err != nil {
		return r, fmt.Errorf("seeding: %w", err)
	}
	p.Say("tenants demo and other are seeded")
	return r, nil
}

func (p *Platform) awaitGateway(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := stack.CheckOK(ctx, p.base+"/readyz")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not respond: map the gateway's node port as k8s/kind.yaml does, or set CLUSTER_URL (%w)", p.base, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// env returns the variables that a client needs.
func (p *Platform) env() map[string]string {
	return map[string]string{
		"BASE_URL": p.base + "/api/v1", "LEGACY_BASE_URL": p.base + "/v1", "AUTH_URL": p.base,
		"DEMO_TEST_KEY": p.Keys.Given("key.demo.test"), "DEMO_LIVE_KEY": p.Keys.Given("key.demo.live"),
		"OTHER_TEST_KEY": p.Keys.Given("key.other.test"),
		"OPERATOR_EMAIL": seed.OperatorEmail, "OPERATOR_PASSWORD": seed.OperatorPassword(p.Keys),
		"OAUTH_CLIENT_ID": seed.ClientID(p.Keys), "OAUTH_REDIRECT_URI": seed.RedirectURI,
	}
}

func (p *Platform) writeEnv(vars map[string]string) error {
	dir := filepath.Join(p.root, ".run", "kind", ".run")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return stack.ReplaceFile(filepath.Join(dir, "env"), stack.Lines(vars))
}

// kafkaForward is the port on this machine that Kafka advertises to clients that connect by port forwarding.
const kafkaForward = 19092

// ForwardDatastores forwards ports of this machine to the datastores until ctx ends, and writes their addresses to .run/kind/.run/env.
func (p *Platform) ForwardDatastores(ctx context.Context) error {
	if p.Keys.Given("key.demo.test") == "" {
		return errors.New("the platform is not installed: run `make kind-install`")
	}
	postgres, err := p.reachPostgres(ctx)
	if err != nil {
		return err
	}
	port, err := (&parts.Ports{}).Free(0)
	if err != nil {
		return err
	}
	if err := p.Forward(ctx, Release+"-redis-0", port, 6379); err != nil {
		return err
	}
	if err := p.Forward(ctx, Release+"-kafka-0", kafkaForward, kafkaForward); err != nil {
		return err
	}
	env := p.env()
	env["POSTGRES_URL"] = postgres
	env["REDIS_URL"] = parts.Redis{Port: port, Password: p.Keys.Secret("redis")}.URL()
	env["KAFKA_BROKERS"] = parts.Loopback(kafkaForward)
	if err := p.writeEnv(env); err != nil {
		return err
	}
	p.Say("PostgreSQL, Redis and Kafka are forwarded: .run/kind/.run/env")
	<-ctx.Done()
	return nil
}
