package charts_test

import (
	"strings"
	"testing"
)

// TestPlatformAPI checks that the platform API is off by default. If it is on, one Service leads to it, and one NetworkPolicy allows
// its port to the named callers only.
func TestPlatformAPI(t *testing.T) {
	t.Parallel()
	if out := must(t); strings.Contains(out, "platform-api") || strings.Contains(out, "8081") {
		t.Error("the platform API is on by default")
	}
	on := []string{
		"--set", "platformAPI.enabled=true,platformAPI.peers[0].podSelector.matchLabels.app=billing",
		"--set-string", "services.identity.env.PLATFORM_ADDR=:8081",
	}
	kinds := map[string]int{}
	for _, o := range objects(t, must(t, on...)) {
		if o.Metadata.Name == "holdfast-platform-api" {
			kinds[o.Kind]++
		}
		for _, rule := range list(o.Spec["ingress"]) {
			for _, port := range list(at(rule, "ports")) {
				if n, _ := at(port, "port").(int); n != 8081 {
					continue
				}
				if from := list(at(rule, "from")); o.Metadata.Name != "holdfast-platform-api" || len(from) != 1 || at(from[0], "podSelector", "matchLabels", "app") != "billing" {
					t.Errorf("%s allows the port to %v", o.Metadata.Name, from)
				}
			}
		}
		if o.Kind == "Service" && o.Metadata.Name == "holdfast-identity" && len(list(o.Spec["ports"])) != 2 {
			t.Errorf("identity's own Service has the ports %v", o.Spec["ports"])
		}
	}
	if len(kinds) != 2 || kinds["Service"] != 1 || kinds["NetworkPolicy"] != 1 {
		t.Errorf("objects of the platform API: %v", kinds)
	}
	for set, want := range map[string]string{
		"platformAPI.enabled=true": "services.identity.env.PLATFORM_ADDR",
		"platformAPI.enabled=true,services.identity.env.PLATFORM_ADDR=:8081":                       "platformAPI.peers",
		"platformAPI.enabled=true,platformAPI.port=8082,services.identity.env.PLATFORM_ADDR=:8081": "PLATFORM_ADDR",
		"platformAPI.callers[0]=x": "callers",
	} {
		if _, err := render(t, "--set", set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", set, err)
		}
	}
}
