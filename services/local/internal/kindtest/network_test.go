package kindtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/proto"
	"holdfast.dev/services/local/internal/cluster/clustertest"
)

// ports are the ports of each pod.
var ports = func() map[string][]int {
	all := map[string][]int{"postgres": {5432}, "redis": {6379}, "kafka": {9092}}
	for _, name := range services {
		all[name] = []int{8080, 9090}
	}
	return all
}()

// TestNetworkAllowsOnlyTheEdges tries every port of every other pod from a pod of each kind. It checks that exactly the
// connections implied by proto/services.yaml succeed.
func TestNetworkAllowsOnlyTheEdges(t *testing.T) {
	unrelatedPod(t, "unrelated", nil)
	unrelatedPod(t, "migrate", map[string]string{"app.kubernetes.io/component": "migrate", "app.kubernetes.io/instance": "holdfast", "app.kubernetes.io/part-of": "holdfast"})
	from := map[string]clustertest.Pod{}
	for _, name := range append([]string{"unrelated", "migrate"}, sorted(ports)...) {
		found := pods(t, name)
		if len(found) == 0 {
			t.Fatalf("there is no pod of %s", name)
		}
		from[name] = found[0]
	}
	time.Sleep(5 * time.Second) // so that every node knows the addresses of the newest pods
	want := edges()
	got := map[string]bool{}
	for source, pod := range from {
		for target, reached := range tried(t, source, pod) {
			if reached {
				got[source+" → "+target] = true
			}
		}
	}
	for _, edge := range sorted(got) {
		if !want[edge] {
			t.Errorf("open, and not in the list: %s", edge)
		}
	}
	for _, edge := range sorted(want) {
		if !got[edge] {
			t.Errorf("in the list, and closed: %s", edge)
		}
	}
	t.Logf("%d connections are open, of %d tried: %s", len(got), attempts(from), strings.Join(sorted(got), ", "))
}

// edges returns the connections in the cluster that the chart allows. Clients from outside reach the gateway.
func edges() map[string]bool {
	all := map[string]bool{"unrelated → gateway:8080": true} // ingress: every pod that can send to the gateway's Service
	allow := func(from string, to ...string) {
		for _, name := range to {
			all[fmt.Sprintf("%s → %s:%d", from, name, ports[name][0])] = true
		}
	}
	for _, s := range proto.Services() {
		allow(s.Name, s.Calls...)
		if s.Database {
			allow(s.Name, "postgres")
		}
		if s.Redis {
			allow(s.Name, "redis")
		}
		if s.Kafka() {
			allow(s.Name, "kafka")
		}
	}
	allow("migrate", "postgres", "kafka")
	return all
}

// tried returns which ports of other pods a pod can reach.
func tried(t *testing.T, source string, pod clustertest.Pod) map[string]bool {
	t.Helper()
	var script strings.Builder
	for _, name := range sorted(ports) {
		if name == source {
			continue
		}
		for _, to := range pods(t, name) {
			for _, port := range ports[name] {
				fmt.Fprintf(&script, "(timeout 2 bash -c '</dev/tcp/%s/%d' 2>/dev/null && echo %s:%d) & ", to.IP, port, name, port)
			}
		}
	}
	out, err := clustertest.Inside(t.Context(), pod, script.String()+"wait")
	if err != nil {
		t.Fatal(err)
	}
	reached := map[string]bool{}
	for target := range strings.FieldsSeq(out) {
		reached[target] = true
	}
	return reached
}

func attempts(from map[string]clustertest.Pod) int {
	n := 0
	for source := range from {
		for target, at := range ports {
			if target != source {
				n += len(at)
			}
		}
	}
	return n
}

// unrelatedPod runs a pod that does nothing, until the test ends.
func unrelatedPod(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	image := kubectl(t, "get", "statefulset", "holdfast-redis", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	all := "app.kubernetes.io/name: " + name
	for k, v := range labels {
		all += ", " + k + ": " + v
	}
	manifest := fmt.Sprintf(`{ apiVersion: v1, kind: Pod, metadata: { name: %s, labels: { %s } }, spec: {
  nodeSelector: { node-role.kubernetes.io/control-plane: "" }, tolerations: [{ operator: Exists }], terminationGracePeriodSeconds: 0,
  automountServiceAccountToken: false, securityContext: { runAsNonRoot: true, runAsUser: 999, seccompProfile: { type: RuntimeDefault } },
  containers: [{ name: idle, image: %q, command: [sleep, "600"],
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: [ALL] } } }] } }`, name, all, image)
	if _, err := lab.Kubectl(t.Context(), []byte(manifest), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kubectl(t, "delete", "pod", name, "--wait") })
	kubectl(t, "wait", "--for=condition=Ready", "pod/"+name, "--timeout=60s")
}

func sorted[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
