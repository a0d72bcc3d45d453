package main

import (
	"fmt"
	"slices"
	"strings"

	"holdfast.dev/proto"
)

const head = `<!-- Generated from the Config structs and their comments by make gen. DO NOT EDIT. -->

# Settings

Each process reads its settings from environment variables when it starts. When a setting is missing or invalid, the process
does not start, and the error names the setting. The first line of the log shows all values, with secrets and passwords in URLs
masked.

A secret setting NAME can be given as a file instead: set NAME_FILE to its path. In the column "secret", "reloaded" means that a
running process reads the file every SECRET_RELOAD_INTERVAL and switches to a new value without a restart
([connections.md](connections.md)). "yes" means that the file is read at the start.

A duration is a number with a unit, such as ` + "`500ms`, `15s` or `1m30s`" + `. Sizes are in bytes.

`

const secretsHead = `
## Secrets

The keys that each Secret must have. The Secret of a service is ` + "`<release>-<service>`" + `, and that of its migration
` + "`<release>-<service>-migrate`" + `. [A command](operations/secure.md#secrets) creates all of them.

`

// commands contains introductions, by service and struct, for commands that do not read all settings of their service.
var commands = map[string]string{
	"identity.Settings": "The commands `tenant`, `key`, `operator`, `app`, `grant`, `audit` and `migrate` read these settings. Missing settings are read from the `.run/env` of a " +
		"running platform, in the working folder or a folder above it.",
	"bookings.SeedConfig":   "`bookings seed` reads this setting:",
	"payments.toolSettings": "`payments gateway` reads these settings:",
}

// page returns the text of docs/settings.md, generated from the source below root.
func page(root string) (string, error) {
	s := newSource(root)
	var b strings.Builder
	b.WriteString(head)
	for _, link := range append([]string{"Secrets", "Every process", "Services with a database", "The migrate command", "The reseal command"}, proto.ServiceNames()...) {
		fmt.Fprintf(&b, "- [%s](#%s)\n", link, anchor(link))
	}
	b.WriteString(secretsHead)
	if err := s.secretTable(&b); err != nil {
		return "", err
	}
	common, err := s.read(module+"libs/service", "Common")
	if err != nil {
		return "", err
	}
	b.WriteString("\n## Every process\n\n")
	table(&b, common.Settings)

	shared, err := s.read(sharedPackage, sharedSettings)
	if err != nil {
		return "", err
	}
	b.WriteString("\n## Services with a database\n\n" + owners() + " have these settings. The commands `topics` and `redrive` also read the Kafka settings.\n\n")
	table(&b, shared.Settings)

	migrate, err := s.read(module+"libs/pg", "MigrateSettings")
	if err != nil {
		return "", err
	}
	b.WriteString("\n## The migrate command\n\nThe `migrate` command of each of these services and the scheduled jobs read only these settings.\n\n")
	table(&b, migrate.Settings)

	reseal, err := s.read(module+"libs/platform", "ResealSettings")
	if err != nil {
		return "", err
	}
	b.WriteString("\n## The reseal command\n\nThe `reseal` command of the services that store secrets reads only these settings.\n\n")
	table(&b, reseal.Settings)

	for _, name := range proto.ServiceNames() {
		if err := s.service(&b, name, shared); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// owners lists the services with a database.
func owners() string {
	var names []string
	for _, s := range proto.Services() {
		if s.Database {
			names = append(names, s.Name)
		}
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// service writes the settings of one service and of its own commands.
func (s *source) service(b *strings.Builder, name string, shared Struct) error {
	pkg := module + "services/" + name
	structs, err := s.structs(pkg)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "\n## %s\n\n", name)
	for i, one := range structs {
		switch {
		case i > 0 && !one.own:
			continue // its settings are those of another struct, which has a table
		case i > 0:
			text, ok := commands[name+"."+one.Name]
			if !ok {
				return fmt.Errorf("%s.%s has settings: add a sentence about it to commands", name, one.Name)
			}
			fmt.Fprintf(b, "\n%s\n\n", text)
		case one.Shared:
			b.WriteString("In addition to the settings of [every process](#every-process) and of [services with a database](#services-with-a-database)")
			b.WriteString(otherDefaults(shared, s.defaults[pkg]) + ":\n\n")
		default:
			b.WriteString("In addition to the settings of [every process](#every-process):\n\n")
		}
		table(b, one.Settings)
	}
	return nil
}

// otherDefaults lists the defaults of shared settings that the service changes.
func otherDefaults(shared Struct, values map[string]string) string {
	var changed []string
	for _, one := range shared.Settings {
		if v := values[one.field]; v != "" {
			changed = append(changed, fmt.Sprintf("`%s` is %s", one.Name, v))
		}
	}
	if changed == nil {
		return ""
	}
	return " (the default of " + strings.Join(changed, ", of ") + ")"
}

func table(b *strings.Builder, settings []Setting) {
	b.WriteString("| setting | type | default | required | secret | description |\n|---|---|---|---|---|---|\n")
	for _, one := range settings {
		value := ""
		if one.Default != "" {
			value = "`" + one.Default + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s | %s |\n", one.Name, one.Type, value, yes(one.Required), one.secrecy(), escape(one.Meaning))
	}
}

// secrecy returns whether a setting is secret, and whether a process follows its file.
func (s Setting) secrecy() string {
	if s.Reloaded {
		return "reloaded"
	}
	return yes(s.Secret)
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return ""
}

// escape escapes the pipe and the angle bracket for Markdown.
func escape(text string) string {
	return strings.NewReplacer("|", `\|`, "<", `\<`, "*", `\*`).Replace(text)
}

func anchor(title string) string {
	return strings.Join(slices.Collect(strings.FieldsSeq(strings.ToLower(title))), "-")
}
