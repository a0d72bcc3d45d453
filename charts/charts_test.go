package charts_test

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/libs/testservers"
	"holdfast.dev/proto"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// services are the services that the chart installs.
var services = proto.ServiceNames()

// render renders the chart with values. It returns helm's own errors.
func render(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return renderChart(t, "platform", args...)
}

// renderChart renders a copy of the chart.
func renderChart(t *testing.T, folder string, args ...string) (string, error) {
	t.Helper()
	return renderRelease(t, folder, "holdfast", "holdfast", args...)
}

// renderRelease renders a copy of the chart as a release of a name in a namespace.
func renderRelease(t *testing.T, folder, release, namespace string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(testservers.Tool(t, "HELM"), append([]string{"template", release, ".", "--namespace", namespace, "--kube-version", "1.30.0"}, args...)...)
	cmd.Dir = folder
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return "", errors.New(said.String())
	}
	return out.String(), nil
}

// variants are the values that are rendered into golden files.
var variants = map[string][]string{
	"default": nil, "dev": {"-f", "values-dev.yaml"}, "production": {"-f", "values-production.yaml", "-f", site("production")},
	"keda": {"--set", "services.bookings.autoscaling.keda.enabled=true,services.bookings.autoscaling.keda.topics={customers},services.bookings.autoscaling.keda.bootstrapServers=kafka:9092,services.bookings.autoscaling.keda.consumerGroup=holdfast.bookings,httpRoute.enabled=true,httpRoute.parentRefs[0].name=external", "--set-string", "services.gateway.env.TRUSTED_PROXY_HOPS=1"},
}

func must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := render(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for name, args := range variants {
		got, path := must(t, args...), filepath.Join("testdata", name+".yaml")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); err != nil || string(want) != got {
			t.Errorf("%s is another one; look at it, then: go test ./charts -update (%v)", path, err)
		}
	}
}

func TestLint(t *testing.T) {
	t.Parallel()
	helm := testservers.Tool(t, "HELM")
	for _, args := range [][]string{{"platform"}, {"platform", "-f", "platform/values-dev.yaml"}, {"platform", "-f", "platform/values-production.yaml", "-f", site("production")}} {
		cmd := exec.Command(helm, append([]string{"lint", "--strict", "--kube-version", "1.30.0"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", args, out)
		}
	}
}

// TestBadValues checks that invalid values are refused with an error that contains their names.
func TestBadValues(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]string{
		"services.bookings.replicas=many":              "replicas",
		"services.bookings.replica=3":                  "replica",
		"services.gateway.port=0":                      "port",
		"services.gateway.env.lower=x":                 "lower",
		"services.gateway.env.LIMIT=5":                 "LIMIT",
		"services.webhooks.drain.graceSeconds=5":       "graceSeconds",
		"services.identity.image.pullPolicy=Sometimes": "pullPolicy",
		"services.identity.image.digest=sha256:12":     "digest",

		"defaults.image.digest=sha256:" + strings.Repeat("0a", 32): "set services.<name>.image.digest",

		"services.bookings.podMonitor.enabled=true,services.bookings.serviceMonitor.enabled=true":          "enable serviceMonitor or podMonitor, not both",
		"services.bookings.secrets.mode=file":                                                              "mode",
		"services.bookings.secrets.keys.mail=true":                                                         "mail",
		"services.bookings.trustBundles[0].key=a":                                                          "trustBundles",
		"services.bookings.trustBundles[0].secret=a,services.bookings.trustBundles[0].configMap=b":         "trustBundles",
		"services.bookings.pod.securityContext.runAsuser=1":                                                "runAsuser",
		"services.bookings.metadata.Deploymnet.labels.a=b":                                                 "Deploymnet",
		"services.bookings.metadata.Deployment.label.a=b":                                                  "label",
		"services.bookings.strategy.type=Rolling":                                                          "type",
		"services.gateway.external.sourceRange=a":                                                          "sourceRange",
		"services.bookings.upkeep.startingDeadlineSeconds=1":                                               "startingDeadlineSeconds",
		"services.bookings.trafficDistribution=Close":                                                      "trafficDistribution",
		"services.bookings.pod.affinity.nodeAfinity.a=b":                                                   "nodeAfinity",
		"services.bookings.pod.dnsConfig.nameserver=a":                                                     "nameserver",
		"publicUrl=https://api.example.com/path":                                                           "publicUrl",
		"ingress.controller=traefik":                                                                       "controller",
		"httpRoute.timeouts.response=1s":                                                                   "response",
		"services.bookings.autoscaling.enabled=true,services.bookings.autoscaling.cpuPercent=0":            "services.bookings.autoscaling: there is nothing to scale by",
		"extraObject[0].kind=A":                                                                            "extraObject",
		"services.bookings.resources.limit.cpu=1":                                                          "limit",
		"defaults.serviceAccount.name=own":                                                                 "or set services.<name>.serviceAccount.name",
		"services.customers.autoscaling.cpuPercent=-1":                                                     "cpuPercent",
		"services.bookings.mounts[0].secret=ca":                                                            "path",
		"services.bookings.pdb.minAvailable=2":                                                             "services.bookings.pdb.minAvailable: 2 requires all of the 2 pods",
		"services.bookings.pdb.minAvailable=51%":                                                           "services.bookings.pdb.minAvailable: 51% requires all of the 2 pods",
		"services.bookings.pdb.minAvailable=1,services.bookings.replicas=1":                                "services.bookings.pdb.minAvailable: 1 requires all of the 1 pods",
		"services.bookings.pdb.maxUnavailable=0%":                                                          "services.bookings.pdb.maxUnavailable: 0% lets no pod go",
		"services.bookings.autoscaling.enabled=true,services.bookings.autoscaling.minReplicas=11":          "services.bookings.autoscaling: minReplicas is 11, above maxReplicas, which is 10",
		"defaults.autoscaling.keda.enabled=true,defaults.autoscaling.maxReplicas=1":                        "autoscaling: minReplicas is 2, above maxReplicas, which is 1",
		"httpRoute.enabled=true":                                                                           "httpRoute.parentRefs: name the Gateways",
		"services.bookings.pdb.maxUnavailable=0":                                                           "maxUnavailable",
		"services.bookings.extraEnv[0].value=x":                                                            "name",
		"services.bookings.migrate.extraEnv[0].name=a":                                                     "extraEnv",
		"services.bookings.serviceMonitor.labels.a=1":                                                      "labels",
		"services.paymentz.replicas=2":                                                                     `services: "paymentz" is no service; they are bookings, console, customers`,
		"services.bookings.database=false":                                                                 "database",
		"defaults.replica=3":                                                                               "replica",
		"paymentz.replicas=2":                                                                              "paymentz",
		"bookings.replicas=3":                                                                              "bookings", // the format of the values before services existed
		"edges[0].from=ingress,edges[0].to={gatweay}":                                                      `edges: "gatweay" is neither a service nor one of networks`,
		"edges[0].from=outside,edges[0].to={gateway}":                                                      `edges: "outside" is neither a service nor one of networks`,
		"edges[0].from=ingress":                                                                            "to",
		"networks.gateways=null":                                                                           `edges: "gateways" is neither a service nor one of networks`,
		"networks.receivers=null":                                                                          `edges: "receivers" is neither a service nor one of networks`,
		"prometheusRule.runbooks=docs/a.md#b":                                                              "runbooks",
		"networks.redis.port=6379":                                                                         "port",
		"services.gateway.external.type=Ingress":                                                           "type",
		"networkPolicies.guarded={redsi}":                                                                  `networkPolicies.guarded: "redsi" is no network with one peer`,
		"networkPolicies.guarded={ingress}":                                                                `networkPolicies.guarded: "ingress" is no network with one peer`,
		"services.gateway.env.TRUSTED_PROXY_HOPS=one":                                                      "TRUSTED_PROXY_HOPS",
		"services.gateway.autoscaling.keda.enabled=true,services.gateway.autoscaling.cpuPercent=0":         "services.gateway.autoscaling.keda: gateway reads no topic",
		"services.bookings.autoscaling.keda.enabled=true,services.bookings.env.KAFKA_SASL_MECHANISM=plain": "services.bookings.autoscaling.keda.authenticationRef.name must name a TriggerAuthentication",
	} {
		refuses(t, set, want)
	}
}

// refuses checks that the chart refuses a value with an error that contains a text.
func refuses(t *testing.T, set, want string) {
	t.Helper()
	if _, err := render(t, "--set", set); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v", set, err)
	}
}

// TestAWayInNeedsHops checks that an ingress or an HTTPRoute requires the number of proxies. Without it, every client would appear
// with the proxy's address.
func TestAWayInNeedsHops(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"ingress", "httpRoute"} {
		for hops, fails := range map[string]bool{"": true, "0": true, "1": false, "2": false} {
			args := []string{"--set", way + ".enabled=true,httpRoute.parentRefs[0].name=external"}
			if hops != "" {
				args = append(args, "--set-string", "services.gateway.env.TRUSTED_PROXY_HOPS="+hops)
			}
			out, err := render(t, args...)
			if fails {
				if err == nil || !strings.Contains(err.Error(), "services.gateway.env.TRUSTED_PROXY_HOPS must be") {
					t.Errorf("%s with %q: %v", way, hops, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s with %q: %v", way, hops, err)
			}
			for _, o := range objects(t, out) {
				if o.Kind == "ConfigMap" && o.Metadata.Name == "holdfast-gateway" && o.Data["TRUSTED_PROXY_HOPS"] != hops {
					t.Errorf("%s with %q: the gateway gets %q", way, hops, o.Data["TRUSTED_PROXY_HOPS"])
				}
			}
		}
	}
}

// object is one rendered manifest.
type object struct {
	Kind     string
	Metadata struct {
		Name        string
		Labels      map[string]string
		Annotations map[string]string
	}
	Spec       map[string]any
	Data       map[string]string
	StringData map[string]string `yaml:"stringData"`
}

func objects(t *testing.T, rendered string) []object {
	t.Helper()
	var out []object
	for dec := yaml.NewDecoder(strings.NewReader(rendered)); ; {
		var o object
		err := dec.Decode(&o)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if o.Kind != "" {
			out = append(out, o)
		}
	}
}

// at returns the value at a path of map keys and list indexes.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[step]
		case int:
			l, _ := v.([]any)
			if step >= len(l) {
				return nil
			}
			v = l[step]
		}
	}
	return v
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// containers returns all containers of a pod, init containers included.
func containers(pod any) []any {
	return slices.Concat(list(at(pod, "initContainers")), list(at(pod, "containers")))
}

func TestEveryContainerIsRestricted(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, o := range objects(t, must(t, variants["production"]...)) {
		if !slices.Contains([]string{"Deployment", "Job", "CronJob", "Pod"}, o.Kind) {
			continue
		}
		pod := podOf(o)
		if at(pod, "securityContext", "runAsNonRoot") != true || at(pod, "securityContext", "runAsUser") != 65532 ||
			at(pod, "securityContext", "seccompProfile", "type") != "RuntimeDefault" || at(pod, "automountServiceAccountToken") != false {
			t.Errorf("%s %s: %v", o.Kind, o.Metadata.Name, pod)
		}
		for _, c := range containers(pod) {
			seen++
			if at(c, "securityContext", "allowPrivilegeEscalation") != false || at(c, "securityContext", "readOnlyRootFilesystem") != true ||
				!slices.Equal(list(at(c, "securityContext", "capabilities", "drop")), []any{"ALL"}) {
				t.Errorf("%s %s: %v", o.Kind, o.Metadata.Name, at(c, "securityContext"))
			}
			if at(c, "resources", "requests", "cpu") == nil || at(c, "resources", "limits", "memory") == nil || at(c, "resources", "limits", "ephemeral-storage") == nil {
				t.Errorf("%s %s has no bounds", o.Kind, o.Metadata.Name)
			}
		}
	}
	want := 1                            // helm test
	for _, s := range proto.Services() { // a service serves, migrates in two steps, and runs its jobs
		want += 1 + len(s.Jobs)
		if s.Database {
			want += 2
		}
	}
	if seen != want {
		t.Errorf("%d containers, not %d", seen, want)
	}
}

// podOf returns the pod template of the object.
func podOf(o object) any {
	switch o.Kind {
	case "Pod":
		return o.Spec
	case "CronJob":
		return at(o.Spec, "jobTemplate", "spec", "template", "spec")
	}
	return at(o.Spec, "template", "spec")
}

// TestUpkeepRunsAsTheOwner checks that the upkeep job runs the service's jobs with the owner's secret, which no serving pod has,
// and under the same network policies as the migration.
func TestUpkeepRunsAsTheOwner(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, o := range objects(t, must(t)) {
		switch o.Kind {
		case "CronJob":
			name := strings.TrimSuffix(o.Metadata.Name, "-upkeep")
			i := slices.IndexFunc(proto.Services(), func(s proto.Service) bool { return "holdfast-"+s.Name == name })
			if i < 0 || at(o.Spec, "jobTemplate", "spec", "template", "metadata", "labels", "app.kubernetes.io/component") != "migrate" {
				t.Errorf("%s: %v", o.Metadata.Name, o.Spec)
				continue
			}
			var jobs []string
			for _, c := range containers(podOf(o)) {
				seen++
				jobs = append(jobs, at(c, "args", 0).(string))
				if from := list(at(c, "envFrom")); len(from) != 1 || at(from[0], "secretRef", "name") != name+"-migrate" {
					t.Errorf("%s: %v", o.Metadata.Name, from)
				}
			}
			if !slices.Equal(jobs, proto.Services()[i].Jobs) {
				t.Errorf("%s runs %v", o.Metadata.Name, jobs)
			}
		case "Deployment":
			for _, from := range list(at(containers(podOf(o))[0], "envFrom")) {
				if name, _ := at(from, "secretRef", "name").(string); strings.HasSuffix(name, "-migrate") {
					t.Errorf("%s has %s", o.Metadata.Name, name)
				}
			}
		}
	}
	want := 0
	for _, s := range proto.Services() {
		want += len(s.Jobs)
	}
	if seen != want {
		t.Errorf("%d jobs, not %d", seen, want)
	}
}

func TestEveryServiceHasItsParts(t *testing.T) {
	t.Parallel()
	has := map[string]map[string]bool{}
	for _, o := range objects(t, must(t)) {
		if has[o.Kind] == nil {
			has[o.Kind] = map[string]bool{}
		}
		has[o.Kind][o.Metadata.Name] = true
	}
	for _, s := range services {
		for _, kind := range []string{"Deployment", "Service", "ServiceAccount", "ConfigMap", "PodDisruptionBudget", "NetworkPolicy"} {
			if !has[kind]["holdfast-"+s] {
				t.Errorf("%s has no %s", s, kind)
			}
		}
	}
	if !has["NetworkPolicy"]["holdfast-deny"] || has["Secret"] != nil {
		t.Errorf("deny: %v, secrets: %v", has["NetworkPolicy"]["holdfast-deny"], has["Secret"])
	}
}

// TestLongTagsMakeLabels checks tags that are too long for a label, or that end with an invalid character after truncation. The
// label is then the beginning of the tag.
func TestLongTagsMakeLabels(t *testing.T) {
	t.Parallel()
	for tag, label := range map[string]string{
		"1.2.3":                               "1.2.3",
		"v":                                   "v",
		strings.Repeat("ab", 32):              strings.Repeat("ab", 31) + "a",
		"_1.2.3-rc.1_":                        "1.2.3-rc.1",
		strings.Repeat("a", 61) + "-.2-later": strings.Repeat("a", 61),
	} {
		for _, o := range objects(t, must(t, "--set-string", "defaults.image.tag="+tag)) {
			if got, ok := o.Metadata.Labels["app.kubernetes.io/version"]; ok && got != label {
				t.Errorf("%s %s: %q", o.Kind, o.Metadata.Name, got)
			}
			if o.Kind == "Deployment" {
				if image, _ := at(list(at(o.Spec, "template", "spec", "containers"))[0], "image").(string); !strings.HasSuffix(image, ":"+tag) {
					t.Errorf("%s runs %s", o.Metadata.Name, image)
				}
			}
		}
	}
}

// count counts the services for which such returns true.
func count(such func(proto.Service) bool) int {
	n := 0
	for _, s := range proto.Services() {
		if such(s) {
			n++
		}
	}
	return n
}

// TestMigrationsNeedOnlyTheirSecret checks that the hook Jobs do not need objects that are missing in a first or failed
// installation.
func TestMigrationsNeedOnlyTheirSecret(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, o := range objects(t, must(t)) {
		if o.Kind != "Job" {
			continue
		}
		seen++
		pod := at(o.Spec, "template", "spec")
		if o.Metadata.Annotations["helm.sh/hook"] != "pre-install,pre-upgrade" || o.Metadata.Annotations["helm.sh/hook-delete-policy"] != "before-hook-creation,hook-succeeded" ||
			at(pod, "serviceAccountName") != nil || at(pod, "volumes") != nil || len(containers(pod)) != 2 {
			t.Errorf("%s: %v", o.Metadata.Name, pod)
		}
		for _, c := range containers(pod) {
			from := list(at(c, "envFrom"))
			if len(from) != 1 || at(from[0], "secretRef", "name") != o.Metadata.Name {
				t.Errorf("%s: %v", o.Metadata.Name, from)
			}
		}
	}
	if want := count(func(s proto.Service) bool { return s.Database }); seen != want {
		t.Errorf("%d migrations, not %d", seen, want)
	}
}

var setting = regexp.MustCompile(`env:"([A-Z][A-Z0-9_]*)[^"]*"(?: envDefault:"([^"]*)")?`)

// settings returns the settings of a service with their defaults.
func settings(t *testing.T, service string) map[string][]string {
	t.Helper()
	known := map[string][]string{}
	files, _ := filepath.Glob("../libs/*/*.go")
	for _, file := range append(files, "../services/"+service+"/config.go") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range setting.FindAllStringSubmatch(string(text), -1) {
			known[m[1]] = append(known[m[1]], m[2])
		}
	}
	return known
}

// upstreamOf matches the setting with the address of one service. The services that call it have this setting.
var upstreamOf = regexp.MustCompile(`^UPSTREAM_([A-Z0-9]+)_URL$`)

func calls(service, upstream string) bool {
	s, ok := proto.ServiceNamed(service)
	return ok && slices.Contains(s.Calls, upstream)
}

// TestSettingsAreKnown checks that each variable that the charts set is a setting of the service.
func TestSettingsAreKnown(t *testing.T) {
	t.Parallel()
	known := map[string]map[string][]string{}
	for _, s := range services {
		known[s] = settings(t, s)
	}
	for name, args := range variants {
		for _, o := range objects(t, must(t, args...)) {
			s := strings.TrimPrefix(o.Metadata.Name, "holdfast-")
			if o.Kind != "ConfigMap" || known[s] == nil {
				continue
			}
			for key := range o.Data {
				if upstream := upstreamOf.FindStringSubmatch(key); upstream != nil && calls(s, strings.ToLower(upstream[1])) {
					continue
				}
				if known[s][key] == nil {
					t.Errorf("%s: %s does not know %s", name, s, key)
				}
			}
		}
	}
}

// TestSkaffold checks that skaffold.yaml builds every service from existing paths, and deploys this chart.
func TestSkaffold(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../skaffold.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	release := at(config, "deploy", "helm", "releases", 0)
	paths := append([]any{at(release, "chartPath")}, list(at(release, "valuesFiles"))...)
	var built []string
	for _, artifact := range list(at(config, "build", "artifacts")) {
		s := strings.TrimPrefix(at(artifact, "image").(string), "holdfast/")
		built = append(built, s)
		command := strings.Fields(at(artifact, "custom", "buildCommand").(string))
		if len(command) != 3 || command[1] != s || command[2] != "skaffold" {
			t.Errorf("%s is built by %v", s, command)
		}
		paths = append(append(paths, command[0]), list(at(artifact, "custom", "dependencies", "paths"))...)
		for _, key := range []string{".image.repository", ".image.tag"} {
			if at(release, "setValueTemplates", "services."+s+key) == nil {
				t.Errorf("%s%s is not set", s, key)
			}
		}
	}
	if slices.Sort(built); !slices.Equal(built, slices.Sorted(slices.Values(services))) {
		t.Errorf("it builds %v", built)
	}
	for _, path := range paths {
		if _, err := os.Stat("../" + path.(string)); err != nil {
			t.Error(err)
		}
	}
	var profiles []string
	for _, p := range list(at(config, "profiles")) {
		profiles = append(profiles, at(p, "name").(string))
	}
	if !slices.Equal(profiles, []string{"kind", "production"}) {
		t.Errorf("its profiles are %v", profiles)
	}
}
