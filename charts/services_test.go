package charts_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/proto"
)

// TestAnEntryIsAService checks that an entry of the list is sufficient for a service: an entry without fields gets all objects
// that every service has.
func TestAnEntryIsAService(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("platform")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "files/services.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(text, "  example: {}\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	rendered, err := renderChart(t, dir, variants["production"]...)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, o := range objects(t, rendered) {
		if o.Metadata.Name != "holdfast-example" {
			continue
		}
		kinds = append(kinds, o.Kind)
		switch o.Kind {
		case "Deployment":
			if image := at(podOf(o), "containers", 0, "image"); image != "registry.holdfast.test/holdfast/example:1.2.3" {
				t.Errorf("it runs %v", image)
			}
		case "ConfigMap":
			if o.Data["UPSTREAM_URL"] != "" {
				t.Errorf("it calls nothing, and has %v", o.Data)
			}
		case "NetworkPolicy": // Prometheus, and DNS
			if len(list(o.Spec["ingress"])) != 1 || len(list(o.Spec["egress"])) != 1 {
				t.Errorf("its policy: %v", o.Spec)
			}
		}
	}
	slices.Sort(kinds)
	want := []string{"ConfigMap", "Deployment", "HorizontalPodAutoscaler", "NetworkPolicy", "PodDisruptionBudget", "Service", "ServiceAccount", "ServiceMonitor"}
	if !slices.Equal(kinds, want) {
		t.Errorf("it has %v, not %v", kinds, want)
	}
	if !strings.Contains(rendered, "service: example } }") {
		t.Error("no alert misses it")
	}
}

// find returns the object of that kind and name.
func find(t *testing.T, rendered, kind, name string) object {
	t.Helper()
	for _, o := range objects(t, rendered) {
		if o.Kind == kind && o.Metadata.Name == name {
			return o
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return object{}
}

// TestUpstreams checks that a service that calls others gets their addresses by one pattern, and a separate address for each
// service that does not match the pattern.
func TestUpstreams(t *testing.T) {
	t.Parallel()
	for _, o := range objects(t, must(t, "--set", "services.identity.port=8090")) {
		i := slices.IndexFunc(proto.Services(), func(s proto.Service) bool { return "holdfast-"+s.Name == o.Metadata.Name })
		if o.Kind != "ConfigMap" || i < 0 {
			continue
		}
		want := map[string]string{}
		if calls := proto.Services()[i].Calls; len(calls) > 0 {
			want["UPSTREAM_URL"] = "http://holdfast-{service}:8080"
			if slices.Contains(calls, "identity") {
				want["UPSTREAM_IDENTITY_URL"] = "http://holdfast-identity:8090"
			}
		}
		for key, value := range o.Data {
			if strings.HasPrefix(key, "UPSTREAM_") && want[key] != value {
				t.Errorf("%s: %s is %s", o.Metadata.Name, key, value)
			}
		}
		for key := range want {
			if o.Data[key] == "" {
				t.Errorf("%s has no %s", o.Metadata.Name, key)
			}
		}
	}
}

// TestServicesOverrideDefaults checks that the block of a service overrides the defaults, including with false and empty values,
// and preserves the other keys of a map.
func TestServicesOverrideDefaults(t *testing.T) {
	t.Parallel()
	out := must(t, "--set", "defaults.replicas=5,defaults.pdb.maxUnavailable=2,defaults.pod.nodeSelector.pool=api,"+
		"services.bookings.replicas=0,services.bookings.pdb.enabled=false,services.bookings.pod.nodeSelector.disk=fast,"+
		"services.customers.env.KAFKA_BROKERS=,services.webhooks.enabled=false,services.identity.migrate.enabled=false")
	if d := find(t, out, "Deployment", "holdfast-customers"); d.Spec["replicas"] != 5 || at(podOf(d), "nodeSelector", "pool") != "api" {
		t.Errorf("customers: %v", d.Spec)
	}
	if d := find(t, out, "Deployment", "holdfast-bookings"); d.Spec["replicas"] != 0 || at(podOf(d), "nodeSelector", "pool") != "api" || at(podOf(d), "nodeSelector", "disk") != "fast" {
		t.Errorf("bookings: %v", d.Spec)
	}
	if data := find(t, out, "ConfigMap", "holdfast-customers").Data; data["KAFKA_BROKERS"] != "" || data["LOG_LEVEL"] != "info" {
		t.Errorf("customers: %v", data)
	}
	if spec := find(t, out, "PodDisruptionBudget", "holdfast-customers").Spec; spec["maxUnavailable"] != 2 {
		t.Errorf("customers: %v", spec)
	}
	for _, o := range objects(t, out) {
		gone := o.Kind == "PodDisruptionBudget" && o.Metadata.Name == "holdfast-bookings" || o.Kind == "Job" && o.Metadata.Name == "holdfast-identity-migrate"
		if gone || o.Kind != "NetworkPolicy" && strings.HasPrefix(o.Metadata.Name, "holdfast-webhooks") {
			t.Errorf("there is %s %s", o.Kind, o.Metadata.Name)
		}
	}
}

const digest = "sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"

// clusterValues are values that a platform team can set for its own cluster.
var clusterValues = []string{"--set", strings.Join([]string{
	"defaults.image.registry=registry.holdfast.test", "defaults.image.tag=1.2.3", "services.bookings.image.digest=" + digest,
	`services.bookings.serviceAccount.annotations.eks\.amazonaws\.com/role-arn=arn:bookings`,
	"services.bookings.extraEnv[0].name=DATABASE_URL",
	"services.bookings.extraEnv[0].valueFrom.secretKeyRef.name=bookings-app,services.bookings.extraEnv[0].valueFrom.secretKeyRef.key=uri",
	"services.bookings.migrate.extraEnv[0].name=MIGRATE_DATABASE_URL,services.bookings.migrate.extraEnv[0].value=x",
	"defaults.pod.priorityClassName=serving", "defaults.serviceMonitor.enabled=true", "defaults.serviceMonitor.labels.release=prometheus",
}, ",")}

// TestClusterValues checks that the values of a platform team are applied to the objects.
func TestClusterValues(t *testing.T) {
	t.Parallel()
	out := must(t, clusterValues...)
	pod := podOf(find(t, out, "Deployment", "holdfast-bookings"))
	if image := at(pod, "containers", 0, "image"); image != "registry.holdfast.test/holdfast/bookings@"+digest {
		t.Errorf("bookings runs %v", image)
	}
	if image := at(podOf(find(t, out, "Deployment", "holdfast-customers")), "containers", 0, "image"); image != "registry.holdfast.test/holdfast/customers:1.2.3" {
		t.Errorf("customers runs %v", image)
	}
	if env := at(pod, "containers", 0, "env", 0); at(env, "name") != "DATABASE_URL" || at(env, "valueFrom", "secretKeyRef", "key") != "uri" || at(pod, "priorityClassName") != "serving" {
		t.Errorf("bookings: %v", pod)
	}
	if role := find(t, out, "ServiceAccount", "holdfast-bookings").Metadata.Annotations["eks.amazonaws.com/role-arn"]; role != "arn:bookings" {
		t.Errorf("the role of bookings is %q", role)
	}
	if labels := find(t, out, "ServiceMonitor", "holdfast-bookings").Metadata.Labels; labels["release"] != "prometheus" || labels["app.kubernetes.io/name"] != "bookings" {
		t.Errorf("the ServiceMonitor has %v", labels)
	}
	job := podOf(find(t, out, "Job", "holdfast-bookings-migrate"))
	for _, c := range containers(job) {
		found := slices.ContainsFunc(list(at(c, "env")), func(env any) bool { return at(env, "name") == "MIGRATE_DATABASE_URL" })
		if !found || at(c, "image") != "registry.holdfast.test/holdfast/bookings@"+digest || at(job, "priorityClassName") != "serving" {
			t.Errorf("the migration: %v", c)
		}
	}
}

// TestSchedulingReachesAllPods checks that the scheduling settings apply to all pods of a service: its own, and those of its
// migration and jobs.
func TestSchedulingReachesAllPods(t *testing.T) {
	t.Parallel()
	const pool = "webhooks"
	out := must(t, "--set", "services.webhooks.pod.nodeSelector.pool="+pool+",services.webhooks.pod.tolerations[0].key="+pool+
		",services.webhooks.pod.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight=7")
	for kind, name := range map[string]string{"Deployment": "holdfast-webhooks", "Job": "holdfast-webhooks-migrate", "CronJob": "holdfast-webhooks-upkeep"} {
		pod := podOf(find(t, out, kind, name))
		preferred := at(pod, "affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution", 0, "weight")
		if at(pod, "nodeSelector", "pool") != pool || at(pod, "tolerations", 0, "key") != pool || preferred != 7 {
			t.Errorf("%s %s: %v", kind, name, pod)
		}
	}
	if selector := at(podOf(find(t, out, "Deployment", "holdfast-customers")), "nodeSelector"); selector != nil {
		t.Errorf("customers run on %v", selector)
	}
}

// TestKedaFollowsTheService checks that KEDA scales by CPU and by lag, and gets the same broker, group, topics, TLS, and SASL as the
// service. Only its login is separate.
func TestKedaFollowsTheService(t *testing.T) {
	t.Parallel()
	out := must(t, append(variants["production"], "--set", "services.bookings.autoscaling.keda.enabled=true,"+
		"services.bookings.autoscaling.keda.authenticationRef.name=kafka,services.bookings.autoscaling.keda.authenticationRef.kind=ClusterTriggerAuthentication")...)
	triggers := list(find(t, out, "ScaledObject", "holdfast-bookings").Spec["triggers"])
	if cpu := triggers[0]; at(cpu, "type") != "cpu" || at(cpu, "metricType") != "Utilization" || at(cpu, "metadata", "value") != "70" {
		t.Errorf("it scales by %v", cpu)
	}
	var topics []string
	for _, trigger := range triggers[1:] {
		topics = append(topics, at(trigger, "metadata", "topic").(string))
		for key, want := range map[string]string{
			"bootstrapServers": "kafka.holdfast.test:9093", "consumerGroup": "holdfast.bookings", "lagThreshold": "500", "tls": "enable", "sasl": "scram_sha512",
		} {
			if got := at(trigger, "metadata", key); got != want {
				t.Errorf("%s is %v", key, got)
			}
		}
		if at(trigger, "authenticationRef", "name") != "kafka" || at(trigger, "authenticationRef", "kind") != "ClusterTriggerAuthentication" {
			t.Errorf("it logs in by %v", at(trigger, "authenticationRef"))
		}
	}
	if !slices.Equal(topics, []string{"holdfast.customers", "holdfast.identity", "holdfast.payments"}) {
		t.Errorf("it looks at %v", topics)
	}
}
