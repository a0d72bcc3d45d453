package main

import (
	"fmt"
	"slices"
	"strings"

	"holdfast.dev/proto"
)

// chart returns the names of the settings of each service as YAML. The chart rejects values with other names.
func chart(root string) (string, error) {
	s := newSource(root)
	var b strings.Builder
	b.WriteString("# Generated from the Config structs by make gen. DO NOT EDIT.\n")
	for _, name := range proto.ServiceNames() {
		names, err := s.names(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s:\n  - %s\n", name, strings.Join(names, "\n  - "))
	}
	return b.String(), nil
}

// names returns the settings of a service and of its own commands, sorted, and of each secret one also the setting with its file.
func (s *source) names(service string) ([]string, error) {
	structs, err := s.structs(module + "services/" + service)
	if err != nil {
		return nil, err
	}
	common, err := s.read(module+"libs/service", "Common")
	if err != nil {
		return nil, err
	}
	shared, err := s.read(sharedPackage, sharedSettings)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, one := range append(structs, common) {
		settings := one.Settings
		if one.Shared {
			settings = append(settings, shared.Settings...)
		}
		for _, setting := range settings {
			names = append(names, setting.Name)
			if setting.Secret {
				names = append(names, setting.Name+"_FILE")
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
