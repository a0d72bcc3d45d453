package main

import (
	"fmt"
	"slices"
	"strings"

	"holdfast.dev/proto"
)

const head = `<!-- Generated from the Config structs and their comments by make gen. DO NOT EDIT. -->

# Settings

Each process takes its settings from environment variables, reads them at its start only, and does not start when one is
missing or wrong: the error names it. The first line of the log shows all values; secrets and passwords in URLs are masked there.
URLs of PostgreSQL and Redis hold passwords: keep them as secret as what is marked so.

A duration is a number with a unit, such as ` + "`500ms`, `15s` or `1m30s`" + `. Sizes are in bytes. A list is separated by commas.

`

// page returns the text of docs/settings.md, made from the source below root.
func page(root string) (string, error) {
	s := newSource(root)
	var b strings.Builder
	b.WriteString(head)
	for _, link := range append([]string{"Every process", "Services with a database", "The command migrate", "The command reseal"}, proto.ServiceNames()...) {
		fmt.Fprintf(&b, "- [%s](#%s)\n", link, anchor(link))
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
	b.WriteString("\n## Services with a database\n\nThese are settings of " + owners() + ". The commands `topics` and `redrive` read those of Kafka, too.\n\n")
	table(&b, shared.Settings)

	migrate, err := s.read(module+"libs/pg", "MigrateSettings")
	if err != nil {
		return "", err
	}
	b.WriteString("\n## The command migrate\n\n`migrate` of each of these services, and the scheduled jobs beside it, read only these.\n\n")
	table(&b, migrate.Settings)

	reseal, err := s.read(module+"libs/platform", "ResealSettings")
	if err != nil {
		return "", err
	}
	b.WriteString("\n## The command reseal\n\n`reseal` of the services that keep secrets reads only these.\n\n")
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
		case i > 0:
			fmt.Fprintf(b, "\n%s\n\n", sentence(one))
		case one.Shared:
			b.WriteString("Beside those of [every process](#every-process) and of [services with a database](#services-with-a-database)")
			b.WriteString(otherDefaults(shared, s.defaults[pkg]) + ":\n\n")
		default:
			b.WriteString("Beside those of [every process](#every-process):\n\n")
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
	return ", where the default of " + strings.Join(changed, ", of ")
}

// sentence returns the comment of a struct without the struct's name.
func sentence(one Struct) string {
	doc := strings.TrimPrefix(one.Doc, one.Name+" is ")
	if doc == one.Doc || doc == "" {
		return escape(one.Doc)
	}
	return escape(strings.ToUpper(doc[:1]) + doc[1:])
}

func table(b *strings.Builder, settings []Setting) {
	b.WriteString("| setting | type | default | required | secret | meaning |\n|---|---|---|---|---|---|\n")
	for _, one := range settings {
		value := ""
		if one.Default != "" {
			value = "`" + one.Default + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s | %s |\n", one.Name, one.Type, value, yes(one.Required), yes(one.Secret), escape(one.Meaning))
	}
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
