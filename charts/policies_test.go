package charts_test

import (
	"slices"
	"strings"
	"testing"

	"holdfast.dev/proto"
)

// edges returns the connections between pods of a development cluster that the list of services implies, as "from → to".
func edges() []string {
	var all []string
	for _, s := range proto.Services() {
		to := slices.Clone(s.Calls)
		if s.Database {
			to = append(to, "postgres")
			all = append(all, "migrate → postgres", "migrate → kafka")
		}
		if s.Redis {
			to = append(to, "redis")
		}
		if s.Kafka() {
			to = append(to, "kafka")
		}
		for _, name := range to {
			all = append(all, s.Name+" → "+name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// allowed returns the connections that the policies allow: by the policies of the receiving pods, and by those of the
// sending pods.
func allowed(t *testing.T, rendered string) (in, out []string) {
	t.Helper()
	datastores := []string{"postgres", "redis", "kafka"}
	for _, o := range objects(t, rendered) {
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
				if name, ok := at(peer, "podSelector", "matchLabels", "app.kubernetes.io/name").(string); ok && (slices.Contains(services, name) || slices.Contains(datastores, name)) {
					out = append(out, self+" → "+name)
				}
			}
		}
	}
	slices.Sort(in)
	slices.Sort(out)
	return in, out
}

// The policies allow the connections of the list, and no others.
func TestPoliciesAreTheEdges(t *testing.T) {
	t.Parallel()
	in, out := allowed(t, must(t, variants["dev"]...))
	if want := edges(); !slices.Equal(in, want) || !slices.Equal(out, want) {
		t.Errorf("in  %v\nout %v\nwant %v", in, out, want)
	}
}

// Edges in the values are added to those of the list; an edge that exists changes nothing.
func TestEdgesAdd(t *testing.T) {
	t.Parallel()
	added := "edges[0].from=webhooks,edges[0].to={customers,postgres},edges[1].from=bookings,edges[1].to={otlp}"
	rendered := must(t, append([]string{"--set", added, "--set", "networks.otlp.peers[0].ipBlock.cidr=10.9.8.0/24"}, variants["dev"]...)...)
	want := append(edges(), "webhooks → customers")
	slices.Sort(want)
	if in, out := allowed(t, rendered); !slices.Equal(in, want) || !slices.Equal(out, want) {
		t.Errorf("in  %v\nout %v\nwant %v", in, out, want)
	}
	for _, o := range objects(t, rendered) {
		if o.Kind != "NetworkPolicy" {
			continue
		}
		reaches := 0
		for _, rule := range list(o.Spec["egress"]) {
			if at(rule, "to", 0, "ipBlock", "cidr") == "10.9.8.0/24" && at(rule, "ports", 0, "port") == 4318 {
				reaches++
			}
		}
		if want := map[bool]int{true: 1}[o.Metadata.Name == "holdfast-bookings"]; reaches != want {
			t.Errorf("%s reaches otlp by %d rules, not %d", o.Metadata.Name, reaches, want)
		}
	}
}

// Clients reach the public services and no others; only a service that reaches a network has access to it.
func TestPublicServicesAndReaches(t *testing.T) {
	t.Parallel()
	for _, o := range objects(t, must(t)) {
		i := slices.IndexFunc(proto.Services(), func(s proto.Service) bool { return "holdfast-"+s.Name == o.Metadata.Name })
		if o.Kind != "NetworkPolicy" || i < 0 {
			continue
		}
		service, public, receivers := proto.Services()[i], false, false
		for _, rule := range list(o.Spec["ingress"]) {
			public = public || at(rule, "from", 1, "ipBlock", "cidr") == "0.0.0.0/0"
		}
		for _, rule := range list(o.Spec["egress"]) {
			receivers = receivers || at(rule, "to", 0, "ipBlock", "cidr") == "0.0.0.0/0"
		}
		if public != service.Public || receivers != slices.Contains(service.Reaches, "receivers") {
			t.Errorf("%s: clients reach it: %v, it reaches receivers: %v", service.Name, public, receivers)
		}
	}
}
