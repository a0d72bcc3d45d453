package charts_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/proto"
)

// edges returns the connections between pods of a development cluster that the list of services implies, as "from → to".
func edges() []string {
	var all []string
	for _, s := range proto.Services() {
		if s.Public {
			all = append(all, "test → "+s.Name)
		}
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

// allowed returns the connections that the policies allow: in by the policies of the receiving pods, and out by those of the
// sending pods.
func allowed(t *testing.T, rendered string) (in, out []string) {
	t.Helper()
	datastores := []string{"postgres", "redis", "kafka"}
	for _, o := range objects(t, rendered) {
		if o.Kind != "NetworkPolicy" || o.Metadata.Name == "holdfast-deny" || o.Metadata.Annotations["helm.sh/hook"] != "" {
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

// TestPoliciesAllowOnlyTheEdges checks that the policies allow exactly the connections of the list.
func TestPoliciesAllowOnlyTheEdges(t *testing.T) {
	t.Parallel()
	in, out := allowed(t, must(t, variants["dev"]...))
	if want := edges(); !slices.Equal(in, want) || !slices.Equal(out, want) {
		t.Errorf("in  %v\nout %v\nwant %v", in, out, want)
	}
}

// TestHooksHaveTheirPoliciesFirst checks that the first installation works in a namespace that denies everything: before the hook
// Jobs, Helm creates policies with the rules that they will have later, on both sides, DNS included.
func TestHooksHaveTheirPoliciesFirst(t *testing.T) {
	t.Parallel()
	rendered := must(t, variants["dev"]...)
	hooks := 0
	for _, o := range objects(t, rendered) {
		if o.Metadata.Annotations["helm.sh/hook"] != "pre-install,pre-upgrade" {
			continue
		}
		switch o.Kind {
		case "Job":
			if weight := o.Metadata.Annotations["helm.sh/hook-weight"]; weight != "0" {
				t.Errorf("%s has the weight %s", o.Metadata.Name, weight)
			}
		case "NetworkPolicy":
			hooks++
			later := find(t, rendered, "NetworkPolicy", strings.TrimSuffix(o.Metadata.Name, "-hook"))
			if weight := o.Metadata.Annotations["helm.sh/hook-weight"]; weight != "-10" || !reflect.DeepEqual(o.Spec, later.Spec) {
				t.Errorf("%s, weight %s: %v\nlater %v", o.Metadata.Name, weight, o.Spec, later.Spec)
			}
			dns := at(o.Spec, "egress", 0, "ports", 0, "port") == 53
			if migrate := o.Metadata.Name == "holdfast-migrate-hook"; migrate != dns {
				t.Errorf("%s reaches DNS: %v", o.Metadata.Name, dns)
			}
		default:
			t.Errorf("%s %s is a hook", o.Kind, o.Metadata.Name)
		}
	}
	if want := 4; hooks != want { // of the migrations and the three datastores in the namespace
		t.Errorf("%d policies are hooks, not %d", hooks, want)
	}
}

// TestEdgesOfAllServices checks that an edge from "services" applies to each service and to nothing else.
func TestEdgesOfAllServices(t *testing.T) {
	t.Parallel()
	rendered := must(t, "--set", "edges[0].from=services,edges[0].to={otlp},networks.otlp.peers[0].ipBlock.cidr=10.9.8.0/24")
	var reach []string
	for _, o := range objects(t, rendered) {
		for _, rule := range list(o.Spec["egress"]) {
			if o.Kind == "NetworkPolicy" && at(rule, "to", 0, "ipBlock", "cidr") == "10.9.8.0/24" {
				reach = append(reach, strings.TrimPrefix(o.Metadata.Name, "holdfast-"))
			}
		}
	}
	slices.Sort(reach)
	if want := slices.Sorted(slices.Values(services)); !slices.Equal(reach, want) {
		t.Errorf("%v reach otlp, not %v", reach, want)
	}
}

// TestEdgesAdd checks that edges in the values are added to those of the list. An existing edge changes nothing.
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

// outside returns the ports at which the policy allows connections to public addresses, one list per rule.
func outside(policy object) (rules [][]int) {
	for _, rule := range list(policy.Spec["egress"]) {
		if at(rule, "to", 0, "ipBlock", "cidr") != "0.0.0.0/0" {
			continue
		}
		var ports []int
		for _, port := range list(at(rule, "ports")) {
			if protocol := at(port, "protocol"); protocol == nil || protocol == "TCP" {
				ports = append(ports, at(port, "port").(int))
			}
		}
		rules = append(rules, ports)
	}
	return rules
}

// TestPublicServicesAndReaches checks that clients can reach only the public services, and that only a service that declares a
// network under reaches has access to it.
func TestPublicServicesAndReaches(t *testing.T) {
	t.Parallel()
	ports := map[string][]int{"receivers": {80, 443, 8080, 8443}, "gateways": {443}, "clients": {443, 8443}}
	for name, args := range variants {
		policies := 0
		for _, o := range objects(t, must(t, args...)) {
			if o.Kind != "NetworkPolicy" {
				continue
			}
			policies++
			service, _ := proto.ServiceNamed(strings.TrimPrefix(o.Metadata.Name, "holdfast-")) // none for migrations
			public := false
			for _, rule := range list(o.Spec["ingress"]) {
				public = public || at(rule, "from", 1, "ipBlock", "cidr") == "0.0.0.0/0"
			}
			if public != service.Public {
				t.Errorf("%s: %s: clients reach it: %v", name, o.Metadata.Name, public)
			}
			var want [][]int
			for _, network := range service.Reaches {
				want = append(want, ports[network])
			}
			if got := outside(o); !slices.EqualFunc(got, want, slices.Equal[[]int]) {
				t.Errorf("%s: %s reaches public addresses at %v, not %v", name, o.Metadata.Name, got, want)
			}
		}
		if policies < len(services) {
			t.Errorf("%s: %d policies", name, policies)
		}
	}
}

// TestOnlyPaymentsReachesGateways checks that only the pods of payments reach payment gateways. No private address is allowed for
// gateways or for receivers of webhooks.
func TestOnlyPaymentsReachesGateways(t *testing.T) {
	t.Parallel()
	for _, s := range proto.Services() {
		if has := slices.Contains(s.Reaches, "gateways"); has != (s.Name == "payments") {
			t.Errorf("%s reaches gateways: %v", s.Name, has)
		}
	}
	const marked = "10.9.8.0/24"
	rendered := must(t, "--set", "networks.gateways.peers[0].ipBlock.cidr="+marked+",networks.gateways.ports[0].port=9443")
	var reach []string
	for _, o := range objects(t, rendered) {
		for _, rule := range list(o.Spec["egress"]) {
			if at(rule, "to", 0, "ipBlock", "cidr") == marked {
				reach = append(reach, o.Metadata.Name)
				if ports := list(at(rule, "ports")); len(ports) != 1 || at(ports[0], "port") != 9443 {
					t.Errorf("%s reaches gateways at %v", o.Metadata.Name, ports)
				}
			}
		}
	}
	if !slices.Equal(reach, []string{"holdfast-payments"}) {
		t.Errorf("%v reach gateways", reach)
	}
	peers := func(service string) (blocks []any) {
		for _, rule := range list(find(t, must(t), "NetworkPolicy", "holdfast-"+service).Spec["egress"]) {
			if at(rule, "to", 0, "ipBlock", "cidr") == "0.0.0.0/0" {
				blocks = list(at(rule, "to"))
			}
		}
		return blocks
	}
	gateways, receivers := peers("payments"), peers("webhooks")
	if !reflect.DeepEqual(gateways, receivers) {
		t.Errorf("gateways %v\nreceivers %v", gateways, receivers)
	}
	for _, private := range []any{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "127.0.0.0/8", "100.64.0.0/10"} {
		if !slices.Contains(list(at(gateways[0], "ipBlock", "except")), private) {
			t.Errorf("%v is among the addresses of gateways", private)
		}
	}
}
