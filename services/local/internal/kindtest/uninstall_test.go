package kindtest

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

const denyEverything = `{ apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: { name: deny-everything },
  spec: { podSelector: {}, policyTypes: [Ingress, Egress] } }`

// TestUninstall checks that nothing is left of an uninstalled platform except its volumes and the keys to read them, and that a
// new installation has the same data. The namespace then denies all connections, and pods run as a random user, as on OpenShift.
// `helm test` passes.
func TestUninstall(t *testing.T) {
	created := newCustomer()
	created.key = key(t)
	once(t, created)
	local(t, "kind", "uninstall")
	left := strings.Fields(kubectl(t, "get", "all,configmaps,secrets,serviceaccounts,persistentvolumeclaims,networkpolicies,poddisruptionbudgets,horizontalpodautoscalers,ingresses,jobs", "-o", "name"))
	want := "configmap/kube-root-ca.crt secret/holdfast-keys serviceaccount/default persistentvolumeclaim/data-holdfast-kafka-0 persistentvolumeclaim/data-holdfast-postgres-0 persistentvolumeclaim/data-holdfast-redis-0"
	if got := strings.Join(left, " "); got != want {
		t.Errorf("left over: %s", got)
	}
	if _, err := lab.Kubectl(t.Context(), []byte(denyEverything), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kubectl(t, "delete", "networkpolicy", "deny-everything") })
	begin := time.Now()
	local(t, append([]string{"kind", "install", "--values", "k8s/values-test.yaml", "--values", "charts/examples/kind.yaml"}, strings.Fields(installOptions)...)...)
	t.Logf("installed again in %v", time.Since(begin).Round(time.Second))
	status, err := fetchStatus(context.Background(), client, call{method: http.MethodGet, path: "/customers?metadata[tag]=" + created.idempotency, key: created.key})
	if err != nil || status != http.StatusOK {
		t.Errorf("what was written before: %d %v", status, err)
	}
	once(t, created)
	if out, err := lab.RunHelm(t.Context(), "test", namespace, "--timeout", "3m"); err != nil || !strings.Contains(string(out), "Phase:          Succeeded") {
		t.Errorf("helm test: %v\n%s", err, out)
	}
	for _, user := range strings.Fields(kubectl(t, "get", "pods", "-l", "app.kubernetes.io/part-of=holdfast", "-o", "jsonpath={.items[*].spec.securityContext.runAsUser}")) {
		if user != "1000650000" {
			t.Errorf("a pod runs as the user %s", user)
		}
	}
}
