package charts_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// named renders the chart as a release of a name in a namespace.
func named(t *testing.T, release, namespace string, args ...string) string {
	t.Helper()
	out, err := renderRelease(t, "platform", release, namespace, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestNamesAreText checks that names that YAML reads as a number, a date or a boolean are text in all objects.
func TestNamesAreText(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"2024", "1e3", "true", "null", "2024-01-01"} {
		for _, o := range objects(t, named(t, name, name, "--set", "prometheusRule.enabled=true,dashboards.enabled=true,defaults.serviceMonitor.enabled=true,defaults.autoscaling.enabled=true")) {
			if o.Metadata.Labels["app.kubernetes.io/instance"] != name || !strings.HasPrefix(o.Metadata.Name, name) {
				t.Errorf("%s: %s %s has the labels %v", name, o.Kind, o.Metadata.Name, o.Metadata.Labels)
			}
			notText(o.Spec, func(path string, value any) {
				t.Errorf("%s: %s %s: %s is %v, a %[5]T", name, o.Kind, o.Metadata.Name, path, value)
			})
		}
	}
}

var nameField = regexp.MustCompile(`(name|namespace|release|app[.]kubernetes[.]io/instance)$`)

// notText reports the fields with a name whose value is no text.
func notText(v any, report func(path string, value any)) {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			if _, text := inner.(string); nameField.MatchString(key) && !text {
				if _, group := inner.(map[string]any); !group {
					report(key, inner)
				}
			}
			notText(inner, report)
		}
	case []any:
		for _, inner := range v {
			notText(inner, report)
		}
	}
}

// TestDashboardsOfTwoReleases checks that the dashboards of releases in one Grafana do not replace each other: no two have the same
// uid, title or file name, and the variables of each offer only its own release.
func TestDashboardsOfTwoReleases(t *testing.T) {
	t.Parallel()
	seen, dashboards := map[string]string{}, 0
	for _, place := range []struct{ release, namespace, override string }{
		{"holdfast", "holdfast", ""},
		{"canary", "holdfast", ""},
		{"holdfast", "staging", ""},
		{"holdfast", "holdfast", "second"},
		{strings.Repeat("long", 13), strings.Repeat("long", 15), ""},
	} {
		release := place.release
		args := []string{"--set", "dashboards.enabled=true"}
		if place.override != "" {
			release, args = place.override, append(args, "--set", "fullnameOverride="+place.override)
		}
		for file, text := range find(t, named(t, place.release, place.namespace, args...), "ConfigMap", release+"-dashboards").Data {
			dashboards++
			var d struct {
				UID, Title string
				Templating struct {
					List []struct{ Name, Definition string }
				}
			}
			if err := json.Unmarshal([]byte(text), &d); err != nil {
				t.Fatal(err)
			}
			if len(d.UID) > 40 { // Grafana refuses longer ones
				t.Errorf("the uid %q has %d characters", d.UID, len(d.UID))
			}
			for _, unique := range []string{"uid " + d.UID, "title " + d.Title, "file " + file} {
				if other := seen[unique]; other != "" {
					t.Errorf("%s and %s/%s have the same %s", other, place.namespace, release, unique)
				}
				seen[unique] = place.namespace + "/" + release
			}
			for _, v := range d.Templating.List {
				if own := fmt.Sprintf(`up{part_of="holdfast",namespace=%q,release=%q`, place.namespace, release); v.Name != "datasource" && !strings.Contains(v.Definition, own) {
					t.Errorf("%s: the variable %s has the values of %s", d.Title, v.Name, v.Definition)
				}
			}
		}
	}
	if dashboards != 30 {
		t.Errorf("%d dashboards", dashboards)
	}
}

// TestTopicsOfTwoReleases checks that releases on one Kafka have topics and groups of their own, unless a value sets the prefix.
func TestTopicsOfTwoReleases(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]string{"enabled=true": "canary.", "fullnameOverride=second": "second.", "defaults.env.KAFKA_TOPIC_PREFIX=holdfast.": "holdfast."} {
		rendered := named(t, "canary", "holdfast", "--set", set+",services.bookings.autoscaling.keda.enabled=true")
		release := "canary"
		if want == "second." {
			release = "second"
		}
		for _, s := range services {
			if got := find(t, rendered, "ConfigMap", release+"-"+s).Data["KAFKA_TOPIC_PREFIX"]; got != want {
				t.Errorf("%s: %s has the prefix %q", set, s, got)
			}
		}
		job := podOf(find(t, rendered, "Job", release+"-bookings-migrate"))
		if env := fmt.Sprint(at(job, "containers", 0, "env")); !strings.Contains(env, "name:KAFKA_TOPIC_PREFIX value:"+want) {
			t.Errorf("%s: the migration has %s", set, env)
		}
		for _, trigger := range list(find(t, rendered, "ScaledObject", release+"-bookings").Spec["triggers"]) {
			if topic, ok := at(trigger, "metadata", "topic").(string); ok && (!strings.HasPrefix(topic, want) || at(trigger, "metadata", "consumerGroup") != want+"bookings") {
				t.Errorf("%s: KEDA reads %v", set, trigger)
			}
		}
	}
}
