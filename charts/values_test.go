package charts_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/libs/testservers"
	"holdfast.dev/proto"
)

func valuesFile(t *testing.T, name string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/values", name))
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// every are the arguments that set each value; others also set those that replace another one.
var (
	every  = []string{"-f", "../testdata/values/every.yaml"}
	others = slices.Concat(every, []string{"-f", "../testdata/values/every-other.yaml"})
)

// unread are the values that do not appear in objects as they are, with what checks them instead.
var unread = map[string]string{
	"global":                      "TestWrapper",
	"defaults.secrets.mode":       "TestSecretFiles",
	"defaults.drain.graceSeconds": "STOP_TIMEOUT: \"38s\"",
	"defaults.pdb.minAvailable":   "minAvailable: 33%",
	"defaults.external.nodePort":  "nodePort: 30117",
	"ingress.controller":          "haproxy.router.openshift.io/timeout: 109s",
	"ingress.timeoutSeconds":      "nginx.ingress.kubernetes.io/proxy-read-timeout: \"109\"",
	"fullnameOverride":            "name: every-bookings",
	"networkPolicies.guarded":     "name: every-redis-hook",
	"edges":                       "cidr: 192.0.2.19/32",
	"defaults.pod":                "runAsUser: 1000650000",
	"defaults.podLabels":          "every-pod-label: pod-2",
	"defaults.migrate.podLabels":  "every-migrate-label: migrate-2",
	"extraObjects":                "name: every-text-object",
	"services":                    "digest of bookings",
	"defaults.mounts":             "name: every-mount",
	"defaults.trustBundles":       "value: /etc/holdfast/trust/every-trust:/etc/holdfast/trust/every-ca",
	"defaults.metadata":           "argocd.argoproj.io/sync-wave: \"107\"",
	"defaults.image.digest":       "@sha256:0a0a",
	"defaults.image.repository":   "image: registry.every.test/every/gateway:every-tag",
	"defaults.secrets.keys":       "value: /every/secrets/EVERY_KEY",
	"defaults.strategy":           "maxUnavailable: 13%",
	"defaults.pdb.maxUnavailable": "maxUnavailable: 41%",
	"networks":                    "port: 4319",
	"authUrl":                     "AUTH_URL: \"https://sign-in.every.test\"",
	"publicUrl":                   "PUBLIC_URL: \"https://api.every.test\"",
}

var row = regexp.MustCompile("(?m)^\\| `([a-zA-Z.]+)` \\| ([^|]*) \\|")

// TestEachValueReachesAnObject checks that the file every.yaml sets each value of the reference, and that each string and number in
// it appears in an object.
func TestEachValueReachesAnObject(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("platform/VALUES.md")
	if err != nil {
		t.Fatal(err)
	}
	rendered := must(t, every...) + must(t, others...)
	values, more := valuesFile(t, "every.yaml"), valuesFile(t, "every-other.yaml")
	rows := 0
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		if m[2] == "group" {
			continue
		}
		rows++
		var path []any
		for step := range strings.SplitSeq(m[1], ".") {
			path = append(path, step)
		}
		found := []any{at(values, path...), at(more, path...), at(values, slices.Concat([]any{"services", "bookings"}, path[1:])...)}
		if found = slices.DeleteFunc(found, func(v any) bool { return v == nil }); len(found) == 0 {
			t.Errorf("every.yaml does not set %s", m[1])
		}
		if want, ok := unread[m[1]]; ok {
			if strings.Contains(want, ":") && !strings.Contains(rendered, want) {
				t.Errorf("%s: no object has %s", m[1], want)
			}
			continue
		}
		for _, v := range found {
			for _, scalar := range scalars(v) {
				if !regexp.MustCompile(`(^|[^0-9a-zA-Z])` + regexp.QuoteMeta(scalar) + `([^0-9]|$)`).MatchString(rendered) {
					t.Errorf("%s: no object has %s", m[1], scalar)
				}
			}
		}
	}
	if rows < 120 {
		t.Errorf("%d values", rows)
	}
}

// scalars returns the strings and numbers in v. Booleans, zero and empty strings identify nothing.
func scalars(v any) (all []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			all = append(all, scalars(inner)...)
		}
	case []any:
		for _, inner := range v {
			all = append(all, scalars(inner)...)
		}
	case string, int:
		if v != "" && v != 0 {
			all = append(all, fmt.Sprint(v))
		}
	}
	return all
}

// TestPlacements checks where values of every.yaml appear: those of pods in all pods of a service or only in its own.
func TestPlacements(t *testing.T) {
	t.Parallel()
	rendered := must(t, every...)
	serving := podOf(find(t, rendered, "Deployment", "every-bookings"))
	job := podOf(find(t, rendered, "Job", "every-bookings-migrate"))
	cron := podOf(find(t, rendered, "CronJob", "every-bookings-upkeep"))
	test := podOf(find(t, rendered, "Pod", "every-gateway-test"))
	for name, pod := range map[string]any{"serving": serving, "migration": job, "upkeep": cron, "test": test} {
		for _, field := range []string{"priorityClassName", "runtimeClassName", "schedulerName", "nodeSelector", "tolerations", "affinity", "dnsPolicy", "dnsConfig", "hostAliases", "imagePullSecrets"} {
			if at(pod, field) == nil || !reflect.DeepEqual(at(pod, field), at(serving, field)) {
				t.Errorf("%s of %s: %v", field, name, at(pod, field))
			}
		}
		if sc := at(pod, "securityContext"); at(sc, "runAsUser") != 1000650000 || at(sc, "runAsGroup") != nil || at(sc, "runAsNonRoot") != true {
			t.Errorf("the context of %s: %v", name, sc)
		}
		if got := len(list(at(pod, "volumes"))); name != "test" && got != 6 || name == "test" && got != 0 { // 2 mounts, 2 trust bundles, the Secret, 1 extra
			t.Errorf("%s has %d volumes: %v", name, got, at(pod, "volumes"))
		}
	}
	for name, want := range map[string]struct {
		pod     any
		account string
		names   []string
	}{
		"serving":   {serving, "every-account", []string{"every-init", "bookings", "every-sidecar"}},
		"migration": {job, "every-migrate-account", []string{"every-migrate-init", "migrate", "topics"}},
		"upkeep":    {cron, "every-migrate-account", []string{"every-migrate-init", "integrity"}},
		"test":      {test, "every-gateway", []string{"test"}},
	} {
		var names []string
		for _, c := range containers(want.pod) {
			names = append(names, at(c, "name").(string))
		}
		if !slices.Equal(names, want.names) || at(want.pod, "serviceAccountName") != want.account {
			t.Errorf("%s has %v and the account %v", name, names, at(want.pod, "serviceAccountName"))
		}
	}
	deployment := find(t, rendered, "Deployment", "every-bookings")
	labels := at(deployment.Spec, "template", "metadata", "labels")
	if at(labels, "every-pod-label") != "pod-2" || at(labels, "app.kubernetes.io/name") != "bookings" {
		t.Errorf("the pods have %v", labels)
	}
	if a := deployment.Metadata.Annotations; a["argocd.argoproj.io/sync-wave"] != "107" || a["every-all-annotation"] != "all-2" {
		t.Errorf("the Deployment has %v", a)
	}
	if a := find(t, rendered, "Job", "every-bookings-migrate").Metadata.Annotations; a["helm.sh/hook-weight"] != "5" || a["helm.sh/hook"] != "pre-install,pre-upgrade" {
		t.Errorf("the Job has %v", a)
	}
	if spread := at(serving, "topologySpreadConstraints", 0); at(spread, "labelSelector", "matchLabels", "app.kubernetes.io/name") != "bookings" {
		t.Errorf("pods are spread by %v", spread)
	}
	for _, o := range objects(t, rendered) { // each object has the labels and annotations of all objects, those of extraObjects excepted
		if !strings.HasSuffix(o.Metadata.Name, "-object") && (o.Metadata.Labels["every-all-label"] != "all-1" || o.Metadata.Annotations["every-all-annotation"] != "all-2") {
			t.Errorf("%s %s: %v %v", o.Kind, o.Metadata.Name, o.Metadata.Labels, o.Metadata.Annotations)
		}
	}
}

// TestHostsFollowTheURLs checks that the Ingress and the HTTPRoute serve the hosts of both URLs if no hosts are listed.
func TestHostsFollowTheURLs(t *testing.T) {
	t.Parallel()
	args := []string{"--set", "publicUrl=https://api.holdfast.test,authUrl=https://login.holdfast.test:8443,ingress.enabled=true,httpRoute.enabled=true,httpRoute.parentRefs[0].name=external,ingress.tlsSecret=tls", "--set-string", "services.gateway.env.TRUSTED_PROXY_HOPS=1"}
	rendered := must(t, args...)
	want := []any{"api.holdfast.test", "login.holdfast.test"}
	ingress := find(t, rendered, "Ingress", "holdfast-gateway").Spec
	var rules []any
	for _, rule := range list(ingress["rules"]) {
		rules = append(rules, at(rule, "host"))
	}
	if route := find(t, rendered, "HTTPRoute", "holdfast-gateway").Spec["hostnames"]; !reflect.DeepEqual(route, any(want)) || !reflect.DeepEqual(rules, want) || !reflect.DeepEqual(at(ingress, "tls", 0, "hosts"), any(want)) {
		t.Errorf("route %v, rules %v, TLS %v", route, rules, ingress["tls"])
	}
	if env := find(t, rendered, "ConfigMap", "holdfast-identity").Data; env["PUBLIC_URL"] != "https://api.holdfast.test" || env["AUTH_URL"] != "https://login.holdfast.test:8443" {
		t.Errorf("identity has %v", env)
	}
	if env := find(t, must(t, args[0], strings.Replace(args[1], "authUrl=https://login.holdfast.test:8443,", "", 1), args[2], args[3]), "ConfigMap", "holdfast-identity").Data; env["AUTH_URL"] != "https://api.holdfast.test" {
		t.Errorf("without authUrl, identity has %v", env)
	}
}

// TestSecretFiles checks that each key that `identity keys init` creates for a Secret is a file that its setting refers to, and that no
// container has the Secret as environment variables. Roles and the login's name are no secrets, and have no files.
func TestSecretFiles(t *testing.T) {
	t.Parallel()
	want := created(t)
	rendered := must(t, "--set", "defaults.secrets.mode=files")
	for _, s := range proto.Services() {
		pods := map[string]any{"holdfast-" + s.Name: podOf(find(t, rendered, "Deployment", "holdfast-"+s.Name))}
		if s.Database {
			pods["holdfast-"+s.Name+"-migrate"] = podOf(find(t, rendered, "Job", "holdfast-"+s.Name+"-migrate"))
		}
		for secret, pod := range pods {
			for _, c := range containers(pod) {
				var keys []string
				for _, env := range list(at(c, "env")) {
					name := at(env, "name").(string)
					if setting, ok := strings.CutSuffix(name, "_FILE"); ok {
						keys = append(keys, setting)
						if at(env, "value") != "/etc/holdfast/secrets/"+setting {
							t.Errorf("%s: %v", s.Name, env)
						}
					} else if at(env, "valueFrom", "secretKeyRef", "name") == secret {
						keys = append(keys, name)
					}
				}
				slices.Sort(keys)
				if want := slices.Sorted(slices.Values(want[secret])); !slices.Equal(keys, want) || len(want) == 0 {
					t.Errorf("%s: %v, the command creates %v", secret, keys, want)
				}
				for _, from := range list(at(c, "envFrom")) {
					if at(from, "secretRef") != nil {
						t.Errorf("%s has %v", s.Name, from)
					}
				}
				if mount := at(c, "volumeMounts", 0); at(mount, "mountPath") != "/etc/holdfast/secrets" || at(mount, "readOnly") != true || at(mount, "name") != secret {
					t.Errorf("%s mounts %v", s.Name, mount)
				}
			}
			if at(pod, "volumes", 0, "secret", "secretName") != secret {
				t.Errorf("%s has the volumes %v", s.Name, at(pod, "volumes"))
			}
		}
	}
	login := must(t, "--set", "defaults.secrets.mode=files,defaults.env.KAFKA_SASL_MECHANISM=plain,services.identity.secrets.keys.MAIL_URL=true,services.identity.secrets.keys.REDIS_URL=false")
	identity, migration := fmt.Sprint(find(t, login, "Deployment", "holdfast-identity")), fmt.Sprint(find(t, login, "Job", "holdfast-identity-migrate"))
	for _, want := range []string{"KAFKA_SASL_PASSWORD_FILE", "name:KAFKA_SASL_USERNAME valueFrom", "MAIL_URL_FILE"} {
		if !strings.Contains(identity, want) || want != "MAIL_URL_FILE" && !strings.Contains(migration, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(identity, "REDIS_URL") {
		t.Error("REDIS_URL: false is ignored")
	}
	if none := must(t, "--set", "defaults.secrets.mode=none"); strings.Contains(none, "secretRef") || strings.Contains(none, "secretName") || strings.Contains(none, "_FILE") {
		t.Error("in the mode none, a container refers to a Secret")
	}
}

// TestExistingAccounts checks that the migrations of the first installation use no account that the chart creates later, but one
// that exists.
func TestExistingAccounts(t *testing.T) {
	t.Parallel()
	for set, want := range map[string][2]any{ // of the service, of its migration
		"defaults.enabled=true":                                                                 {"holdfast-bookings", nil},
		"services.bookings.serviceAccount.name=own":                                             {"own", nil},
		"defaults.serviceAccount.create=false":                                                  {"default", "default"},
		"defaults.serviceAccount.create=false,defaults.serviceAccount.name=theirs":              {"theirs", "theirs"},
		"defaults.migrate.serviceAccountName=migrator":                                          {"holdfast-bookings", "migrator"},
		"services.bookings.serviceAccount.create=false,services.bookings.serviceAccount.name=b": {"b", "b"},
	} {
		rendered := must(t, "--set", set)
		got := [2]any{at(podOf(find(t, rendered, "Deployment", "holdfast-bookings")), "serviceAccountName"), at(podOf(find(t, rendered, "Job", "holdfast-bookings-migrate")), "serviceAccountName")}
		if got != want {
			t.Errorf("%s: %v, not %v", set, got, want)
		}
		created := strings.Contains(rendered, "kind: ServiceAccount\nmetadata:\n  name: "+fmt.Sprint(want[0])+"\n")
		if creates := !strings.Contains(set, "create=false"); created != creates {
			t.Errorf("%s: the chart creates the account: %v", set, created)
		}
	}
}

// TestWrapper installs the chart as a dependency under an alias: it renders the same objects as alone, with the same values.
func TestWrapper(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for from, to := range map[string]string{"platform": "platform", "testdata/wrapper": "wrapper"} {
		if err := os.CopyFS(filepath.Join(dir, to), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	wrapper := filepath.Join(dir, "wrapper")
	cmd := exec.Command(testservers.Tool(t, "HELM"), "dependency", "build")
	cmd.Dir, cmd.Env = wrapper, append(os.Environ(), "HELM_CACHE_HOME="+dir, "HELM_CONFIG_HOME="+dir, "HELM_DATA_HOME="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	rendered, err := renderChart(t, wrapper)
	if err != nil {
		t.Fatal(err)
	}
	alone := must(t, "--set", "defaults.image.tag=1.2.3,defaults.pod.securityContext.runAsUser=null,defaults.pod.securityContext.runAsGroup=null,services.bookings.replicas=4")
	if got, want := objects(t, rendered), objects(t, alone); !reflect.DeepEqual(got, want) || len(got) < 50 {
		t.Errorf("%d objects, alone %d", len(got), len(want))
	}
	both, err := renderChart(t, wrapper, "--set", "second.enabled=true")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, o := range objects(t, both) { // neither names nor selectors of two platforms in a release are the same
		name, instance := o.Kind+" "+o.Metadata.Name, o.Metadata.Labels["app.kubernetes.io/instance"]
		if seen[name] || !strings.HasPrefix(o.Metadata.Name, instance) {
			t.Errorf("%s of %s, seen before: %v", name, instance, seen[name])
		}
		seen[name] = true
	}
	if len(seen) != 2*len(objects(t, alone)) {
		t.Errorf("%d objects of two platforms", len(seen))
	}
	if off, err := renderChart(t, wrapper, "--set", "booking.enabled=false"); err != nil || len(objects(t, off)) != 0 {
		t.Errorf("without the dependency: %v\n%s", err, off)
	}
	if _, err := renderChart(t, wrapper, "--set", "booking.services.bookings.replica=3"); err == nil || !strings.Contains(err.Error(), "replica") {
		t.Errorf("a typo in the wrapper: %v", err)
	}
}
