package charts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// rules returns the chart's alert rules, in Prometheus' format.
func rules(t *testing.T, args ...string) map[string]any {
	t.Helper()
	for _, o := range objects(t, must(t, append([]string{"--set", "prometheusRule.enabled=true"}, args...)...)) {
		if o.Kind == "PrometheusRule" {
			return o.Spec
		}
	}
	t.Fatal("there is no PrometheusRule")
	return nil
}

// TestAlerts checks that each alert fires when it should, and not before.
func TestAlerts(t *testing.T) {
	t.Parallel()
	promtool, dir := tool(t, "PROMTOOL"), t.TempDir()
	text, err := yaml.Marshal(rules(t))
	if err != nil {
		t.Fatal(err)
	}
	cases, err := os.ReadFile("platform/files/alerts_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"alerts.yaml": text, "alerts_test.yaml": cases} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %s", args, out)
		}
	}
}

var heading = regexp.MustCompile(`(?m)^#+ (\w+)$`)

// TestRunbooks checks that the address of each alert's runbook refers to a heading of docs/operations.md, regardless of where the
// page is published.
func TestRunbooks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
		sections[strings.ToLower(m[1])] = true
	}
	const page = "https://docs.example.com/operations.md"
	seen := 0
	for _, group := range list(rules(t, "--set", "prometheusRule.runbooks="+page)["groups"]) {
		for _, rule := range list(at(group, "rules")) {
			alert, ok := at(rule, "alert").(string)
			if !ok {
				continue
			}
			seen++
			url, _ := at(rule, "annotations", "runbook_url").(string)
			if url != page+"#"+strings.ToLower(alert) || !sections[strings.ToLower(alert)] {
				t.Errorf("%s: its runbook is %q, and a heading: %v", alert, url, sections[strings.ToLower(alert)])
			}
		}
	}
	if seen < 15 {
		t.Errorf("%d alerts", seen)
	}
}

var aService = regexp.MustCompile(`=~?\\?"[a-z|]*\b(?:identity|customers|bookings|payments|webhooks)\b`)

// TestAlertsAndDashboardsNameNoService checks that alerts and dashboards mention no service except the gateway, so that a new
// service is monitored without changes to them.
func TestAlertsAndDashboardsNameNoService(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"alerts.yaml", "dashboards/holdfast.json"} {
		text, err := os.ReadFile(filepath.Join("platform/files", path))
		if err != nil {
			t.Fatal(err)
		}
		if found := aService.FindAllString(string(text), -1); found != nil || !strings.Contains(string(text), "part_of=") {
			t.Errorf("%s: %q", path, found)
		}
	}
}
