package proto

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"go.yaml.in/yaml/v3"
)

//go:embed services.yaml
var servicesYAML []byte

// Service is a process of the platform. services.yaml explains each field.
type Service struct {
	Name     string   `yaml:"-"` // also the name of its folder, binary, database, consumer group and Kubernetes objects
	Database bool     `yaml:"database"`
	Redis    bool     `yaml:"redis"`
	Topics   []string `yaml:"topics"`
	Reads    []string `yaml:"reads"`
	Calls    []string `yaml:"calls"`
	Reaches  []string `yaml:"reaches"`
	Public   bool     `yaml:"public"`
	State    string   `yaml:"state"`
	Jobs     []string `yaml:"jobs"`
}

// Kafka reports whether the service writes or reads a topic.
func (s Service) Kafka() bool { return len(s.Topics)+len(s.Reads) > 0 }

// Callers returns the services that call this one, in the order of Services.
func (s Service) Callers() []string {
	var names []string
	for _, from := range Services() {
		if slices.Contains(from.Calls, s.Name) {
			names = append(names, from.Name)
		}
	}
	return names
}

// Secrets returns the settings that the service must read from its Secret, sorted.
func (s Service) Secrets() []string { return secretSettings[s.Name] }

// MigrationSecrets returns the settings that the migration of a database must read from its Secret, sorted.
func MigrationSecrets() []string { return migrationSettings }

// Services returns the processes of services.yaml in the order of their start. Callers must not change them.
var Services = sync.OnceValue(func() []Service {
	list, err := ParseServices(servicesYAML)
	if err != nil {
		panic(err) // services.yaml is part of the program, and a test reads it
	}
	return list
})

// ServiceNames returns the names of Services, in the same order.
func ServiceNames() []string {
	var names []string
	for _, s := range Services() {
		names = append(names, s.Name)
	}
	return names
}

// ServiceNamed returns the service with a name, and whether there is one.
func ServiceNamed(name string) (Service, bool) {
	i := slices.IndexFunc(Services(), func(s Service) bool { return s.Name == name })
	if i < 0 {
		return Service{}, false
	}
	return Services()[i], true
}

// PublicService returns the service that clients reach.
func PublicService() Service {
	return Services()[slices.IndexFunc(Services(), func(s Service) bool { return s.Public })]
}

var (
	serviceName = regexp.MustCompile(`^[a-z][a-z0-9]{1,19}$`)

	errServices = errors.New("services")
)

// ParseServices parses a list in the format of services.yaml. The error names the invalid entry: an unknown field, a name that is
// not a lower-case word, a call to or a topic of a service that is not in the list. Exactly one service is public.
func ParseServices(text []byte) ([]Service, error) {
	var file struct {
		Services yaml.Node `yaml:"services"`
	}
	if err := strict(text, &file); err != nil {
		return nil, fmt.Errorf("%w: %w", errServices, err)
	}
	if file.Services.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%w: services is not a mapping", errServices)
	}
	var list []Service
	for i := 0; i < len(file.Services.Content); i += 2 {
		entry, err := yaml.Marshal(file.Services.Content[i+1])
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errServices, err)
		}
		s := Service{Name: file.Services.Content[i].Value}
		if err := strict(entry, &s); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", errServices, s.Name, err)
		}
		list = append(list, s)
	}
	return list, check(list)
}

func strict(text []byte, into any) error {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	return dec.Decode(into)
}

func check(list []Service) error {
	names, topics, public := map[string]bool{}, map[string]bool{}, 0
	for _, s := range list {
		if !serviceName.MatchString(s.Name) || names[s.Name] {
			return fmt.Errorf("%w: %q is no lower-case word of 2 to 20 letters and digits, or occurs twice", errServices, s.Name)
		}
		names[s.Name] = true
		if s.Public {
			public++
		}
		for _, t := range s.Topics {
			if topics[t] {
				return fmt.Errorf("%w: two services write the topic %s", errServices, t)
			}
			topics[t] = true
		}
	}
	for _, s := range list {
		if i := slices.IndexFunc(s.Calls, func(to string) bool { return !names[to] || to == s.Name }); i >= 0 {
			return fmt.Errorf("%w: %s calls %s, which is no other service", errServices, s.Name, s.Calls[i])
		}
		if i := slices.IndexFunc(s.Reads, func(t string) bool { return !topics[t] }); i >= 0 {
			return fmt.Errorf("%w: %s reads %s, which no service writes", errServices, s.Name, s.Reads[i])
		}
	}
	if public != 1 {
		return fmt.Errorf("%w: one service must be public, not %d", errServices, public)
	}
	return nil
}
