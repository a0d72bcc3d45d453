package charts_test

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/proto"
)

// overlays are the examples that follow values-production.yaml.
var overlays = []string{"argocd", "eks", "gke", "openshift"}

// site returns the path of a file that replaces each placeholder of values-production.yaml, or of it and an example.
func site(name string) string {
	path, err := filepath.Abs(filepath.Join("testdata/values/site", name+".yaml"))
	if err != nil {
		panic(err)
	}
	return path
}

// overlay returns the arguments for values-production.yaml and an example, with their placeholders.
func overlay(t *testing.T, name string) []string {
	t.Helper()
	switch name {
	case "production":
		return []string{"-f", "values-production.yaml"}
	case "argocd":
		return application(t, "examples/argocd.yaml")
	default:
		return []string{"-f", "values-production.yaml", "-f", "../examples/" + name + ".yaml"}
	}
}

// maxServerConns is the number of connections to PostgreSQL that the values for production need, on all of its servers together.
const maxServerConns = 400

// TestServerConnections adds up the pools of all pods of the values for production, alone and below each example: the highest number of
// replicas, counted twice, because an update of all services starts new pods while old ones end. docs/operations/size.md has the sums.
func TestServerConnections(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/operations/size.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| [^|]*`(?:values-|examples/)([a-z]+)[.]yaml` \\| ([0-9]+) \\|$").FindAllStringSubmatch(string(page), -1) {
		documented[m[1]] = m[2]
	}
	want := map[string]string{}
	for _, name := range append([]string{"production"}, overlays...) {
		sum := serverConnections(t, name, must(t, append(overlay(t, name), "-f", site(name))...))
		if sum > maxServerConns {
			t.Errorf("%s: %d connections, want at most %d", name, sum, maxServerConns)
		}
		want[name] = strconv.Itoa(sum)
	}
	if !maps.Equal(documented, want) {
		t.Errorf("docs/operations/size.md has the sums %v, want %v", documented, want)
	}
}

func serverConnections(t *testing.T, values, rendered string) (sum int) {
	t.Helper()
	pods, pools := map[string]int{}, map[string]int{}
	for _, o := range objects(t, rendered) {
		switch o.Kind {
		case "HorizontalPodAutoscaler":
			pods[o.Metadata.Name], _ = o.Spec["maxReplicas"].(int)
		case "ScaledObject":
			pods[o.Metadata.Name], _ = o.Spec["maxReplicaCount"].(int)
		case "ConfigMap":
			for _, name := range []string{"DATABASE_MAX_CONNS", "WORKER_DATABASE_MAX_CONNS"} {
				n, _ := strconv.Atoi(o.Data[name])
				pools[o.Metadata.Name] += n
			}
		}
	}
	for _, s := range proto.Services() {
		if !s.Database {
			continue
		}
		name := "holdfast-" + s.Name
		if pods[name] == 0 || pools[name] < 2 {
			t.Errorf("%s: %s has %d replicas with %d connections each: set both", values, name, pods[name], pools[name])
		}
		t.Logf("%s: %s: 2 x %d replicas x %d connections", values, s.Name, pods[name], pools[name])
		sum += 2 * pods[name] * pools[name]
	}
	t.Logf("%s: %d connections", values, sum)
	return sum
}

// TestOverlays checks that each example on top of values-production.yaml preserves its memory and its number of pods, and that all
// services, the Ingress and the HTTPRoute follow the URL of the platform.
func TestOverlays(t *testing.T) {
	t.Parallel()
	sizes := func(rendered string) map[string]any {
		all := map[string]any{}
		for _, o := range objects(t, rendered) {
			switch o.Kind {
			case "Deployment":
				all[o.Metadata.Name+" resources"] = at(podOf(o), "containers", 0, "resources")
			case "HorizontalPodAutoscaler", "ScaledObject":
				for field, name := range map[string]string{"minReplicas": "min", "minReplicaCount": "min", "maxReplicas": "max", "maxReplicaCount": "max"} {
					if n := o.Spec[field]; n != nil {
						all[o.Metadata.Name+" "+name] = n
					}
				}
			}
		}
		return all
	}
	want := sizes(must(t, variants["production"]...))
	for _, name := range overlays {
		rendered := must(t, append(overlay(t, name), "-f", site(name))...)
		if got := sizes(rendered); len(got) != 3*len(services) || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\nwant %v", name, got, want)
		}
		var values map[string]any
		text, err := os.ReadFile(site(name))
		if err == nil {
			err = yaml.Unmarshal(text, &values)
		}
		if err != nil {
			t.Fatal(err)
		}
		url := values["publicUrl"].(string)
		auth, _ := values["authUrl"].(string)
		if auth == "" {
			auth = url
		}
		hosts := slices.Compact([]string{strings.TrimPrefix(url, "https://"), strings.TrimPrefix(auth, "https://")})
		entries := 0
		for _, o := range objects(t, rendered) {
			var serves []string
			switch o.Kind {
			case "ConfigMap":
				if got, ok := o.Data["PUBLIC_URL"]; ok && got != url || o.Metadata.Name == "holdfast-identity" && o.Data["AUTH_URL"] != auth {
					t.Errorf("%s: %s has the URLs %s and %s", name, o.Metadata.Name, got, o.Data["AUTH_URL"])
				}
				continue
			case "Ingress":
				for _, rule := range list(o.Spec["rules"]) {
					serves = append(serves, at(rule, "host").(string))
				}
			case "HTTPRoute":
				for _, host := range list(o.Spec["hostnames"]) {
					serves = append(serves, host.(string))
				}
			default:
				continue
			}
			if entries++; !slices.Equal(serves, hosts) {
				t.Errorf("%s: the %s serves %v, not %v", name, o.Kind, serves, hosts)
			}
		}
		if entries != 1 {
			t.Errorf("%s: %d entries", name, entries)
		}
	}
}

// TestPlaceholders checks that the chart does not render while one placeholder of values-production.yaml or of an example is left, and
// that the error contains its path.
func TestPlaceholders(t *testing.T) {
	t.Parallel()
	for _, name := range append([]string{"production"}, overlays...) {
		text, err := os.ReadFile(site(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range leaves(t, text) {
			var values map[string]any
			if err := yaml.Unmarshal(text, &values); err != nil {
				t.Fatal(err)
			}
			inner := values
			for _, step := range path[:len(path)-1] {
				inner = inner[step].(map[string]any)
			}
			delete(inner, path[len(path)-1])
			rest, err := yaml.Marshal(values)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "values.yaml")
			if err := os.WriteFile(file, rest, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := render(t, append(overlay(t, name), "-f", file)...); err == nil || !strings.Contains(err.Error(), strings.Join(path, ".")+`: "`) || !strings.Contains(err.Error(), "contains a placeholder") {
				t.Errorf("%s without %v: %v", name, path, err)
			}
		}
	}
	for _, own := range []string{"https://my-example.com", "https://example.com.br", "https://hosts.holdfast.test", "https://examples.dev"} {
		if _, err := render(t, "--set", "publicUrl="+own); err != nil {
			t.Errorf("%s: %v", own, err)
		}
	}
}

// leaves returns the paths of the values in a file that are no maps.
func leaves(t *testing.T, text []byte) (paths [][]string) {
	t.Helper()
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	var walk func(path []string, v any)
	walk = func(path []string, v any) {
		m, ok := v.(map[string]any)
		if !ok {
			paths = append(paths, path)
			return
		}
		for key, inner := range m {
			walk(append(slices.Clone(path), key), inner)
		}
	}
	walk(nil, values)
	return paths
}

// TestALBAttributes checks that the Ingress of an Application Load Balancer has one annotation for each list of attributes, with those of
// the chart and of the values, and that its pods serve as long as the load balancer can send requests to them.
func TestALBAttributes(t *testing.T) {
	t.Parallel()
	const prefix = "alb.ingress.kubernetes.io/"
	mine := filepath.Join(t.TempDir(), "values.yaml")
	text := "defaults: { metadata: { Ingress: { annotations: { " + prefix + "target-group-attributes: \"slow_start.duration_seconds=30, deregistration_delay.timeout_seconds=45\" } } } }\n" +
		"ingress: { annotations: { " + prefix + "load-balancer-attributes: \"routing.http2.enabled=true,access_logs.s3.enabled=true\" } }\n"
	if err := os.WriteFile(mine, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append(overlay(t, "eks"), "-f", site("eks"))
	for _, c := range []struct{ args, targets, balancer []string }{
		{nil, []string{"deregistration_delay.timeout_seconds=30"}, []string{"idle_timeout.timeout_seconds=960"}},
		{
			[]string{"-f", mine},
			[]string{"deregistration_delay.timeout_seconds=45", "slow_start.duration_seconds=30"},
			[]string{"access_logs.s3.enabled=true", "idle_timeout.timeout_seconds=960", "routing.http2.enabled=true"},
		},
	} {
		rendered := must(t, slices.Concat(args, c.args)...)
		annotations := find(t, rendered, "Ingress", "holdfast-gateway").Metadata.Annotations
		if got := annotations[prefix+"target-group-attributes"]; got != strings.Join(c.targets, ",") {
			t.Errorf("the target group has %q", got)
		}
		if got := annotations[prefix+"load-balancer-attributes"]; got != strings.Join(c.balancer, ",") {
			t.Errorf("the load balancer has %q", got)
		}
		if delay := find(t, rendered, "ConfigMap", "holdfast-gateway").Data["STOP_DELAY"]; delay != "30s" {
			t.Errorf("the gateway serves %s after it is removed", delay)
		}
		if grace := at(podOf(find(t, rendered, "Deployment", "holdfast-gateway")), "terminationGracePeriodSeconds"); grace != 80 {
			t.Errorf("the gateway is killed after %v seconds", grace)
		}
	}
	if _, err := render(t, append(args, "--set", "services.gateway.drain.delaySeconds=29")...); err == nil || !strings.Contains(err.Error(), "services.gateway.drain.delaySeconds: 29 is too short for ingress.controller alb") {
		t.Errorf("a drain of 29 seconds: %v", err)
	}
}

// TestOpenShiftImages checks that images in OpenShift's registry have two levels below its host, in any project.
func TestOpenShiftImages(t *testing.T) {
	t.Parallel()
	args := append(overlay(t, "openshift"), "-f", site("openshift"))
	for project, more := range map[string][]string{"holdfast": nil, "booking": {"--set", "defaults.image.repository=booking/{service}"}} {
		for _, o := range objects(t, must(t, append(args, more...)...)) {
			service := o.Metadata.Labels["app.kubernetes.io/name"]
			if image, want := at(podOf(o), "containers", 0, "image"), "image-registry.openshift-image-registry.svc:5000/"+project+"/"+service+":1.2.3"; o.Kind == "Deployment" && image != want {
				t.Errorf("%s runs %v, not %s", service, image, want)
			}
		}
	}
}

// TestStopsAndFamilies checks that the grace period follows the preStop hook and the drain unless a value sets it, and that all Services
// have the address families.
func TestStopsAndFamilies(t *testing.T) {
	t.Parallel()
	rendered := must(t, "--set", "services.bookings.lifecycle.preStop.sleep.seconds=7,services.customers.terminationGracePeriodSeconds=30,"+
		"services.logs.lifecycle.preStop.httpGet.port=9090,services.logs.terminationGracePeriodSeconds=60,services.gateway.external.type=LoadBalancer,"+
		"platformAPI.enabled=true,platformAPI.peers[0].podSelector.matchLabels.app=billing,defaults.ipFamilyPolicy=PreferDualStack,defaults.ipFamilies={IPv6,IPv4}",
		"--set-string", "services.identity.env.PLATFORM_ADDR=:8081")
	for service, want := range map[string]int{"bookings": 37, "customers": 30, "logs": 60, "console": 40, "gateway": 30} {
		pod := podOf(find(t, rendered, "Deployment", "holdfast-"+service))
		if at(pod, "terminationGracePeriodSeconds") != want {
			t.Errorf("%s is killed after %v seconds, not %d", service, at(pod, "terminationGracePeriodSeconds"), want)
		}
		if hook := at(pod, "containers", 0, "lifecycle", "preStop"); (hook != nil) != (service == "bookings" || service == "logs") {
			t.Errorf("%s has the hook %v", service, hook)
		}
	}
	seen := 0
	for _, o := range objects(t, rendered) {
		if o.Kind != "Service" {
			continue
		}
		if seen++; o.Spec["ipFamilyPolicy"] != "PreferDualStack" || !reflect.DeepEqual(o.Spec["ipFamilies"], []any{"IPv6", "IPv4"}) {
			t.Errorf("%s: %v", o.Metadata.Name, o.Spec)
		}
	}
	if seen != len(services)+2 {
		t.Errorf("%d Services", seen)
	}
}

// TestUnknownValues checks that the chart refuses settings that a service does not have, unknown fields, times that contradict each
// other, and placeholders, with an error that contains the path.
func TestUnknownValues(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]string{
		"services.gateway.env.UPSTREM_TIMEOUT=5s":                          "services.gateway.env.UPSTREM_TIMEOUT is no setting of gateway",
		"services.console.env.DATABASE_MAX_CONNS=a":                        "services.console.env.DATABASE_MAX_CONNS is no setting of console",
		"services.customers.env.UPSTREAM_CUSTOMERS_URL=a":                  "services.customers.env.UPSTREAM_CUSTOMERS_URL is no setting of customers",
		"defaults.env.LOG_LEVL=debug":                                      "defaults.env.LOG_LEVL is no setting of a service",
		"services.bookings.terminationGracePeriodSeconds=29":               "services.bookings.terminationGracePeriodSeconds: 29 is too short; set at least 30",
		"services.bookings.lifecycle.preStop.exec.command[0]=a":            "services.bookings.lifecycle.preStop: set terminationGracePeriodSeconds too",
		"services.bookings.lifecycle.preStop.sleep=5":                      "sleep",
		"services.bookings.lifecycle.prestop.sleep.seconds=5":              "prestop",
		"defaults.ipFamilyPolicy=DualStack":                                "ipFamilyPolicy",
		"defaults.ipFamilies={IPv5}":                                       "ipFamilies",
		"defaults.ipFamilies={IPv4,IPv6}":                                  "ipFamilyPolicy: PreferDualStack or RequireDualStack is necessary for two ipFamilies",
		"defaults.image.repository=a/b":                                    "defaults.image.repository: \"a/b\" names a single image",
		"networks.redis.peers[0].ipBlok.cidr=10.0.0.0/8":                   "ipBlok",
		"networks.redis.peers[0].podSelector.matchLabel.a=b":               "matchLabel",
		"platformAPI.peers[0].podselector.matchLabels.a=b":                 "podselector",
		"ingress.tls[0].secret=a":                                          "secret",
		"httpRoute.parentRefs[0].names=a":                                  "names",
		"services.bookings.extraEnvFrom[0].secret=a":                       "secret",
		"services.bookings.extraEnv[0].valueFrom.secretRef.name=a":         "secretRef",
		"services.bookings.pod.tolerations[0].keys=a":                      "keys",
		"services.bookings.topologySpreadConstraints[0].topology=a":        "topology",
		"services.bookings.pod.hostAliases[0].host=a":                      "host",
		"services.bookings.pod.dnsConfig.options[0].key=a":                 "key",
		"services.bookings.serviceMonitor.relabelings[0].target=a":         "target",
		"services.bookings.autoscaling.behavior.scaleUp.window=5":          "window",
		"services.bookings.resources.limits.memry=1Gi":                     "memry",
		"services.bookings.pod.securityContext.seccompProfile.kind=a":      "kind",
		"services.bookings.containerSecurityContext.seLinuxOptions.lvl=a":  "lvl",
		"publicUrl=https://api.example.com":                                `publicUrl: "https://api.example.com" contains a placeholder`,
		"authUrl=https://login.holdfast.example":                           `authUrl: "https://login.holdfast.example" contains a placeholder`,
		"services.bookings.image.registry=REGISTRY":                        `services.bookings.image.registry: "REGISTRY" contains a placeholder`,
		"defaults.env.KAFKA_BROKERS=a.example.net:9092":                    `defaults.env.KAFKA_BROKERS: "a.example.net:9092" contains a placeholder`,
		"ingress.enabled=true,ingress.hosts={HOST}":                        `ingress.hosts[0]: "HOST" contains a placeholder`,
		"ingress.enabled=true,ingress.controller=alb":                      "services.gateway.env.TRUSTED_PROXY_HOPS",
		"services.bookings.serviceAccount.annotations.a=arn:aws:ACCOUNT:a": `services.bookings.serviceAccount.annotations.a: "arn:aws:ACCOUNT:a" contains a placeholder`,
	} {
		refuses(t, set, want)
	}
}
