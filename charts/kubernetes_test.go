package charts_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/libs/testservers"
)

// releases are the versions of Kubernetes that the chart supports and whose schemas .ci/kubernetes-schemas provides.
var releases = []string{"1.30.0", "1.31.0", "1.32.0", "1.33.0", "1.34.0"}

// conform validates the manifests in a file or folder against the schemas of a release of Kubernetes and of the operators' objects.
func conform(t *testing.T, release, path string) (string, error) {
	t.Helper()
	schemas := testservers.Tool(t, "SCHEMAS")
	out, err := exec.Command(testservers.Tool(t, "KUBECONFORM"), "-strict", "-summary", "-kubernetes-version", release,
		"-schema-location", schemas+"/{{ .NormalizedKubernetesVersion }}/{{ .ResourceKind }}{{ .KindSuffix }}.json",
		"-schema-location", schemas+"/crds/{{ .ResourceKind }}{{ .KindSuffix }}.json", path).CombinedOutput()
	return string(out), err
}

// TestKubernetesAcceptsManifests checks that each supported release of Kubernetes accepts what the chart renders with its own values
// and with those of the examples, including the objects of operators.
func TestKubernetesAcceptsManifests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	all := maps.Clone(variants)
	all["cluster-values"], all["every"], all["others"] = clusterValues, every, others
	maps.Copy(all, examples(t))
	want := 0
	for name, args := range all {
		rendered := must(t, args...)
		seen := map[string]bool{}
		for _, o := range objects(t, rendered) {
			want++
			if id := o.Kind + " " + o.Metadata.Name; seen[id] {
				t.Errorf("%s: two of %s", name, id)
			} else {
				seen[id] = true
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(rendered), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, release := range releases {
		out, err := conform(t, release, dir)
		if err != nil || !strings.Contains(out, fmt.Sprintf("%d resources found in %d files - Valid: %[1]d, Invalid: 0, Errors: 0, Skipped: 0", want, len(all))) {
			t.Errorf("%s: %v\n%s", release, err, out)
		}
		t.Logf("%s: %s", release, out)
	}
}

// TestKubernetesRejectsManifests checks that the validation finds an unknown field, a wrong type and an unknown kind, so that it
// can fail.
func TestKubernetesRejectsManifests(t *testing.T) {
	t.Parallel()
	for manifest, want := range map[string]string{
		"{ apiVersion: apps/v1, kind: Deployment, metadata: { name: a }, spec: { replica: 2, selector: {}, template: {} } }":                 "'replica' not allowed",
		"{ apiVersion: v1, kind: ConfigMap, metadata: { name: a }, data: { port: 8080 } }":                                                   "got number, want string",
		"{ apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: { name: a }, spec: { selector: {}, endpoint: [] } }":        "'endpoint' not allowed",
		"{ apiVersion: example.com/v1, kind: Unknown, metadata: { name: a } }":                                                               "could not find schema",
		"{ apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: { name: a }, spec: { maxUnavailable: true, selector: {} } }":          "got boolean, want number or string",
		"{ apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: { name: a }, spec: { rules: [{ timeouts: { all: 1s } }] } }": "'all' not allowed",
	} {
		file := filepath.Join(t.TempDir(), "manifest.yaml")
		if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, release := range releases {
			if out, err := conform(t, release, file); err == nil || !strings.Contains(out, want) {
				t.Errorf("%s: %v: %s", release, err, out)
			}
		}
	}
}

// examples returns the arguments that render each of the examples.
func examples(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("examples/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%v %v", files, err)
	}
	all := map[string][]string{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if name == "kind" { // in addition to the values that `make kind-install` sets
			all[name] = []string{"-f", "values-dev.yaml", "-f", "../" + file}
		} else {
			all[name] = append(overlay(t, name), "-f", site(name))
		}
	}
	return all
}

// application returns the arguments for the values of an Application of Argo CD.
func application(t *testing.T, file string) (args []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var app map[string]any
	if err := yaml.Unmarshal(text, &app); err != nil {
		t.Fatal(err)
	}
	for _, name := range list(at(app, "spec", "source", "helm", "valueFiles")) {
		args = append(args, "-f", name.(string))
	}
	if text, err = yaml.Marshal(at(app, "spec", "source", "helm", "valuesObject")); err != nil {
		t.Fatal(err)
	}
	values := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(values, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return append(args, "-f", values)
}

// TestExamples checks what each example is about.
func TestExamples(t *testing.T) {
	t.Parallel()
	rendered := map[string]string{}
	for name, args := range examples(t) {
		rendered[name] = must(t, args...)
	}
	for _, release := range releases {
		if out, err := conform(t, release, "examples/argocd.yaml"); err != nil {
			t.Errorf("%s: %s", release, out)
		}
	}
	eks := find(t, rendered["eks"], "ConfigMap", "holdfast-bookings").Data
	if eks["KAFKA_TLS"] != "true" || eks["KAFKA_SASL_MECHANISM"] != "scram-sha-512" || eks["PUBLIC_URL"] != "https://api.holdfast.test" || eks["KAFKA_CA_FILE"] != "" {
		t.Errorf("eks: %v", eks)
	}
	find(t, rendered["eks"], "ScaledObject", "holdfast-bookings")
	for _, c := range containers(podOf(find(t, rendered["eks"], "Job", "holdfast-bookings-migrate"))) {
		if at(c, "env", 0, "name") != "SSL_CERT_DIR" || at(c, "volumeMounts", 0, "mountPath") != "/etc/holdfast/trust/rds-ca" {
			t.Errorf("eks: a migration does not trust the databases: %v", c)
		}
	}
	if inject := at(find(t, rendered["gke"], "Job", "holdfast-bookings-migrate").Spec, "template", "metadata", "labels", "sidecar.istio.io/inject"); inject != "false" {
		t.Errorf("gke: the migration's sidecar: %v", inject)
	}
	for _, o := range objects(t, rendered["openshift"]) { // restricted-v2 rejects a pod that chooses its user
		if pod := podOf(o); o.Kind == "Deployment" && (at(pod, "securityContext", "runAsUser") != nil || at(pod, "securityContext", "runAsNonRoot") != true) {
			t.Errorf("openshift: %s: %v", o.Metadata.Name, at(pod, "securityContext"))
		}
	}
	waves := map[string]string{}
	for _, o := range objects(t, rendered["argocd"]) {
		waves[o.Kind] = o.Metadata.Annotations["argocd.argoproj.io/sync-wave"]
	}
	if waves["ConfigMap"] != "-1" || waves["Deployment"] != "0" || waves["Ingress"] != "1" {
		t.Errorf("argocd: %v", waves)
	}
}
