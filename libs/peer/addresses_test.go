package peer_test

import (
	"fmt"
	"strings"
	"testing"

	"holdfast.dev/libs/peer"
	"holdfast.dev/libs/secret"
	"holdfast.dev/libs/service"
	"holdfast.dev/proto"
)

type settings struct {
	Upstreams peer.Addresses `env:"UPSTREAM_URL" envDefault:"http://{service}:8080"`
}

func load(t *testing.T, env map[string]string) (peer.Addresses, error) {
	t.Helper()
	for name, value := range env {
		t.Setenv(name, value)
	}
	var s settings
	err := service.Load(&s)
	return s.Upstreams, err
}

// Every service has the address from the pattern, except a service with its own setting.
func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		env         map[string]string
		first, rest string // %s is the name
		shown       string
	}{
		{nil, "http://%s:8080", "http://%s:8080", "http://{service}:8080"},
		{map[string]string{"UPSTREAM_URL": "https://release-{service}.ns:1"}, "https://release-%s.ns:1", "https://release-%s.ns:1", "https://release-{service}.ns:1"},
		{map[string]string{"UPSTREAM_FIRST_URL": "http://127.0.0.1:9"}, "http://127.0.0.1:9", "http://%s:8080", "http://{service}:8080 first=http://127.0.0.1:9"},
	} {
		t.Run(c.shown, func(t *testing.T) {
			names := proto.ServiceNames()
			env := map[string]string{}
			for name, value := range c.env {
				env[strings.Replace(name, "FIRST", strings.ToUpper(names[0]), 1)] = value
			}
			a, err := load(t, env)
			if err != nil {
				t.Fatal(err)
			}
			for i, name := range names {
				want := c.rest
				if i == 0 {
					want = c.first
				}
				want = strings.Replace(want, "%s", name, 1)
				if got, err := a.Of(name); got != want || err != nil {
					t.Errorf("%s is at %q, %v; want %q", name, got, err, want)
				}
			}
			shown := strings.Replace(c.shown, "first", names[0], 1)
			if line := fmt.Sprint(service.Describe(&settings{a})); !strings.Contains(line, "UPSTREAM_URL="+shown) {
				t.Errorf("the start line has %s, want %s", line, shown)
			}
		})
	}
}

// The start fails for an invalid address, with one line that names the setting, and for an unknown service.
func TestWrongAddresses(t *testing.T) {
	own := "UPSTREAM_" + strings.ToUpper(proto.ServiceNames()[0]) + "_URL"
	for name, value := range map[string]string{"UPSTREAM_URL": "{service}:8080", own: "ftp://files"} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, map[string]string{name: value})
			if err == nil || !strings.Contains(err.Error(), name+": want http://host:port") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v", err)
			}
		})
	}
	_, err := peer.Addresses{Pattern: "http://{service}"}.Of("billing")
	if err == nil || !strings.Contains(err.Error(), `proto/services.yaml has no service "billing"`) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}

// A service has a client for each service that it calls, and for no other.
func TestClients(t *testing.T) {
	t.Parallel()
	a := peer.Addresses{Pattern: "http://{service}:8080"}
	for _, name := range proto.ServiceNames() {
		s, _ := proto.ServiceNamed(name)
		clients, err := a.Clients(name, secret.Setting{})
		if err != nil || len(clients) != len(s.Calls) {
			t.Errorf("%s: %d clients for %v, %v", name, len(clients), s.Calls, err)
		}
		for _, target := range s.Calls {
			if c := clients[target]; c == nil || c.Target != target || c.BaseURL != "http://"+target+":8080" || c.Signer.From != name {
				t.Errorf("%s calls %s with %+v", name, target, c)
			}
		}
	}
	if _, err := a.Clients("bookings", secret.New("customers=nonsense")); err == nil || !strings.Contains(err.Error(), "CALLER_SIGN_KEYS") {
		t.Errorf("keys that are no keys: %v", err)
	}
	if _, err := a.Clients("nobody", secret.Setting{}); err == nil {
		t.Error("an unknown service has clients")
	}
}
