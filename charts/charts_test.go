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
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// services are the blocks of charts/platform.
var services = []string{"gateway", "identity", "customers", "bookings", "webhooks"}

// tool is the path that `make test` gives of a program.
func tool(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Fatalf("%s is not set: run `make test`, which builds the tools", variable)
	}
	return path
}

// folder is a copy of the charts whose dependencies are built.
var folder = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "holdfast-charts-")
	if err != nil {
		return "", err
	}
	for _, name := range []string{"service", "platform"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(name)); err != nil {
			return "", err
		}
	}
	out, err := exec.Command(os.Getenv("HELM"), "dependency", "build", filepath.Join(dir, "platform"), "--skip-refresh").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if dir, err := folder(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// render is what helm makes of values; an error is helm's own words.
func render(t *testing.T, args ...string) (string, error) {
	t.Helper()
	helm := tool(t, "HELM")
	dir, err := folder()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(helm, append([]string{"template", "holdfast", ".", "--namespace", "holdfast", "--kube-version", "1.30.0"}, args...)...)
	cmd.Dir = filepath.Join(dir, "platform")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return "", errors.New(said.String())
	}
	return out.String(), nil
}

// variants are the values that are rendered into golden files.
var variants = map[string][]string{
	"default": nil, "dev": {"-f", "values-dev.yaml"}, "production": {"-f", "values-production.yaml"},
	"keda": {"--set", "bookings.autoscaling.keda.enabled=true,bookings.autoscaling.keda.topics={customers},bookings.autoscaling.keda.bootstrapServers=kafka:9092,bookings.autoscaling.keda.consumerGroup=holdfast.bookings,httpRoute.enabled=true", "--set-string", "gateway.env.TRUSTED_PROXY_HOPS=1"},
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
	helm := tool(t, "HELM")
	dir, err := folder()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"service"}, {"platform"}, {"platform", "-f", "platform/values-dev.yaml"}, {"platform", "-f", "platform/values-production.yaml"}} {
		cmd := exec.Command(helm, append([]string{"lint", "--strict", "--kube-version", "1.30.0"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", args, out)
		}
	}
}

// Values that cannot work are refused in words that name them.
func TestBadValues(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]string{
		"bookings.replicas=many":                        "replicas",
		"bookings.replica=3":                            "replica",
		"gateway.port=0":                                "port",
		"gateway.env.lower=x":                           "lower",
		"gateway.env.LIMIT=5":                           "LIMIT",
		"webhooks.drain.graceSeconds=5":                 "graceSeconds",
		"identity.image.pullPolicy=Sometimes":           "pullPolicy",
		"customers.autoscaling.cpuPercent=0":            "cpuPercent",
		"bookings.mounts[0].secret=ca":                  "path",
		"bookings.pdb.maxUnavailable=0":                 "maxUnavailable",
		"paymentz.replicas=2":                           "paymentz",
		"edges[0].from=ingress,edges[0].to={gatweay}":   "gatweay",
		"edges[0].from=strangers,edges[0].to={gateway}": "strangers",
		"edges[0].from=ingress":                         "to",
		"networks.redis.port=6379":                      "port",
		"gateway.external.type=Ingress":                 "type",
		"networkPolicies.guarded={redsi}":               "redsi",
		"gateway.env.TRUSTED_PROXY_HOPS=one":            "TRUSTED_PROXY_HOPS",
	} {
		if _, err := render(t, "--set", set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", set, err)
		}
	}
}

// Behind a proxy every client has the proxy's address, unless the gateway knows how many there are.
func TestAWayInNeedsHops(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"ingress", "httpRoute"} {
		for hops, fails := range map[string]bool{"": true, "0": true, "1": false, "2": false} {
			args := []string{"--set", way + ".enabled=true"}
			if hops != "" {
				args = append(args, "--set-string", "gateway.env.TRUSTED_PROXY_HOPS="+hops)
			}
			out, err := render(t, args...)
			if fails {
				if err == nil || !strings.Contains(err.Error(), "gateway.env.TRUSTED_PROXY_HOPS must say") {
					t.Errorf("%s with %q: %v", way, hops, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s with %q: %v", way, hops, err)
			}
			for _, o := range objects(t, out) {
				if o.Kind == "ConfigMap" && o.Metadata.Name == "holdfast-gateway" && o.Data["TRUSTED_PROXY_HOPS"] != hops {
					t.Errorf("%s with %q: the gateway is told %q", way, hops, o.Data["TRUSTED_PROXY_HOPS"])
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
	Spec map[string]any
	Data map[string]string
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

// at walks maps and lists.
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

// containers are all of a pod, those that go first included.
func containers(pod any) []any {
	return slices.Concat(list(at(pod, "initContainers")), list(at(pod, "containers")))
}

func TestEveryContainerIsRestricted(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, o := range objects(t, must(t, variants["production"]...)) {
		if o.Kind != "Deployment" && o.Kind != "Job" && o.Kind != "CronJob" {
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
			if at(c, "resources", "requests", "cpu") == nil || at(c, "resources", "limits", "memory") == nil {
				t.Errorf("%s %s has no bounds", o.Kind, o.Metadata.Name)
			}
		}
	}
	if seen != 14 { // five services, four migrations of two steps, the upkeep of webhooks
		t.Errorf("%d containers", seen)
	}
}

// podOf is what the object runs.
func podOf(o object) any {
	if o.Kind == "CronJob" {
		return at(o.Spec, "jobTemplate", "spec", "template", "spec")
	}
	return at(o.Spec, "template", "spec")
}

// The upkeep has the owner's secret, which no pod that serves has, and the migration's ways through the policies.
func TestUpkeepRunsAsTheOwner(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, o := range objects(t, must(t)) {
		switch o.Kind {
		case "CronJob":
			seen++
			c := containers(podOf(o))[0]
			if o.Metadata.Name != "holdfast-webhooks-upkeep" || at(list(at(c, "envFrom"))[0], "secretRef", "name") != "holdfast-webhooks-migrate" ||
				at(list(at(c, "args"))[0]) != "partitions" ||
				at(o.Spec, "jobTemplate", "spec", "template", "metadata", "labels", "app.kubernetes.io/component") != "migrate" {
				t.Errorf("%s: %v", o.Metadata.Name, c)
			}
		case "Deployment":
			for _, from := range list(at(containers(podOf(o))[0], "envFrom")) {
				if name, _ := at(from, "secretRef", "name").(string); strings.HasSuffix(name, "-migrate") {
					t.Errorf("%s has %s", o.Metadata.Name, name)
				}
			}
		}
	}
	if seen != 1 {
		t.Errorf("%d upkeeps", seen)
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

// A tag may be longer than a label, and end in what no label may end in; the label is then its beginning.
func TestLongTagsMakeLabels(t *testing.T) {
	t.Parallel()
	for tag, label := range map[string]string{
		"1.2.3":                               "1.2.3",
		"v":                                   "v",
		strings.Repeat("ab", 32):              strings.Repeat("ab", 31) + "a",
		"_1.2.3-rc.1_":                        "1.2.3-rc.1",
		strings.Repeat("a", 61) + "-.2-later": strings.Repeat("a", 61),
	} {
		for _, o := range objects(t, must(t, "--set-string", "global.image.tag="+tag)) {
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

// The hook Jobs stand on nothing that a failed or first install lacks.
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
	if seen != 4 {
		t.Errorf("%d migrations", seen)
	}
}

// The policies allow the edges of the values, and no others.
func TestPoliciesAreTheEdges(t *testing.T) {
	t.Parallel()
	want := []string{
		"bookings → customers", "bookings → identity", "bookings → kafka", "bookings → postgres", "customers → kafka", "customers → postgres",
		"gateway → bookings", "gateway → customers", "gateway → identity", "gateway → redis", "gateway → webhooks",
		"identity → kafka", "identity → postgres", "identity → redis", "migrate → kafka", "migrate → postgres", "webhooks → kafka", "webhooks → postgres",
	}
	var in, out []string
	guarded := []string{"postgres", "redis", "kafka"}
	for _, o := range objects(t, must(t, variants["dev"]...)) {
		if o.Kind != "NetworkPolicy" || o.Metadata.Name == "holdfast-deny" {
			continue
		}
		self := strings.TrimPrefix(o.Metadata.Name, "holdfast-")
		for _, rule := range list(o.Spec["ingress"]) {
			for _, peer := range list(at(rule, "from")) {
				if name, ok := at(peer, "podSelector", "matchLabels", "app.kubernetes.io/component").(string); ok {
					in = append(in, name+" → "+self)
				}
				if name, ok := at(peer, "podSelector", "matchLabels", "app.kubernetes.io/name").(string); ok {
					in = append(in, name+" → "+self)
				}
			}
		}
		for _, rule := range list(o.Spec["egress"]) {
			for _, peer := range list(at(rule, "to")) {
				if name, ok := at(peer, "podSelector", "matchLabels", "app.kubernetes.io/name").(string); ok && (slices.Contains(services, name) || slices.Contains(guarded, name)) {
					out = append(out, self+" → "+name)
				}
			}
		}
	}
	slices.Sort(in)
	slices.Sort(out)
	if !slices.Equal(in, want) || !slices.Equal(out, want) {
		t.Errorf("in  %v\nout %v\nwant %v", in, out, want)
	}
}

var setting = regexp.MustCompile(`env:"([A-Z][A-Z0-9_]*)[^"]*"(?: envDefault:"([^"]*)")?`)

// settings are those that a service knows, each with its defaults.
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

// Each variable that the charts set is a setting that the service knows.
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
				if known[s][key] == nil && (s != "gateway" || !strings.HasPrefix(key, "KAFKA_")) { // global.env is for all
					t.Errorf("%s: %s does not know %s", name, s, key)
				}
			}
		}
	}
}

// What is rendered is what Kubernetes takes; kinds of operators are left out, whose schemas are theirs.
func TestKubernetesTakesIt(t *testing.T) {
	t.Parallel()
	validate := tool(t, "KUBECTL_VALIDATE")
	for name, args := range variants {
		dir := t.TempDir()
		var kept []string
		for doc := range strings.SplitSeq(must(t, args...), "\n---\n") {
			foreign := regexp.MustCompile(`(?m)^apiVersion: (monitoring\.coreos\.com|keda\.sh|gateway\.networking)`).MatchString(doc)
			if !foreign && strings.Contains(doc, "kind:") {
				kept = append(kept, doc)
			}
		}
		file := filepath.Join(dir, "all.yaml")
		if err := os.WriteFile(file, []byte(strings.Join(kept, "\n---\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(validate, "--version", "1.30", file).CombinedOutput(); err != nil || !strings.Contains(string(out), "OK") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// Each alert fires when it should and not before.
func TestAlerts(t *testing.T) {
	t.Parallel()
	promtool := tool(t, "PROMTOOL")
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = "platform/files"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %s", args, out)
		}
	}
}

// skaffold.yaml builds every service from paths that are there, and deploys this chart.
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
		if len(command) != 2 || command[1] != s {
			t.Errorf("%s is built by %v", s, command)
		}
		paths = append(append(paths, command[0]), list(at(artifact, "custom", "dependencies", "paths"))...)
		for _, key := range []string{".image.repository", ".image.tag"} {
			if at(release, "setValueTemplates", s+key) == nil {
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
