package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
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

const chart = "../../../../charts/platform"

// query is an expression of a panel.
type query struct {
	panel, expr string
	some        bool // only some services have data
}

// queries returns the expressions of a dashboard for a release and a service.
func queries(t *testing.T, path, service string) (list []query) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Title  string
		Panels []struct {
			Title, Description string
			Targets            []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	values := strings.NewReplacer("$namespace", "holdfast", "$release", "holdfast", "$service", service, "$__rate_interval", "5m")
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			list = append(list, query{panel: d.Title + ": " + p.Title, expr: values.Replace(target.Expr), some: p.Description != ""})
		}
	}
	return list
}

var routeLabel = regexp.MustCompile(`route="[^"]*"`)

// mostAlike is the number of series of a service that scrape returns of those that differ only in their route and process.
const mostAlike = 2

var sample = regexp.MustCompile(`(?m)^([a-zA-Z_:]\w*)(?:\{(.*)\})? (\S+)$`)

// scrape returns the series of all processes with the labels that the chart's ServiceMonitors attach. Each has its value as long as
// the longest window of the rules that a panel needs. promtool refuses a query that reads 10,000 values. So there are as few as a rate
// needs, two in five minutes, and few of the many series that are alike.
func scrape(t *testing.T) (series []map[string]string) {
	t.Helper()
	add := func(name, labels, value string) {
		series = append(series, map[string]string{"series": name + "{" + labels + "}", "values": value + "x10"})
	}
	for _, service := range proto.ServiceNames() {
		alike := map[string]int{}
		for i, text := range shared.metrics(t, service) {
			target := fmt.Sprintf(`part_of="holdfast",namespace="holdfast",release="holdfast",instance="%d"`, i)
			add("up", target+fmt.Sprintf(",service=%q", service), "1")
			for _, m := range sample.FindAllStringSubmatch(text, -1) {
				like := m[1] + "{" + routeLabel.ReplaceAllString(m[2], "") + "}"
				if alike[like]++; alike[like] > mostAlike {
					continue
				}
				labels := target
				if !strings.Contains(m[2], "service=") {
					labels += fmt.Sprintf(",service=%q", service)
				}
				if m[2] != "" {
					labels += "," + m[2]
				}
				add(m[1], labels, m[3])
			}
		}
	}
	return series
}

// rules returns the rules of a template of the chart as Prometheus reads them.
func rules(t *testing.T, template string) []byte {
	t.Helper()
	out, err := exec.Command(os.Getenv("HELM"), "template", "holdfast", chart, "--namespace", "holdfast", "--kube-version", "1.30.0",
		"--set", "prometheusRule.enabled=true", "--show-only", "templates/"+template).Output()
	if err != nil {
		t.Fatalf("helm: %v", err)
	}
	var object struct{ Spec map[string]any }
	if err := yaml.Unmarshal(out, &object); err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(object.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// needTools fails without the programs that make test builds.
func needTools(t *testing.T) {
	t.Helper()
	testservers.Tool(t, "PROMTOOL")
	testservers.Tool(t, "HELM")
}

// useEachService sends a request to each service, so that each has metrics of requests, and waits until each consumer has metrics.
func useEachService(t *testing.T) {
	t.Helper()
	c := shared.as(t, "DEMO_TEST_KEY")
	for _, list := range []string{"/bookings", "/customers", "/payment-intents", "/webhook-endpoints", "/request-logs", "/me"} {
		c.do(t, "GET", list, "", "")
	}
	res, err := httpClient.Get(shared.env["AUTH_URL"] + "/admin")
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	await(t, "each consumer has metrics", func() bool {
		handled := false
		for _, s := range proto.Services() {
			text := strings.Join(shared.metrics(t, s.Name), "\n")
			handled = handled || strings.Contains(text, "\nkafka_consumer_messages_total{")
			if len(s.Reads) > 0 && !strings.Contains(text, "\nkafka_consumer_lag{") {
				return false
			}
		}
		return handled
	})
}

// TestDashboards checks that each query of each dashboard returns data from what the processes expose. promtool evaluates it, so that
// the test needs no Prometheus, in a cluster neither.
func TestDashboards(t *testing.T) {
	needTools(t)
	useEachService(t)
	paths, err := filepath.Glob(chart + "/files/dashboards/*.json")
	if err != nil || len(paths) < 6 {
		t.Fatalf("%d dashboards, %v", len(paths), err)
	}
	var expected []any
	add := func(expr string) {
		expected = append(expected, map[string]any{
			"expr": "count(" + expr + ") > bool 0", "eval_time": "15m", "exp_samples": []any{map[string]any{"labels": "{}", "value": 1}},
		})
	}
	for _, path := range paths {
		some := map[string][]string{} // the expressions of panels for some services, of which one must have data
		for _, service := range proto.ServiceNames() {
			for _, q := range queries(t, path, service) {
				switch {
				case q.some:
					some[q.panel] = append(some[q.panel], "("+q.expr+")")
				case strings.Contains(q.expr, fmt.Sprintf("service=%q", service)) || service == proto.ServiceNames()[0]:
					add(q.expr)
				}
			}
		}
		for _, panel := range slices.Sorted(maps.Keys(some)) {
			add(strings.Join(some[panel], " or "))
		}
	}
	tests, err := yaml.Marshal(map[string]any{
		"rule_files": []string{"rules.yaml"}, "evaluation_interval": "1m",
		"tests": []any{map[string]any{"interval": "2m", "input_series": scrape(t), "promql_expr_test": expected}},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string][]byte{"rules.yaml": rules(t, "slo.yaml"), "tests.yaml": tests} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(os.Getenv("PROMTOOL"), "test", "rules", "tests.yaml")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool: %s", out)
	}
}
