package e2e

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"holdfast.dev/services/local/internal/cluster"
	"holdfast.dev/services/local/internal/cluster/clustertest"
)

// openCluster returns the platform in a cluster. `local kind forward` maintains folder, with the command-line tools in its bin/.
func openCluster(folder string) (*platform, error) {
	c, err := cluster.Open(context.Background(), func(string, ...any) {})
	if err != nil {
		return nil, err
	}
	env, err := readEnv(filepath.Join(folder, ".run", "env"))
	return &platform{root: folder, env: env, cluster: c}, err
}

// onMachine skips a test that cannot run against a cluster.
func onMachine(t *testing.T) {
	t.Helper()
	if shared.cluster != nil {
		t.Skip("about `make up`, not about a cluster")
	}
}

// signalPods signals the process of each pod. A killed pod is replaced.
func (p *platform) signalPods(t *testing.T, process string, sig syscall.Signal) {
	t.Helper()
	pods := p.pods(t, process)
	if sig == syscall.SIGKILL {
		t.Cleanup(func() { p.pods(t, process) }) // so that it is running for the next test
		if err := clustertest.Kill(t.Context(), p.cluster, pods...); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, pod := range pods {
		if err := clustertest.Signal(t.Context(), pod, sig); err != nil {
			t.Fatal(err)
		}
	}
}

// pods waits until all remaining pods of a service are ready.
func (p *platform) pods(t *testing.T, process string) (pods []clustertest.Pod) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // also during the cleanup of a test
	await(t, process+" runs", func() bool {
		all, err := clustertest.Pods(ctx, p.cluster, process)
		pods = slices.DeleteFunc(all, func(pod clustertest.Pod) bool { return pod.Ending })
		away := slices.ContainsFunc(pods, func(pod clustertest.Pod) bool { return !pod.Ready })
		return err == nil && len(pods) > 0 && !away
	})
	return pods
}

// ended waits until no pod of a service is terminating. Until then, its Service can still route connections there. Outside a
// cluster, a killed process has already ended.
func (p *platform) ended(t *testing.T, process string) {
	t.Helper()
	if p.cluster == nil {
		return
	}
	await(t, process+" has ended", func() bool {
		all, err := clustertest.Pods(t.Context(), p.cluster, process)
		return err == nil && !slices.ContainsFunc(all, func(pod clustertest.Pod) bool { return pod.Ending })
	})
}

// metrics returns the metrics of each of a service's processes.
func (p *platform) metrics(t *testing.T, service string) []string {
	t.Helper()
	if p.cluster == nil {
		env, err := readEnv(p.path("services", service+".env"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := httpClient.Get("http://" + env["METRICS_ADDR"] + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return []string{string(text)}
	}
	pods, err := clustertest.Pods(t.Context(), p.cluster, service)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, pod := range pods {
		text, err := clustertest.Inside(t.Context(), pod, "curl -sf http://127.0.0.1:9090/metrics")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	return all
}

// receivers is the address at which the platform reaches this test's servers.
var receivers = cmp.Or(os.Getenv("HOLDFAST_RECEIVERS"), "127.0.0.1")
