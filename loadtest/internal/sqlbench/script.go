package sqlbench

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Clients is the number of connections on which pgbench runs a script. :n counts the transactions of all of them.
const Clients = 16

// Vary specifies how the recorded statements of two transactions differ. The expressions can use pgbench's variable :n,
// which increases with the transactions of all clients, and the variables of Setup.
type Vary struct {
	Setup  []string          // pgbench commands at the beginning of the script
	Values map[string]string // recorded value → SQL expression
	// Special is called before Values. If it returns "", Values determines the parameter.
	Special func(s Statement, index int) string
}

// Script renders the statements as a pgbench script. If first reports that a statement begins a new round trip, the
// pipeline ends before the statement.
func Script(statements []Statement, v Vary, first func(before, s Statement) bool) (text string, trips int) {
	var b strings.Builder
	fmt.Fprintf(&b, "\\set i :i + 1\n\\set n :i * %d + :client_id\n", Clients)
	for _, line := range v.Setup {
		b.WriteString(line + "\n")
	}
	for start := 0; start < len(statements); {
		end := start + 1
		for end < len(statements) && !first(statements[end-1], statements[end]) {
			end++
		}
		trips++
		trip := statements[start:end]
		if len(trip) > 1 {
			b.WriteString("\\startpipeline\n")
		}
		for _, s := range trip {
			b.WriteString(v.render(s) + ";\n")
		}
		if len(trip) > 1 {
			b.WriteString("\\endpipeline\n")
		}
		start = end
	}
	return b.String(), trips
}

var (
	placeholder = regexp.MustCompile(`\$\d+`)
	space       = regexp.MustCompile(`\s+`)
)

// render replaces the parameters with their values.
func (v Vary) render(s Statement) string {
	sql := space.ReplaceAllString(s.SQL, " ") // no statement of a service has a literal with white space
	return placeholder.ReplaceAllStringFunc(sql, func(name string) string {
		n, err := strconv.Atoi(name[1:])
		if err != nil || n < 1 || n > len(s.Params) {
			return name
		}
		p := s.Params[n-1]
		if p.Null {
			return "null"
		}
		if v.Special != nil {
			if expr := v.Special(s, n); expr != "" {
				return expr
			}
		}
		if expr, ok := v.Values[p.Text]; ok {
			return expr
		}
		return literal(p.Text)
	})
}

// literal quotes a value. pgbench would read a colon before a letter as a variable.
func literal(text string) string {
	quoted := strings.ReplaceAll(text, "'", "''")
	if !strings.ContainsAny(quoted, ":\\") {
		return "'" + quoted + "'"
	}
	var b strings.Builder
	b.WriteString("E'")
	for _, r := range quoted {
		switch r {
		case ':', '\\':
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + "'"
}
