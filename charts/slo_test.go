package charts_test

import (
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const own = `part_of="holdfast",namespace="holdfast",release="holdfast"`

// objective is a service level objective with the default values of the chart, and the series that it counts.
type objective struct {
	name   string
	budget float64 // the share of events that can be bad
	// series returns the series for counters of all events and of bad events, in promtool's format.
	series func(all, bad string) []map[string]string
}

// responses are the requests of one method at the gateway. Requests that no objective counts are all bad: those without a route,
// streams, and requests of another method, service, namespace or release.
func responses(method, other string) func(all, bad string) []map[string]string {
	const count = `http_request_duration_seconds_count{%s,service=%q,method=%q,route=%q,status=%q}`
	return func(all, bad string) []map[string]string {
		return []map[string]string{
			{"series": fmt.Sprintf(count, own, "gateway", method, "/bookings", "200"), "values": all},
			{"series": fmt.Sprintf(count, own, "gateway", method, "/bookings", "503"), "values": bad},
			{"series": fmt.Sprintf(count, own, "gateway", method, "none", "500"), "values": all},
			{"series": fmt.Sprintf(count, own, "gateway", other, "/bookings", "500"), "values": all},
			{"series": fmt.Sprintf(count, own, "bookings", method, "/bookings", "500"), "values": all},
			{"series": fmt.Sprintf(count, `part_of="holdfast",namespace="staging",release="holdfast"`, "gateway", method, "/bookings", "500"), "values": all},
			{"series": fmt.Sprintf(count, `part_of="holdfast",namespace="holdfast",release="canary"`, "gateway", method, "/bookings", "500"), "values": all},
		}
	}
}

// durations are the events of a histogram of which those within le are good.
func durations(metric, labels, le string) func(all, bad string) []map[string]string {
	return func(all, bad string) []map[string]string {
		name := func(suffix, more string) string { return metric + suffix + "{" + own + labels + more + "}" }
		fast := []map[string]string{
			// Good events are in the bucket, and bad ones only in the count, which two series of different pods add up to.
			{"series": name("_bucket", `,pod="a",le="`+le+`"`), "values": all},
			{"series": name("_count", `,pod="a"`), "values": all},
			{"series": name("_bucket", `,pod="b",le="`+le+`"`), "values": "0x10000"},
			{"series": name("_count", `,pod="b"`), "values": bad},
		}
		if strings.Contains(labels, "route=") {
			stream := strings.Replace(labels, "/bookings", "/events/stream", 1)
			failed := strings.Replace(labels, `"200"`, `"500"`, 1)
			fast = append(fast, map[string]string{"series": metric + "_count{" + own + stream + "}", "values": all},
				map[string]string{"series": metric + "_count{" + own + failed + "}", "values": all})
			if strings.Contains(labels, `"POST"`) { // slow payments by card, which wait for the payment gateway
				for _, route := range []string{"/payment-intents", "/payment-intents/{id}/capture", "/refunds"} {
					fast = append(fast, map[string]string{"series": metric + "_count{" + own + strings.Replace(labels, "/bookings", route, 1) + "}", "values": all})
				}
			}
		}
		return fast
	}
}

var objectives = []objective{
	{"read_availability", 0.001, responses("GET", "POST")},
	{"write_availability", 0.001, responses("PATCH", "GET")},
	{"read_latency", 0.01, durations("http_request_duration_seconds", `,service="gateway",method="GET",route="/bookings",status="200"`, "0.25")},
	{"write_latency", 0.01, durations("http_request_duration_seconds", `,service="gateway",method="POST",route="/bookings",status="200"`, "1")},
	{"webhook_freshness", 0.01, durations("webhook_first_attempt_seconds", `,service="webhooks"`, "5.0")}, // as Prometheus 3 writes it
	{"payment_settlement", 0.01, durations("payment_settlement_seconds", `,service="payments"`, "60")},
}

// phase is a time with a constant rate of events, of which a share is bad.
type phase struct {
	minutes  int     // a multiple of 10
	rate     float64 // events a minute
	badShare float64
}

const scrape = 2 // minutes

// counters returns promtool's values of the counters of good and bad events.
func counters(phases []phase) (all, bad string) {
	var good, failed float64
	var a, b []string
	for _, p := range phases {
		steps := p.minutes / scrape
		step, badStep := scrape*p.rate*(1-p.badShare), scrape*p.rate*p.badShare
		a = append(a, fmt.Sprintf("%g+%gx%d", good, step, steps-1))
		b = append(b, fmt.Sprintf("%g+%gx%d", failed, badStep, steps-1))
		good, failed = good+step*float64(steps), failed+badStep*float64(steps)
	}
	return strings.Join(a, " "), strings.Join(b, " ")
}

// TestObjectives checks each objective: both pairs of windows of the fast burn, and the slow burn, fire above their rate and stay
// silent below it, after the recovery, and for a handful of bad events.
func TestObjectives(t *testing.T) {
	t.Parallel()
	promtool(t, true, objectiveCases(t))
}

// TestObjectivesWithOverriddenName runs the same cases with fullnameOverride.
func TestObjectivesWithOverriddenName(t *testing.T) {
	t.Parallel()
	promtool(t, true, []byte(override.Replace(string(objectiveCases(t)))), overridden...)
}

// objectiveCases returns the tests of the objectives.
func objectiveCases(t *testing.T) []byte {
	t.Helper()
	const minutes, busy, quiet = 60, 6000, 1
	cases := []struct {
		name string
		burn []phase // badShare in multiples of the budget
		fast bool
		slow bool
	}{
		{"14.4 for an hour after healthy hours", []phase{{24 * minutes, busy, 0}, {80, busy, 15}}, true, false},
		{"below 14.4 for an hour after healthy hours", []phase{{24 * minutes, busy, 0}, {80, busy, 13.8}}, false, false},
		{"6 for six hours after healthy hours", []phase{{12 * minutes, busy, 0}, {6*minutes + 20, busy, 6.3}}, true, true},
		{"below 6 for days", []phase{{12 * minutes, busy, 5.7}}, false, true},
		{"1 for three days", []phase{{73 * minutes, busy, 1.05}}, false, true},
		{"below 1 for three days", []phase{{73 * minutes, busy, 0.95}}, false, false},
		{"50 minutes after an hour of burning fast", []phase{{72 * minutes, busy, 0}, {60, busy, 15}, {50, busy, 0}}, false, false},
		{"six hours after a day of burning", []phase{{72 * minutes, busy, 0}, {24 * minutes, busy, 5}, {6*minutes + 30, busy, 0}}, false, false},
		{"9 bad events of ten", []phase{{72 * minutes, quiet, 0}, {10, quiet, 900}, {10, quiet, 0}}, false, false},
		{"no events", []phase{{12 * minutes, 0, 0}}, false, false},
	}
	var tests []map[string]any
	for _, o := range objectives {
		for _, c := range cases {
			length, phases := 0, []phase{}
			for _, p := range c.burn {
				phases = append(phases, phase{p.minutes, p.rate, min(1, p.badShare*o.budget)})
				length += p.minutes
			}
			at := fmt.Sprintf("%dm", length-10)
			firing := func(name, severity string, fires bool) map[string]any {
				// ALERTS has the labels of the alert without its annotations, whose value is not a round number.
				samples := []map[string]any{}
				if fires {
					samples = append(samples, map[string]any{"value": 1, "labels": fmt.Sprintf(
						`ALERTS{alertname=%q,alertstate="firing",severity=%q,%s,slo=%q}`, name, severity, own, o.name)})
				}
				return map[string]any{"expr": fmt.Sprintf("ALERTS{alertname=%q,slo=%q}", name, o.name), "eval_time": at, "exp_samples": samples}
			}
			tests = append(tests, map[string]any{
				"name": o.name + ": " + c.name, "interval": "2m", "input_series": o.series(counters(phases)),
				"promql_expr_test": []any{firing("HoldfastSLOFastBurn", "page", c.fast), firing("HoldfastSLOSlowBurn", "ticket", c.slow)},
			})
		}
	}
	text, err := yaml.Marshal(map[string]any{"rule_files": []string{"alerts.yaml"}, "evaluation_interval": "10m", "tests": tests})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestEachObjectiveIsTested compares the objectives of the chart with those of the test.
func TestEachObjectiveIsTested(t *testing.T) {
	t.Parallel()
	want, got := map[string]bool{}, map[string]bool{}
	for _, o := range objectives {
		want[o.name] = true
	}
	for _, group := range list(rules(t)["groups"]) {
		for _, rule := range list(at(group, "rules")) {
			if slo, ok := at(rule, "labels", "slo").(string); ok {
				got[slo] = true
			}
		}
	}
	if fmt.Sprint(want) != fmt.Sprint(got) {
		t.Errorf("the chart has %v, the test %v", got, want)
	}
}

// TestObjectivesAreValues checks that an objective and its time are values, and that others than the buckets are refused.
func TestObjectivesAreValues(t *testing.T) {
	t.Parallel()
	out := must(t, "--set-json", "prometheusRule.enabled=true,prometheusRule.slo.readLatency.objective=99.5,prometheusRule.slo.readLatency.seconds=0.5")
	for _, want := range []string{"vector((100 - 99.5) / 100)", `le=~"0.5([.]0)?"`} {
		if !strings.Contains(out, want) {
			t.Errorf("without %s", want)
		}
	}
	for _, bad := range []string{"readLatency.seconds=0.3", "readLatency.objective=100", "writeAvailability.objective=90", "readAvailability.seconds=1", "other.objective=99"} {
		if _, err := render(t, "--set-json", "prometheusRule.slo."+bad); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}
