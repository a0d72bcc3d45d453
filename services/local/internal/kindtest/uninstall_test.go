package kindtest

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestUninstall checks that nothing is left of an uninstalled platform except its volumes and the keys to read them, and that a
// new installation has the same data.
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
	begin := time.Now()
	local(t, append([]string{"kind", "install", "--values", "k8s/values-test.yaml"}, strings.Fields(installOptions)...)...)
	t.Logf("installed again in %v", time.Since(begin).Round(time.Second))
	status, err := fetchStatus(context.Background(), client, call{method: http.MethodGet, path: "/customers?metadata[tag]=" + created.idempotency, key: created.key})
	if err != nil || status != http.StatusOK {
		t.Errorf("what was written before: %d %v", status, err)
	}
	once(t, created)
}
