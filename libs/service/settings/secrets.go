package main

import (
	"fmt"
	"go/format"
	"slices"
	"strings"

	"holdfast.dev/proto"
)

// secrets returns the required settings of each Secret as Go source: those of each service that are secret, and those of the migrate
// command.
func secrets(root string) (string, error) {
	s := newSource(root)
	var b strings.Builder
	b.WriteString("// Code generated from the Config structs by make gen. DO NOT EDIT.\n\npackage proto\n\n")
	b.WriteString("// secretSettings are the settings that each service must read from its Secret.\nvar secretSettings = map[string][]string{\n")
	for _, name := range proto.ServiceNames() {
		settings, err := s.secretSettings(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\t%q: {%s},\n", name, quoted(settings))
	}
	migration, err := s.migrationSettings()
	fmt.Fprintf(&b, "}\n\n// migrationSettings are the settings that the migration of each database must read from its Secret.\nvar migrationSettings = []string{%s}\n", quoted(migration))
	if err != nil {
		return "", err
	}
	text, err := format.Source([]byte(b.String()))
	return string(text), err
}

func quoted(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(all, ", ")
}

// secretSettings returns the required secret settings of a service, sorted.
func (s *source) secretSettings(service string) ([]string, error) {
	own, err := s.read(module+"services/"+service, "Config")
	if err != nil {
		return nil, err
	}
	settings := own.Settings
	if own.Shared {
		shared, err := s.read(sharedPackage, sharedSettings)
		if err != nil {
			return nil, err
		}
		settings = slices.Concat(settings, shared.Settings)
	}
	var names []string
	for _, one := range settings {
		if one.Secret && one.Required {
			names = append(names, one.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// migrationSettings returns the required settings of the migrate command, sorted. Some are the names of roles, which belong together with
// the URL.
func (s *source) migrationSettings() ([]string, error) {
	migrate, err := s.read(module+"libs/pg", "MigrateSettings")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, one := range migrate.Settings {
		if one.Required {
			names = append(names, one.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// secretTable writes the table of the Secrets and their keys.
func (s *source) secretTable(b *strings.Builder) error {
	b.WriteString("| Secret | keys |\n|---|---|\n")
	for _, service := range proto.Services() {
		settings, err := s.secretSettings(service.Name)
		if err != nil {
			return err
		}
		cells := make([]string, len(settings))
		for i, name := range settings {
			cells[i] = "`" + name + "`" + peers(service, name)
		}
		fmt.Fprintf(b, "| %s | %s |\n", service.Name, strings.Join(cells, ", "))
	}
	migration, err := s.migrationSettings()
	fmt.Fprintf(b, "| …-migrate | `%s` |\n", strings.Join(migration, "`, `"))
	return err
}

// peers names the services at the other end of a service's keys.
func peers(service proto.Service, setting string) string {
	switch setting {
	case "CALLER_SIGN_KEYS":
		return " (to " + strings.Join(service.Calls, ", ") + ")"
	case "CALLER_VERIFY_KEYS":
		return " (of " + strings.Join(service.Callers(), ", ") + ")"
	}
	return ""
}
