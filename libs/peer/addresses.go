package peer

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/secret"
	"holdfast.dev/proto"
)

// Addresses are the base URLs of the services in proto/services.yaml. A process has one setting for them:
//
//	Upstreams peer.Addresses `env:"UPSTREAM_URL" envDefault:"http://{service}:8080"`
//
// UPSTREAM_<NAME>_URL replaces the pattern for one service.
type Addresses struct {
	Pattern string            // with {service} in place of the name
	Own     map[string]string // by name: the services with their own address
}

// UnmarshalText reads the pattern, and the addresses of individual services from the environment. An address must have the form
// http(s)://host[:port].
func (a *Addresses) UnmarshalText(pattern []byte) error {
	*a = Addresses{Pattern: string(pattern), Own: map[string]string{}}
	if err := checkAddress("UPSTREAM_URL", a.at("name")); err != nil {
		return err
	}
	for _, service := range proto.ServiceNames() {
		setting := "UPSTREAM_" + strings.ToUpper(service) + "_URL"
		own := os.Getenv(setting)
		if own == "" {
			continue
		}
		if err := checkAddress(setting, own); err != nil {
			return err
		}
		a.Own[service] = own
	}
	return nil
}

// Of returns the address of a service. It fails if proto/services.yaml has no service with that name.
func (a Addresses) Of(service string) (string, error) {
	if names := proto.ServiceNames(); !slices.Contains(names, service) {
		return "", fmt.Errorf("proto/services.yaml has no service %q, only %s: add it there", service, strings.Join(names, ", "))
	}
	if own := a.Own[service]; own != "" {
		return own, nil
	}
	return a.at(service), nil
}

// Client returns a client of a service at its address, with the defaults of Client.
func (a Addresses) Client(target string, signer *caller.Signer) (*Client, error) {
	base, err := a.Of(target)
	return &Client{Target: target, BaseURL: base, Signer: signer}, err
}

// Clients returns a client for each service that a service calls according to proto/services.yaml, by the name of the target.
// signKeys is the setting CALLER_SIGN_KEYS.
func (a Addresses) Clients(from string, signKeys secret.Setting) (map[string]*Client, error) {
	keys, err := caller.FollowKeys(signKeys)
	if err != nil {
		return nil, fmt.Errorf("CALLER_SIGN_KEYS: %w", err)
	}
	s, ok := proto.ServiceNamed(from)
	if !ok {
		return nil, fmt.Errorf("proto/services.yaml has no service %s", from)
	}
	signer, clients := &caller.Signer{From: from, Keys: keys}, make(map[string]*Client, len(s.Calls))
	for _, target := range s.Calls {
		if clients[target], err = a.Client(target, signer); err != nil {
			return nil, err
		}
	}
	return clients, nil
}

func (a Addresses) at(service string) string {
	return strings.ReplaceAll(a.Pattern, "{service}", service)
}

// String returns the pattern and the services with their own address, for the start line.
func (a Addresses) String() string {
	text := a.Pattern
	for _, service := range proto.ServiceNames() {
		if own := a.Own[service]; own != "" {
			text += " " + service + "=" + own
		}
	}
	return text
}

func checkAddress(setting, address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%s: want http://host:port, got %q", setting, address)
	}
	return nil
}
