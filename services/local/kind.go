package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"holdfast.dev/libs/keyset"
	"holdfast.dev/proto"

	"holdfast.dev/services/local/internal/cluster"
	"holdfast.dev/services/local/internal/parts"
	"holdfast.dev/services/local/internal/seed"
	"holdfast.dev/services/local/internal/state"
)

const (
	release     = "holdfast" // also the namespace
	keysSecret  = "holdfast-keys"
	dataSecret  = "holdfast-datastores"
	clusterBase = "http://127.0.0.1:30080" // k8s/kind.yaml maps the gateway's port of values-dev
)

// kind is Holdfast in a development cluster. Its keys are in a separate Secret, because the volumes cannot be read without them.
// Everything else can be created again.
type kind struct {
	*cluster.Cluster
	wiring
	screen *console
	root   string // the checkout
	base   string // of the gateway, from this machine
}

// installation is what `kind install` installs. Relative paths are in the checkout.
type installation struct {
	datastores    string // folder of manifests
	chart         string // folder
	tag, registry string // of the images: a registry if the chart has digests
	values        []string
}

func kindCommand() *cobra.Command {
	root := &cobra.Command{Use: "kind", Short: "Run Holdfast in the development cluster of KUBECONFIG"}
	var in installation
	install := &cobra.Command{
		Use: "install", Short: "Install or upgrade the datastores, the Secrets and the chart, and seed demo data", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := openKind(cmd.Context())
			if err != nil {
				return err
			}
			return k.install(cmd.Context(), in)
		},
	}
	install.Flags().StringVar(&in.datastores, "datastores", "k8s/datastores", "folder with the manifests of PostgreSQL, Redis and Kafka")
	install.Flags().StringVar(&in.chart, "chart", "charts/platform", "folder of the chart, with its values-dev.yaml")
	install.Flags().StringVar(&in.tag, "tag", "dev", "tag of the images")
	install.Flags().StringVar(&in.registry, "registry", "", "registry of a release, whose chart has the digests of its images; replaces the tag")
	install.Flags().StringArrayVar(&in.values, "values", nil, "values files in addition to values-dev.yaml")
	forward := &cobra.Command{
		Use: "forward", Short: "Forward the datastores to this machine until Ctrl-C, and write .run/kind/.run/env", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := openKind(cmd.Context())
			if err != nil {
				return err
			}
			return k.forward(cmd.Context())
		},
	}
	uninstall := &cobra.Command{
		Use: "uninstall", Short: "Uninstall everything except the volumes and their keys", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := openKind(cmd.Context())
			if err != nil {
				return err
			}
			return k.Remove(cmd.Context(), release, keysSecret)
		},
	}
	check := &cobra.Command{
		Use: "check", Short: "Check that the cluster meets the requirements of make kind-test", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := cluster.Open(cmd.Context(), release, func(string, ...any) {})
			if err != nil {
				return err
			}
			return c.Testable(cmd.Context())
		},
	}
	root.AddCommand(check, install, forward, uninstall)
	return root
}

func openKind(ctx context.Context) (*kind, error) {
	root, err := checkout()
	if err != nil {
		return nil, err
	}
	screen := newConsole(os.Stdout, "")
	c, err := cluster.Open(ctx, release, screen.say)
	if err != nil {
		return nil, err
	}
	k := &kind{Cluster: c, screen: screen, root: root, base: cmp.Or(os.Getenv("CLUSTER_URL"), clusterBase)}
	stored, err := c.Secret(ctx, keysSecret, "state.json")
	if err != nil {
		return nil, err
	}
	k.keys = state.Memory()
	if stored != nil {
		if err := json.Unmarshal(stored, k.keys); err != nil {
			return nil, fmt.Errorf("secret %s is damaged: %w", keysSecret, err)
		}
	}
	k.prefix = defaultPrefix
	k.postgresURL = parts.Postgres{Host: release + "-postgres:5432", Password: k.keys.Secret("postgres")}.URL()
	k.redisURL = parts.Redis{Host: release + "-redis:6379", Password: k.keys.Secret("redis")}.URL()
	return k, nil
}

func (k *kind) install(ctx context.Context, in installation) error {
	begin := time.Now()
	if err := k.MakeNamespace(ctx); err != nil {
		return err
	}
	if err := k.putSecrets(ctx); err != nil {
		return err
	}
	if err := k.StartDatastores(ctx, k.path(in.datastores)); err != nil {
		return err
	}
	k.Say("PostgreSQL, Redis and Kafka are ready")
	if err := k.makeDatabases(ctx); err != nil {
		return err
	}
	k.Say("databases are there; the chart's Jobs migrate them")
	args := []string{"--set", "defaults.image.tag=" + in.tag}
	if in.registry != "" {
		args = []string{"--set", "defaults.image.registry=" + in.registry}
	}
	for _, file := range append([]string{filepath.Join(in.chart, "values-dev.yaml")}, in.values...) {
		args = append(args, "-f", k.path(file))
	}
	if err := k.Release(ctx, release, k.path(in.chart), args...); err != nil {
		return err
	}
	k.Say("the release is ready, %.0f s after the beginning", time.Since(begin).Seconds())
	return k.seed(ctx)
}

// path returns a path in the checkout, or an absolute path as it is.
func (k *kind) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(k.root, name)
}

// putSecrets creates the Secrets that the datastores and the services read, and stores the keys in a separate Secret.
func (k *kind) putSecrets(ctx context.Context) error {
	secrets := map[string]map[string]string{
		dataSecret: {"postgres-password": k.keys.Secret("postgres"), "redis-password": k.keys.Secret("redis")},
	}
	set, err := k.source().New()
	if err != nil {
		return err
	}
	for name, values := range set {
		secrets[keyset.SecretName(release, name)] = values
	}
	if err := k.saveKeys(ctx); err != nil { // first, because the volumes must stay readable
		return err
	}
	for name, values := range secrets {
		if err := k.PutSecret(ctx, name, values); err != nil {
			return err
		}
	}
	return nil
}

func (k *kind) saveKeys(ctx context.Context) error {
	text, err := json.Marshal(k.keys)
	if err != nil {
		return err
	}
	return k.PutSecret(ctx, keysSecret, map[string]string{"state.json": string(text)})
}

func (k *kind) makeDatabases(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	admin, err := k.reachPostgres(ctx)
	if err != nil {
		return err
	}
	all, ctx := errgroup.WithContext(ctx)
	for _, s := range proto.Services() {
		if s.Database {
			all.Go(func() error { return parts.EnsureDatabase(ctx, admin, k.database(s.Name)) })
		}
	}
	return all.Wait()
}

// reachPostgres returns the administrator's URL from this machine, valid until ctx ends.
func (k *kind) reachPostgres(ctx context.Context) (string, error) {
	port, err := (&parts.Ports{}).Free(0)
	if err != nil {
		return "", err
	}
	p := parts.Postgres{Port: port, Password: k.keys.Secret("postgres")}
	return p.URL(), k.Forward(ctx, release+"-postgres-0", port, 5432)
}

// seed fills the platform through the command-line tools in its pods and through its public API.
func (k *kind) seed(ctx context.Context) error {
	if err := k.awaitGateway(ctx); err != nil {
		return err
	}
	r, err := k.seeded(ctx)
	if err != nil {
		return err
	}
	if err := k.saveKeys(ctx); err != nil {
		return err
	}
	if err := k.writeEnv(k.env()); err != nil {
		return err
	}
	k.screen.print(fmt.Sprintf("\n  API  %s/api/v1     Docs  %s/docs     Test key  %s\n  All of it: .run/kind/.run/env     Uninstall: make kind-uninstall\n",
		k.base, k.base, r.TestKey))
	k.screen.print(firstCall(k.base+"/api/v1", r))
	return nil
}

func (k *kind) seeded(ctx context.Context) (seed.Result, error) {
	tool := func(ctx context.Context, name string, args ...string) ([]byte, error) {
		return k.Kubectl(ctx, nil, append([]string{"exec", "deployment/" + release + "-" + name, "--", "/service"}, args...)...)
	}
	s := seed.Seeder{Base: k.base + "/api/v1", Tool: tool, State: k.keys}
	r, err := s.Run(ctx)
	if err != nil {
		return r, fmt.Errorf("seeding: %w", err)
	}
	k.Say("tenants demo and other are seeded")
	return r, nil
}

func (k *kind) awaitGateway(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := checkOK(ctx, k.base+"/readyz")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not respond: map the gateway's node port as k8s/kind.yaml does, or set CLUSTER_URL (%w)", k.base, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// env returns the variables that a client needs.
func (k *kind) env() map[string]string {
	return map[string]string{
		"BASE_URL": k.base + "/api/v1", "LEGACY_BASE_URL": k.base + "/v1", "AUTH_URL": k.base,
		"DEMO_TEST_KEY": k.keys.Given("key.demo.test"), "DEMO_LIVE_KEY": k.keys.Given("key.demo.live"),
		"OTHER_TEST_KEY": k.keys.Given("key.other.test"),
		"OPERATOR_EMAIL": seed.OperatorEmail, "OPERATOR_PASSWORD": seed.OperatorPassword(k.keys),
		"OAUTH_CLIENT_ID": seed.ClientID(k.keys), "OAUTH_REDIRECT_URI": seed.RedirectURI,
	}
}

func (k *kind) writeEnv(vars map[string]string) error {
	dir := filepath.Join(k.root, ".run", "kind", ".run")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return replaceFile(filepath.Join(dir, "env"), lines(vars))
}

// kafkaForward is the port on this machine that Kafka advertises to clients that connect by port forwarding.
const kafkaForward = 19092

// forward forwards ports of this machine to the datastores and prints their addresses.
func (k *kind) forward(ctx context.Context) error {
	if k.keys.Given("key.demo.test") == "" {
		return errors.New("the platform is not installed: run `make kind-install`")
	}
	postgres, err := k.reachPostgres(ctx)
	if err != nil {
		return err
	}
	port, err := (&parts.Ports{}).Free(0)
	if err != nil {
		return err
	}
	if err := k.Forward(ctx, release+"-redis-0", port, 6379); err != nil {
		return err
	}
	if err := k.Forward(ctx, release+"-kafka-0", kafkaForward, kafkaForward); err != nil {
		return err
	}
	env := k.env()
	env["POSTGRES_URL"] = postgres
	env["REDIS_URL"] = parts.Redis{Port: port, Password: k.keys.Secret("redis")}.URL()
	env["KAFKA_BROKERS"] = parts.Loopback(kafkaForward)
	if err := k.writeEnv(env); err != nil {
		return err
	}
	k.Say("PostgreSQL, Redis and Kafka are forwarded: .run/kind/.run/env")
	<-ctx.Done()
	return nil
}
