package kindtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast.dev/services/local/internal/cluster/clustertest"
)

const rate = 50 // requests per second during each disruption

// TestRollingUpdatesLoseNothing checks that rolling updates of every service, one after the other, lose no request.
func TestRollingUpdatesLoseNothing(t *testing.T) {
	secret := key(t)
	for _, service := range services {
		t.Run(service, func(t *testing.T) {
			load := send(t, rate, secret, mixed)
			begin := time.Now()
			kubectl(t, "rollout", "restart", "deployment/holdfast-"+service)
			settled(t, service)
			load.stop().none(t, "rolling update in "+time.Since(begin).Round(time.Second).String())
		})
	}
}

// TestKilledPods kills a pod with SIGKILL under load. Only requests in flight to the pod can fail. If a write is repeated with its
// key, it takes effect once.
func TestKilledPods(t *testing.T) {
	secret := key(t)
	for _, service := range services {
		t.Run(service, func(t *testing.T) {
			settled(t, service)
			load := send(t, rate, secret, func() call {
				if time.Now().UnixNano()%2 == 0 {
					return newCustomer()
				}
				return newBooking()
			})
			time.Sleep(3 * time.Second)
			victim := pods(t, service)[0]
			before := time.Now()
			inFlight := load.inFlight()
			if err := clustertest.Signal(t.Context(), victim, 9); err != nil {
				t.Fatal(err)
			}
			after := time.Now()
			time.Sleep(12 * time.Second)
			load.stop()
			t.Logf("%d requests, %d on their way, %d failed", load.sent, inFlight, len(load.failed))
			for _, f := range load.failed {
				if f.began.After(after) || f.at.Before(before) {
					t.Errorf("failed without having been on its way when the pod ended, %v after: %v", f.began.Sub(after), f)
				}
				once(t, f.call)
			}
			settled(t, service)
		})
	}
}

// TestKilledGatewaysCountRequests kills all gateways under load, twice. The counts for metering then contain each request that received a
// response, and none twice: those whose connection ended may have been counted or not.
func TestKilledGatewaysCountRequests(t *testing.T) {
	counted := func() int {
		n, err := strconv.Atoi(query(t, "logs", "select coalesce(sum(requests), 0) from request_counts"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	secret, before := key(t), counted()
	load := send(t, rate, secret, readTenant)
	for range 2 {
		time.Sleep(3 * time.Second)
		for _, pod := range pods(t, "gateway") {
			if err := clustertest.Signal(t.Context(), pod, 9); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second) // until the pods are not ready
		settled(t, "gateway")
	}
	load.stop()
	interrupted := 0
	for _, f := range load.failed {
		if f.err != nil {
			interrupted++
		}
	}
	responses := load.sent - interrupted
	await(t, fmt.Sprintf("%d requests are counted", responses), time.Minute, func() bool { return counted()-before >= responses })
	time.Sleep(5 * time.Second) // a second copy would arrive by now
	got := counted() - before
	t.Logf("%d sent, %d responses, %d counted", load.sent, responses, got)
	if got < responses || got > load.sent || interrupted == 0 {
		t.Errorf("%d counted of %d responses to %d requests", got, responses, load.sent)
	}
}

// TestDrainedNode drains a worker node repeatedly while all processors are busy. It checks that the disruption budgets hold and
// that no request is lost.
func TestDrainedNode(t *testing.T) {
	rounds := 2
	if os.Getenv("TEST_SCALE") == "full" {
		rounds = 10
	}
	secret := key(t)
	saturateCPUs(t)
	for round := range rounds {
		t.Run(strconv.Itoa(round+1), func(t *testing.T) {
			node := pods(t, "gateway")[0].Node
			load := send(t, rate, secret, mixed)
			t.Cleanup(func() { kubectl(t, "uncordon", node) })
			begin := time.Now()
			kubectl(t, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=300s")
			for _, service := range services {
				settled(t, service)
				for _, pod := range pods(t, service) {
					if pod.Node == node {
						t.Errorf("%s is on the drained node", pod.Name)
					}
				}
			}
			load.stop().none(t, "drained in "+time.Since(begin).Round(time.Second).String())
		})
	}
}

// saturateCPUs keeps each processor busy until the test ends.
func saturateCPUs(t *testing.T) {
	t.Helper()
	for range runtime.NumCPU() {
		busy := exec.CommandContext(context.WithoutCancel(t.Context()), "sh", "-c", "while :; do :; done")
		if err := busy.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = busy.Process.Kill()
			_ = busy.Wait()
		})
	}
}

// TestAFailedMigrationStopsTheUpgrade checks that a failed migration stops the upgrade, that the old pods continue, and that a
// rollback to the installed version is possible.
func TestAFailedMigrationStopsTheUpgrade(t *testing.T) {
	kubectl(t, "delete", "secret", "broken-migrate", "--ignore-not-found")
	kubectl(t, "create", "secret", "generic", "broken-migrate", "--from-literal=APP_ROLE=unknown", "--from-literal=WORKER_ROLE=unknown",
		"--from-literal=MIGRATE_DATABASE_URL=postgres://unknown:wrong@holdfast-postgres:5432/holdfast_bookings?sslmode=disable")
	t.Cleanup(func() { kubectl(t, "delete", "secret", "broken-migrate", "--ignore-not-found") })
	before := replicaSets(pods(t, "bookings"))
	load := send(t, rate, key(t), mixed)
	err := upgrade(t, "services.bookings.migrate.existingSecret=broken-migrate", "services.bookings.env.LOG_LEVEL=debug")
	if err == nil || !strings.Contains(err.Error(), "holdfast-bookings-migrate") {
		t.Errorf("the upgrade with a failing migration: %v", err)
	}
	if now := replicaSets(pods(t, "bookings")); now != before {
		t.Errorf("pods were of %s and are of %s", before, now)
	}
	if level := setting(t, "bookings", "LOG_LEVEL"); level != "info" {
		t.Errorf("LOG_LEVEL is %s after an upgrade that failed", level)
	}
	load.stop().none(t, "while a migration failed")
	if err := upgrade(t, "services.bookings.migrate.existingSecret=", "services.bookings.env.LOG_LEVEL=info"); err != nil {
		t.Errorf("the repaired upgrade: %v", err)
	}
}

// TestRollback checks that an upgrade and its rollback lose no request, and that the rollback restores the previous version.
func TestRollback(t *testing.T) {
	load := send(t, rate, key(t), mixed)
	if err := upgrade(t, "services.customers.env.LOG_LEVEL=debug"); err != nil {
		t.Fatal(err)
	}
	if level := setting(t, "customers", "LOG_LEVEL"); level != "debug" {
		t.Errorf("LOG_LEVEL is %s after the upgrade", level)
	}
	if _, err := lab.RunHelm(t.Context(), "rollback", namespace, "--wait", "--timeout", "5m"); err != nil {
		t.Fatal(err)
	}
	if level := setting(t, "customers", "LOG_LEVEL"); level != "info" {
		t.Errorf("LOG_LEVEL is %s after the rollback", level)
	}
	settled(t, "customers")
	load.stop().none(t, "upgrade and rollback")
}

// setting returns a value of a service's ConfigMap.
func setting(t *testing.T, service, name string) string {
	t.Helper()
	return kubectl(t, "get", "configmap", "holdfast-"+service, "-o", "jsonpath={.data."+name+"}")
}

// replicaSets returns the ReplicaSets of the pods: there is a new one after each change of the Deployment, regardless of the
// autoscaler.
func replicaSets(pods []clustertest.Pod) string {
	all := map[string]bool{}
	for _, pod := range pods {
		all[pod.Name[:strings.LastIndex(pod.Name, "-")]] = true
	}
	return strings.Join(sorted(all), " ")
}

// TestOneServerPerVolume checks that no second server uses a datastore's volume while the first one is running, regardless of what
// happens to its pod. (Kafka has its own lock.)
func TestOneServerPerVolume(t *testing.T) {
	for _, name := range []string{"postgres", "redis"} {
		lock := "/data/" + name + ".lock"
		state := kubectl(t, "exec", "holdfast-"+name+"-0", "--", "sh", "-c", "flock -n "+lock+" echo free || echo held")
		if state != "held" {
			t.Errorf("%s: the lock is %s", lock, state)
		}
	}
}
