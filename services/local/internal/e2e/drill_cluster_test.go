package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/proto"

	"holdfast.dev/services/local/internal/cluster"
	"holdfast.dev/services/local/internal/cluster/clustertest"
	"holdfast.dev/services/local/internal/parts"
	"holdfast.dev/services/local/internal/supervise"
)

// datastores are the StatefulSets of k8s/datastores, without the prefix of their names.
var datastores = []string{"postgres", "redis", "kafka"}

// clusterSite is the platform of `make kind-install`. Its archive and base backup are on PostgreSQL's volume, next to the data folder. A
// Stripe stand-in runs on this machine, and survives.
type clusterSite struct {
	p         *platform
	config    string // KUBECONFIG, with the namespace
	password  string // of PostgreSQL's administrator
	down      bool   // the datastores have no pods; the pod of drillPod has their volumes
	empty     bool   // PostgreSQL's data is deleted and not yet restored
	unforward context.CancelFunc
}

// clusterArchiveTimeout bounds how long a commit is not archived. Each segment has 16 MB.
const clusterArchiveTimeout = 5 * time.Second

func newClusterSite(t *testing.T) *clusterSite {
	t.Helper()
	s := &clusterSite{p: shared, config: filepath.Join(t.TempDir(), "kubeconfig")}
	if err := os.WriteFile(s.config, []byte(s.kubectl(t, "config", "view", "--minify", "--flatten")), 0o600); err != nil {
		t.Fatal(err)
	}
	s.page(t, "kubectl config set-context --current --namespace="+cluster.Release)
	password, err := s.p.cluster.Secret(t.Context(), "holdfast-datastores", "postgres-password")
	if err != nil || len(password) == 0 {
		t.Fatalf("PostgreSQL's password: %v", err)
	}
	s.password = string(password)
	s.resume(t)
	s.archive(t)
	s.startStripe(t)
	if out, err := s.p.cluster.RunHelm(t.Context(), "test", "holdfast"); err != nil { // its pod remains, as after an installation
		t.Fatalf("helm test: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		s.finish(t)
		s.resume(t)
	})
	return s
}

// resume starts what is stopped, such as after a drill that failed.
func (s *clusterSite) resume(t *testing.T) {
	t.Helper()
	if s.empty {
		t.Fatal("PostgreSQL has no data: run make kind-down")
	}
	if s.down {
		s.startDatastores(t)
	}
	if _, err := os.Stat(filepath.Join(s.p.root, "replicas")); err == nil {
		s.start(t)
	}
}

// kubectl runs kubectl, also during the cleanup of a test, and returns its output.
func (s *clusterSite) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.p.cluster.Kubectl(context.WithoutCancel(t.Context()), nil, args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// page runs commands of the page as its reader does, in the namespace of the release.
func (s *clusterSite) page(t *testing.T, script string) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = s.p.root, append(os.Environ(), "KUBECONFIG="+s.config)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, script, out)
	}
}

// prelude defines `repair` and `ledger` for pods.
func (s *clusterSite) prelude(section []string) string {
	return "export KUBECONFIG=" + s.config + "\n" + section[0] + section[6]
}

// archive lets PostgreSQL archive its WAL until the test ends.
func (s *clusterSite) archive(t *testing.T) {
	t.Helper()
	s.forward(t)
	t.Cleanup(func() {
		s.unforward()
		s.forward(t)
		s.alter(t, "reset all")
		s.restart(t)
		s.shell(t, "rm -rf $BACKUPS")
		s.unforward()
	})
	s.shell(t, "rm -rf $BACKUPS && mkdir $BACKUPS")
	s.alter(t, "set archive_mode = on", fmt.Sprintf("set archive_timeout = %d", int(clusterArchiveTimeout.Seconds())),
		fmt.Sprintf("set archive_command = 'test ! -f %[1]s/%%f && cp %%p %[1]s/%%f.part && mv %[1]s/%%f.part %[1]s/%%f'", clusterBackups))
	s.restart(t)
}

func (s *clusterSite) alter(t *testing.T, changes ...string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, s.p.env["POSTGRES_URL"])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, change := range changes {
		if _, err := conn.Exec(ctx, "alter system "+change); err != nil {
			t.Fatal(err)
		}
	}
}

// restart replaces PostgreSQL's pod, and waits until all services are ready again.
func (s *clusterSite) restart(t *testing.T) {
	t.Helper()
	s.unforward()
	s.kubectl(t, "delete", "pod", "holdfast-postgres-0")
	s.kubectl(t, "rollout", "status", "statefulset/holdfast-postgres", "--timeout=120s")
	s.forward(t)
	s.ready(t)
}

// ready waits until all pods of the services are ready.
func (s *clusterSite) ready(t *testing.T) {
	t.Helper()
	for _, name := range proto.ServiceNames() {
		s.kubectl(t, "rollout", "status", "deployment/holdfast-"+name, "--timeout=180s")
	}
}

// forward connects a port of this machine to PostgreSQL.
func (s *clusterSite) forward(t *testing.T) {
	t.Helper()
	var ctx context.Context
	ctx, s.unforward = context.WithCancel(context.WithoutCancel(t.Context()))
	port := freePort(t)
	if err := s.p.cluster.Forward(ctx, "holdfast-postgres-0", port, 5432); err != nil {
		t.Fatal(err)
	}
	s.p.env["POSTGRES_URL"] = parts.Postgres{Port: port, Password: s.password}.URL()
}

// startStripe starts a Stripe stand-in at an address that pods reach, and lets payments use it until the test ends.
func (s *clusterSite) startStripe(t *testing.T) {
	t.Helper()
	address := net.JoinHostPort(receivers, strconv.Itoa(freePort(t)))
	settings := []string{
		"LOCAL_STRIPE_HTTP_ADDR=" + address, "LOCAL_STRIPE_ALLOW_ANY_ADDR=true", "LOCAL_STRIPE_DATA_DIR=" + t.TempDir(),
		"LOCAL_STRIPE_CONTROL_TOKEN=" + unique("control"), "LOCAL_STRIPE_TEST_SECRET_KEY=" + unique("sk_test_drill"),
		"LOCAL_STRIPE_TEST_PUBLISHABLE_KEY=" + unique("pk_test_drill"),
	}
	for _, folder := range []string{"services", "pids"} {
		if err := os.MkdirAll(s.p.path(folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := s.p.command("local-stripe", "serve")
	cmd.Env = append(cmd.Env, settings...)
	cmd.SysProcAttr = supervise.Attached()
	if err := supervise.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = errors.Join(os.Remove(s.p.path("services", "stripe.env")), os.Remove(s.p.path("pids", "stripe")))
	})
	for file, text := range map[string]string{"services/stripe.env": strings.Join(settings, "\n"), "pids/stripe": strconv.Itoa(cmd.Process.Pid)} {
		if err := os.WriteFile(s.p.path(file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.p.env["STRIPE_URL"] = "http://" + address
	s.p.env["STRIPE_PUBLISHABLE_KEY"] = settingOf(t, s.p.path("services", "stripe.env"), "LOCAL_STRIPE_TEST_PUBLISHABLE_KEY")
	s.upgrade(t, address)
}

// upgrade lets payments use the stand-in, until the test ends.
func (s *clusterSite) upgrade(t *testing.T, address string) {
	t.Helper()
	const chart = "../../../../charts/platform"
	values, err := s.p.cluster.RunHelm(t.Context(), "get", "values", "holdfast", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	before := filepath.Join(t.TempDir(), "values.json")
	if err := os.WriteFile(before, values, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.p.cluster.Upgrade(context.WithoutCancel(t.Context()), chart, "--reset-values", "-f", before); err != nil {
			t.Error(err)
		}
	})
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	err = s.p.cluster.Upgrade(t.Context(), chart, "--reset-values", "-f", before,
		"--set-string", "services.payments.env.STRIPE_URL=http://"+address, "--set-string", "services.payments.env.RECONCILE_GRACE=1s",
		"--set-json", fmt.Sprintf(`networks.gateways={"peers":[{"ipBlock":{"cidr":"%s/32"}}],"ports":[{"port":%s}]}`, host, port))
	if err != nil {
		t.Fatal(err)
	}
}

// client creates a tenant for the drill, and connects it to the stand-in until the test ends.
func (s *clusterSite) client(t *testing.T) *client {
	t.Helper()
	var tenant struct{ ID string }
	var key struct{ Secret string }
	s.identity(t, &tenant, "tenant", "create", "--slug", unique("drill"), "--name", "Drill", "--timezone", "UTC", "--currency", "USD", "--json")
	s.identity(t, &key, "key", "create", "--tenant", tenant.ID, "--mode", "test", "--scopes", "all", "--json")
	s.p.connect(t, tenant.ID, settingOf(t, s.p.path("services", "stripe.env"), "LOCAL_STRIPE_TEST_SECRET_KEY"), s.p.env["STRIPE_PUBLISHABLE_KEY"])
	t.Cleanup(func() {
		s.resume(t)
		s.kubectl(t, "exec", "deployment/holdfast-payments", "--", "/service", "gateway", "disconnect", "--tenant", tenant.ID)
	})
	return s.p.with(t, key.Secret)
}

// identity runs a command of identity in its pod.
func (s *clusterSite) identity(t *testing.T, out any, args ...string) {
	t.Helper()
	text := s.kubectl(t, append([]string{"exec", "deployment/holdfast-identity", "--", "/service"}, args...)...)
	if err := json.Unmarshal([]byte(text), out); err != nil {
		t.Fatalf("identity %v: %v\n%s", args, err, text)
	}
}

const (
	clusterBackups = "/data/backups"
	drillPod       = "drill"
)

// shell runs commands in PostgreSQL's pod or, while it has none, in the pod of the drill.
func (s *clusterSite) shell(t *testing.T, script string, variables ...string) string {
	t.Helper()
	pod := "holdfast-postgres-0"
	if s.down {
		pod = drillPod
	}
	var begin strings.Builder
	begin.WriteString("export PATH=/usr/lib/postgresql/15/bin:$PATH BACKUPS=" + clusterBackups + "\n" +
		"export POSTGRES_URL=postgres://postgres:$(cat /secrets/postgres-password)@127.0.0.1/postgres\n")
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		fmt.Fprintf(&begin, "export %s='%s'\n", name, value)
	}
	return s.kubectl(t, "exec", pod, "--", "bash", "-euc", begin.String()+script)
}

// kill ends the processes in all pods immediately, and lets no new ones start. As the page says, it stops the services.
func (s *clusterSite) kill(t *testing.T) time.Time {
	t.Helper()
	var pods []clustertest.Pod
	for _, name := range slices.Concat(proto.ServiceNames(), datastores) {
		found, err := clustertest.Pods(t.Context(), s.p.cluster, name)
		if err != nil || len(found) == 0 {
			t.Fatalf("pods of %s: %v, %v", name, found, err)
		}
		pods = append(pods, found...)
	}
	if err := clustertest.KillAll(t.Context(), pods...); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	s.unforward()
	s.down = true
	s.scale(t, 0)
	s.page(t, commands(t, "Repair")[4])
	s.kubectl(t, "wait", "pods", "-l", "app.kubernetes.io/name in ("+strings.Join(datastores, ",")+")", "--for=delete", "--timeout=120s")
	s.runDrillPod(t)
	return killed
}

// scale starts or ends the pods of the datastores.
func (s *clusterSite) scale(t *testing.T, replicas int) {
	t.Helper()
	args := []string{"scale", "--replicas=" + strconv.Itoa(replicas)}
	for _, name := range datastores {
		args = append(args, "statefulset/holdfast-"+name)
	}
	s.kubectl(t, args...)
}

// runDrillPod runs a pod with PostgreSQL's programs and the volumes of the datastores.
func (s *clusterSite) runDrillPod(t *testing.T) {
	t.Helper()
	image := s.kubectl(t, "get", "statefulset", "holdfast-postgres", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	manifest := fmt.Sprintf(`{ apiVersion: v1, kind: Pod, metadata: { name: %[1]s, labels: { app.kubernetes.io/name: %[1]s } }, spec: {
  nodeSelector: { node-role.kubernetes.io/control-plane: "" }, tolerations: [{ operator: Exists }], terminationGracePeriodSeconds: 0,
  automountServiceAccountToken: false, securityContext: { runAsNonRoot: true, runAsUser: 999, runAsGroup: 999, fsGroup: 999, seccompProfile: { type: RuntimeDefault } },
  containers: [{ name: drill, image: %[2]q, command: [sleep, infinity], securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: [ALL] } },
    volumeMounts: [{ name: postgres, mountPath: /data }, { name: redis, mountPath: /redis }, { name: kafka, mountPath: /kafka }, { name: secrets, mountPath: /secrets }] }],
  volumes: [{ name: postgres, persistentVolumeClaim: { claimName: data-holdfast-postgres-0 } }, { name: redis, persistentVolumeClaim: { claimName: data-holdfast-redis-0 } },
    { name: kafka, persistentVolumeClaim: { claimName: data-holdfast-kafka-0 } }, { name: secrets, secret: { secretName: holdfast-datastores } }] } }`, drillPod, image)
	if _, err := s.p.cluster.Kubectl(t.Context(), []byte(manifest), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	s.kubectl(t, "wait", "--for=condition=Ready", "pod/"+drillPod, "--timeout=60s")
}

// restore starts the datastores. Databases with an earlier moment come from further servers in PostgreSQL's pod.
func (s *clusterSite) restore(t *testing.T, moment time.Time, earlier map[string]time.Time, retainKafka bool) {
	t.Helper()
	lost := "rm -rf /data/postgres /redis/*"
	if !retainKafka {
		lost += " /kafka/*"
	}
	s.empty = true
	s.shell(t, lost)
	restore := commands(t, "Restore")[1]
	s.shell(t, restore, "RESTORED=/data/postgres", "MOMENT="+momentText(moment))
	s.startDatastores(t)
	s.empty = false
	s.forward(t)
	s.shell(t, awaitPromotion+`promoted "$POSTGRES_URL"`)
	for service, moment := range earlier {
		s.shell(t, restore+awaitPromotion+takeDatabase, "RESTORED=/data/"+unique(service), "MOMENT="+momentText(moment), "DATABASE=holdfast_"+service)
	}
	s.page(t, commands(t, "Repair")[5])
}

func (s *clusterSite) startDatastores(t *testing.T) {
	t.Helper()
	s.kubectl(t, "delete", "pod", "--ignore-not-found", drillPod)
	s.scale(t, 1)
	for _, name := range datastores {
		s.kubectl(t, "rollout", "status", "statefulset/holdfast-"+name, "--timeout=180s")
	}
	s.down = false
}

const (
	// awaitPromotion defines a function that waits up to two minutes until a server has ended its recovery.
	awaitPromotion = `promoted() {
	for i in $(seq 600); do [ "$(psql "$1" -Atc 'select pg_is_in_recovery()' 2>&1)" = f ] && return; sleep 0.2; done
	echo "PostgreSQL has not ended its recovery" >&2; return 1
}
`
	// takeDatabase replaces DATABASE by the one of the server in RESTORED.
	takeDatabase = `postgres -D "$RESTORED" -c port=5433 -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=400 \
	-c archive_mode=off -c fsync=off > "$RESTORED.log" 2>&1 &
older=${POSTGRES_URL/127.0.0.1/127.0.0.1:5433}
promoted "$older"
pg_dump --format=custom --file="$RESTORED.dump" --dbname="${older%/postgres}/$DATABASE"
pg_restore --clean --create --exit-on-error --dbname="$POSTGRES_URL" "$RESTORED.dump"
kill -QUIT $! && { wait $! || true; }
rm -rf "$RESTORED" "$RESTORED.dump" "$RESTORED.log"
`
)

// start starts the services.
func (s *clusterSite) start(t *testing.T) {
	t.Helper()
	s.page(t, commands(t, "Repair")[7])
	s.ready(t)
}

// finish deletes the pods of the repair.
func (s *clusterSite) finish(t *testing.T) {
	t.Helper()
	s.kubectl(t, "delete", "pods", "-l", "app.kubernetes.io/name=repair")
}
