package charts_test

import (
	"strconv"
	"testing"

	"holdfast.dev/proto"
)

// maxServerConns is the number of connections to PostgreSQL that the values for production need, on all of its servers together.
const maxServerConns = 400

// TestServerConnections adds up the pools of all pods of the values for production: the highest number of replicas, counted twice,
// because an update of all services starts new pods while old ones end.
func TestServerConnections(t *testing.T) {
	t.Parallel()
	pods, pools := map[string]int{}, map[string]int{}
	for _, o := range objects(t, must(t, variants["production"]...)) {
		switch o.Kind {
		case "HorizontalPodAutoscaler":
			pods[o.Metadata.Name], _ = o.Spec["maxReplicas"].(int)
		case "ConfigMap":
			for _, name := range []string{"DATABASE_MAX_CONNS", "WORKER_DATABASE_MAX_CONNS"} {
				n, _ := strconv.Atoi(o.Data[name])
				pools[o.Metadata.Name] += n
			}
		}
	}
	sum := 0
	for _, s := range proto.Services() {
		if !s.Database {
			continue
		}
		name := "holdfast-" + s.Name
		if pods[name] == 0 || pools[name] < 2 {
			t.Errorf("%s has %d replicas with %d connections each: set both", name, pods[name], pools[name])
		}
		t.Logf("%s: 2 x %d replicas x %d connections", s.Name, pods[name], pools[name])
		sum += 2 * pods[name] * pools[name]
	}
	if sum > maxServerConns {
		t.Errorf("%d connections, want at most %d", sum, maxServerConns)
	}
	t.Logf("%d connections", sum)
}
