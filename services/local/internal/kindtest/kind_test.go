// Package kindtest tests the platform in a cluster: upgrades, killed pods, drained nodes, and policies. `make kind-test` runs it
// against the platform that `make kind-install` installed.
package kindtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/proto"
	"holdfast.dev/services/local/internal/cluster"
	"holdfast.dev/services/local/internal/cluster/clustertest"
)

const (
	namespace = "holdfast" // also the release
	root      = "../../../.."
)

var (
	lab  *cluster.Cluster
	base string // …/api/v1

	installOptions = os.Getenv("KIND_INSTALL") // of `local kind install`

	services = proto.ServiceNames()
)

func TestMain(m *testing.M) {
	if os.Getenv(overloadMode) != "" {
		if err := serveOverload(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	folder := os.Getenv("HOLDFAST_CLUSTER")
	if folder == "" {
		fmt.Println("HOLDFAST_CLUSTER is not set: these tests need a cluster and run by `make kind-test`")
		return
	}
	if err := open(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func open(folder string) (err error) {
	if lab, err = cluster.Open(context.Background(), func(string, ...any) {}); err != nil {
		return err
	}
	if err := lab.Testable(context.Background()); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(folder, ".run", "env"))
	if err != nil {
		return fmt.Errorf("%w: run `make kind-install`", err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "BASE_URL="); ok {
			base = value
		}
	}
	base, err = nodeURL(base)
	return err
}

// nodeURL returns the address of a node in place of the published port at which the gateway is reached, if the node can be reached. The
// proxy of a published port accepts a connection before it connects to the node, so a client cannot tell a connection that the cluster
// refused, and repeat it, from one that ended.
func nodeURL(published string) (string, error) {
	ctx := context.Background()
	node, err := lab.Kubectl(ctx, nil, "get", "nodes", "-o", `jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}`)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(published)
	if err != nil {
		return "", fmt.Errorf("BASE_URL: %w", err)
	}
	u.Host = net.JoinHostPort(string(node), u.Port())
	conn, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return published, nil //nolint:nilerr // for example, nodes in a virtual machine
	}
	return u.String(), conn.Close()
}

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := lab.Kubectl(context.WithoutCancel(t.Context()), nil, args...) // also during the cleanup of a test
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// upgrade changes values of the release and waits until it is ready.
func upgrade(t *testing.T, values ...string) error {
	t.Helper()
	args := []string{"--reuse-values"}
	for _, v := range values {
		flag := "--set"
		if strings.Contains(v, ".env.") { // settings must be strings
			flag = "--set-string"
		}
		args = append(args, flag, v)
	}
	return lab.Upgrade(context.WithoutCancel(t.Context()), filepath.Join(root, "charts/platform"), args...)
}

// local runs bin/local as `make` does.
func local(t *testing.T, args ...string) {
	t.Helper()
	bin, err := filepath.Abs(filepath.Join(root, "bin/local"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), bin, args...).CombinedOutput(); err != nil {
		t.Fatalf("local %v: %v\n%s", args, err, out)
	}
}

// settled waits until a deployment has that many ready pods of its newest version, and no others.
func settled(t *testing.T, service string) {
	t.Helper()
	kubectl(t, "rollout", "status", "deployment/holdfast-"+service, "--timeout=180s")
	await(t, service+"'s old pods have gone", 90*time.Second, func() bool {
		for _, pod := range pods(t, service) {
			if pod.Ending || !pod.Ready {
				return false
			}
		}
		return true
	})
}

func pods(t *testing.T, service string) []clustertest.Pod {
	t.Helper()
	found, err := clustertest.Pods(t.Context(), lab, service)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// key creates an API key of a new tenant, with the command-line tool in identity's pod.
func key(t *testing.T) string {
	t.Helper()
	slug := fmt.Sprintf("kind-%d", time.Now().UnixNano())
	identity(t, "tenant", "create", "--slug", slug, "--name", "Kind", "--timezone", "Europe/Berlin", "--currency", "EUR")
	var created struct{ Secret string }
	if err := json.Unmarshal([]byte(identity(t, "key", "create", "--tenant", slug, "--mode", "test", "--scopes", "all", "--json")), &created); err != nil {
		t.Fatal(err)
	}
	return created.Secret
}

// identity runs a command of identity in its pod, and returns its output.
func identity(t *testing.T, args ...string) string {
	t.Helper()
	return kubectl(t, append([]string{"exec", "deployment/holdfast-identity", "--", "/service"}, args...)...)
}

// query runs a statement in the database of a service, and returns its output.
func query(t *testing.T, service, statement string) string {
	t.Helper()
	out, err := lab.Kubectl(t.Context(), []byte(statement), "exec", "-i", "statefulset/holdfast-postgres", "--",
		"sh", "-c", `PGPASSWORD=$(cat /secrets/postgres-password) /usr/lib/postgresql/15/bin/psql -qtAX --set=ON_ERROR_STOP=1 -h 127.0.0.1 -U postgres holdfast_`+service)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func await(t *testing.T, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(500 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// TestServerAcceptsTheCharts checks in a dry run that Kubernetes accepts all objects of both kinds of values.
func TestServerAcceptsTheCharts(t *testing.T) {
	for _, values := range []string{"values-dev.yaml", "values-production.yaml"} {
		args := []string{"template", namespace, filepath.Join(root, "charts/platform"), "-f", filepath.Join(root, "charts/platform", values), "--no-hooks", "--kube-version", "1.34.0"}
		if values == "values-production.yaml" { // without its placeholders, and without kinds of operators that are not installed here
			args = append(args, "-f", filepath.Join(root, "charts/testdata/values/site/production.yaml"), "--set", "prometheusRule.enabled=false,defaults.serviceMonitor.enabled=false")
		}
		rendered, err := lab.RunHelm(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		out, err := lab.Kubectl(t.Context(), rendered, "apply", "--dry-run=server", "-f", "-")
		if err != nil {
			t.Fatalf("%s: %v", values, err)
		}
		t.Logf("%s: %d objects", values, strings.Count(string(out), "\n"))
	}
}

// TestGatewaysShareTheRateLimit checks that three gateways share one rate limit.
func TestGatewaysShareTheRateLimit(t *testing.T) {
	secret := key(t)
	if err := upgrade(t, "services.gateway.replicas=3", "services.gateway.env.RATE_LIMIT_PER_MINUTE=600"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := upgrade(t, "services.gateway.replicas=2", "services.gateway.env.RATE_LIMIT_PER_MINUTE=1000000"); err != nil {
			t.Error(err)
		}
	})
	settled(t, "gateway")
	before := map[string]string{}
	for _, pod := range pods(t, "gateway") {
		before[pod.Name] = responseCounts(t, pod)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second} // each request can reach a different gateway
	begin := time.Now()
	for n := 1; n <= 605; n++ {
		status, err := fetchStatus(t.Context(), client, call{method: http.MethodGet, path: "/me", key: secret})
		if want := map[bool]int{true: http.StatusOK, false: http.StatusTooManyRequests}[n <= 600]; err != nil || status != want {
			t.Fatalf("request %d after %v: %d %v, want %d", n, time.Since(begin), status, err, want)
		}
	}
	for _, pod := range pods(t, "gateway") {
		if now := responseCounts(t, pod); now == before[pod.Name] {
			t.Errorf("%s has sent no response", pod.Name)
		}
	}
	t.Logf("605 requests in %v", time.Since(begin).Round(time.Millisecond))
}

// responseCounts returns the gateway's own count of responses, from its metrics.
func responseCounts(t *testing.T, pod clustertest.Pod) string {
	t.Helper()
	text, err := clustertest.Inside(t.Context(), pod, "curl -sf http://127.0.0.1:9090/metrics")
	if err != nil {
		t.Fatal(err)
	}
	var counts []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "http_request_duration_seconds_count") && strings.Contains(line, "/me") {
			counts = append(counts, line)
		}
	}
	return strings.Join(counts, "")
}

// TestBookingsScalesUpAndDown checks that load on bookings adds pods, and that they are removed after the load. It fails if a number of pods is
// not reached in time, or a request fails meanwhile.
func TestBookingsScalesUpAndDown(t *testing.T) {
	two := func() bool { return len(pods(t, "bookings")) == 2 }
	await(t, "bookings has two pods", 3*time.Minute, two)
	load := send(t, 150, key(t), readBookings)
	begin := time.Now()
	await(t, "bookings has more than two pods", 4*time.Minute, func() bool { return len(pods(t, "bookings")) > 2 })
	up := time.Since(begin)
	await(t, "all of them are ready", 2*time.Minute, func() bool {
		return !slices.ContainsFunc(pods(t, "bookings"), func(p clustertest.Pod) bool { return !p.Ready })
	})
	load.stop().none(t, "while bookings grew")
	begin = time.Now()
	await(t, "bookings has two pods again", 5*time.Minute, two)
	t.Logf("more after %v, two again %v after the load", up.Round(time.Second), time.Since(begin).Round(time.Second))
}
