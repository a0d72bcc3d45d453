package charts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/libs/testservers"
)

// rules returns the chart's rules, in Prometheus' format.
func rules(t *testing.T, args ...string) map[string]any {
	t.Helper()
	var groups []any
	for _, o := range objects(t, must(t, append([]string{"--set", "prometheusRule.enabled=true"}, args...)...)) {
		if o.Kind == "PrometheusRule" {
			groups = append(groups, list(o.Spec["groups"])...)
		}
	}
	if groups == nil {
		t.Fatal("there is no PrometheusRule")
	}
	return map[string]any{"groups": groups}
}

// promtool checks the chart's rules and runs tests of them, without the objectives or with nothing else, because each case evaluates
// all rules.
func promtool(t *testing.T, objectives bool, tests []byte, args ...string) {
	t.Helper()
	program, dir := testservers.Tool(t, "PROMTOOL"), t.TempDir()
	groups := slices.DeleteFunc(list(rules(t, args...)["groups"]), func(group any) bool { return (at(group, "name") == "holdfast-slo") != objectives })
	text, err := yaml.Marshal(map[string]any{"groups": groups})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"alerts.yaml": text, "alerts_test.yaml": tests} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %s", args, out)
		}
	}
}

// alertCases returns the tests of the alerts.
func alertCases(t *testing.T) []byte {
	t.Helper()
	cases, err := os.ReadFile("platform/files/alerts_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// TestAlerts checks that each alert fires when it should, and not before.
func TestAlerts(t *testing.T) {
	t.Parallel()
	promtool(t, false, alertCases(t))
}

// TestAlertsOfOneRelease runs the same cases with the same series in another namespace and in another release next to them. An alert
// that adds them up, or lacks a label, differs from what the cases expect.
func TestAlertsOfOneRelease(t *testing.T) {
	t.Parallel()
	var cases map[string]any
	if err := yaml.Unmarshal(alertCases(t), &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range list(cases["tests"]) {
		series := list(at(c, "input_series"))
		for _, other := range []*strings.Replacer{ // of the labels that identify a release
			strings.NewReplacer(`namespace="holdfast"`, `namespace="staging"`),
			strings.NewReplacer(`release="holdfast"`, `release="canary"`, `cronjob="holdfast-`, `cronjob="canary-`),
		} {
			for _, s := range list(at(c, "input_series")) {
				name, _ := at(s, "series").(string)
				if renamed := other.Replace(name); renamed != name {
					series = append(series, map[string]any{"series": renamed, "values": at(s, "values")})
				}
			}
		}
		c.(map[string]any)["input_series"] = unique(series)
	}
	text, err := yaml.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	promtool(t, false, text)
}

// overridden are the arguments with which the names of the chart's objects, and the label release, differ from the release's name.
var overridden = []string{"--set", "fullnameOverride=booking"}

// override replaces the release in tests of rules.
var override = strings.NewReplacer(`release="holdfast"`, `release="booking"`, "release: holdfast", "release: booking", `cronjob="holdfast-`, `cronjob="booking-`, "cronjob: holdfast-", "cronjob: booking-", "of holdfast-", "of booking-", "CronJob holdfast-", "CronJob booking-", "summary: holdfast-", "summary: booking-")

// TestAlertsWithOverriddenName runs the same cases with fullnameOverride.
func TestAlertsWithOverriddenName(t *testing.T) {
	t.Parallel()
	promtool(t, false, []byte(override.Replace(string(alertCases(t)))), overridden...)
}

// unique returns the series without those whose name an earlier one has.
func unique(series []any) (out []any) {
	seen := map[any]bool{}
	for _, s := range series {
		if name := at(s, "series"); !seen[name] {
			seen[name] = true
			out = append(out, s)
		}
	}
	return out
}

// TestMonitorsAttachTheLabels checks that each ServiceMonitor attaches the labels that the rules select by.
func TestMonitorsAttachTheLabels(t *testing.T) {
	t.Parallel()
	monitors := 0
	for _, o := range objects(t, must(t, "--set", "defaults.serviceMonitor.enabled=true")) {
		if o.Kind != "ServiceMonitor" {
			continue
		}
		monitors++
		attached := map[any]any{}
		for _, endpoint := range list(o.Spec["endpoints"]) {
			for _, r := range list(at(endpoint, "relabelings")) {
				attached[at(r, "targetLabel")] = list(at(r, "sourceLabels"))[0]
			}
		}
		for label, source := range map[string]string{
			"part_of": "__meta_kubernetes_pod_label_app_kubernetes_io_part_of", "service": "__meta_kubernetes_pod_label_app_kubernetes_io_name",
			"namespace": "__meta_kubernetes_namespace", "release": "__meta_kubernetes_pod_label_app_kubernetes_io_instance",
		} {
			if attached[label] != source {
				t.Errorf("%s: %s comes from %v, not from %s", o.Metadata.Name, label, attached[label], source)
			}
		}
	}
	if monitors != len(services) {
		t.Errorf("%d monitors of %d services", monitors, len(services))
	}
}

var heading = regexp.MustCompile(`(?m)^#+ (\w+)$`)

// TestRunbooks checks that the address of each alert's runbook refers to a heading of a page of docs/operations, regardless of where
// the folder is published.
func TestRunbooks(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../docs/operations/*.md")
	if err != nil {
		t.Fatal(err)
	}
	const folder = "https://docs.holdfast.test/operations/"
	sections := map[string]bool{}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
			sections[folder+filepath.Base(page)+"#"+strings.ToLower(m[1])] = true
		}
	}
	seen := 0
	for _, group := range list(rules(t, "--set", "prometheusRule.runbooks="+folder)["groups"]) {
		for _, rule := range list(at(group, "rules")) {
			alert, ok := at(rule, "alert").(string)
			if !ok {
				continue
			}
			seen++
			url, _ := at(rule, "annotations", "runbook_url").(string)
			if !sections[url] || !strings.HasSuffix(url, "#"+strings.ToLower(alert)) {
				t.Errorf("%s: its runbook is %q, which is no heading", alert, url)
			}
		}
	}
	if seen < 40 {
		t.Errorf("%d alerts", seen)
	}
}

var aService = regexp.MustCompile(`=~?\\?"[a-z|]*\b(?:identity|customers|bookings|payments|webhooks)\b`)

// TestAlertsAndDashboardsNameNoService checks that alerts and dashboards mention no service except the gateway, so that a new
// service is monitored without changes to them.
func TestAlertsAndDashboardsNameNoService(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("platform/files/dashboards/*.json")
	if err != nil || len(paths) != 6 {
		t.Fatalf("%d dashboards, %v", len(paths), err)
	}
	for _, path := range append(paths, "platform/files/alerts.yaml", "platform/templates/slo.yaml") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if found := aService.FindAllString(string(text), -1); found != nil || !strings.Contains(string(text), "part_of=") {
			t.Errorf("%s: %q", path, found)
		}
	}
}
