package e2e

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"holdfast.dev/services/local/internal/cluster"
	"holdfast.dev/services/local/internal/cluster/clustertest"
)

// openCluster is the platform in a cluster; folder is the one that `local kind forward` keeps, with the command lines
// in its bin/.
func openCluster(folder string) (*platform, error) {
	c, err := cluster.Open(context.Background(), "holdfast", func(string, ...any) {})
	if err != nil {
		return nil, err
	}
	env, err := readEnv(filepath.Join(folder, ".run", "env"))
	return &platform{root: folder, env: env, cluster: c}, err
}

// onMachine leaves a test out in a cluster.
func onMachine(t *testing.T) {
	t.Helper()
	if shared.cluster != nil {
		t.Skip("about `make up`, not about a cluster")
	}
}

// signalPods reaches the process of each pod; one that is killed comes back in another pod.
func (p *platform) signalPods(t *testing.T, process string, sig syscall.Signal) {
	t.Helper()
	var pods []clustertest.Pod
	await(t, process+" runs", func() bool {
		var err error
		if pods, err = clustertest.Pods(t.Context(), p.cluster, process); err != nil || len(pods) == 0 {
			return false
		}
		for _, pod := range pods {
			if !pod.Ready && !pod.Ending {
				return false
			}
		}
		return true
	})
	if sig == syscall.SIGKILL {
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

// receivers is the address at which the platform reaches servers of this test.
var receivers = cmp.Or(os.Getenv("HOLDFAST_RECEIVERS"), "127.0.0.1")
