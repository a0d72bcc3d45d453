// Package migration checks that the previous version of a service can run while and after a migration runs. It reads migrations of
// goose with the parser of PostgreSQL.
package migration

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	pgquery "github.com/pganalyze/pg_query_go/v6"
)

// Finding is a statement that breaks a rule. The position is the line of its first word.
type Finding struct {
	File    string
	Line    int
	Rule    Rule
	Message string
}

func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Rule, f.Message)
}

// Lint checks the Up sections of the *.sql files of a folder, in the order of their names. It allows everything in the first file, because
// no previous version uses the database, and on tables that the same file creates. An error means that a file could not be read.
func Lint(folder fs.FS) ([]Finding, error) {
	names, err := fs.Glob(folder, "*.sql")
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New("the folder contains no *.sql files")
	}
	slices.Sort(names)
	schema := newSchema()
	var findings []Finding
	for i, name := range names {
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, err
		}
		f, wrong, err := parse(path.Base(name), string(text))
		if err != nil {
			return nil, err
		}
		found := check(f, schema)
		if i == 0 {
			found = nil
		}
		findings = slices.Concat(findings, wrong, found)
	}
	return findings, nil
}

// check returns the findings of one file, and adds what it creates to schema.
func check(f file, schema *schema) []Finding {
	c := &checker{schema: schema, transactional: f.transactional, created: map[object]bool{}, dropped: map[object]bool{}}
	for i := range f.statements {
		s := &f.statements[i]
		c.report = func(rule Rule, format string, args ...any) {
			for _, e := range s.exceptions {
				if e.rule == rule {
					e.used = true
					return
				}
			}
			c.findings = append(c.findings, Finding{f.name, s.line, rule, fmt.Sprintf(format, args...) + ": " + advice[rule]})
		}
		c.statement(s.node)
	}
	for _, e := range f.exceptions {
		if !e.used {
			c.findings = append(c.findings, Finding{f.name, e.line, "exception", fmt.Sprintf("nothing breaks the rule %s here: remove the exception", e.rule)})
		}
	}
	return c.findings
}

// kind is what an object is.
type kind int

const (
	table kind = iota
	index
	constraint
	function
	trigger
	policy
)

// object is a named object. The tables of constraints, triggers and policies are left out: names are unique enough within one file.
type object struct {
	kind kind
	name string
}

// schema is what the rules must know about earlier statements of all files.
type schema struct {
	unique    map[string]bool      // names of unique indexes and constraints
	checks    map[[2]string]column // validated or not, by table and name of the constraint
	validated map[column]bool      // columns that a validated check keeps from being null
}

// column is a column of a table.
type column struct{ table, name string }

func newSchema() *schema {
	return &schema{unique: map[string]bool{}, checks: map[[2]string]column{}, validated: map[column]bool{}}
}

// checker checks the statements of one file in their order.
type checker struct {
	*schema
	transactional bool
	locked        bool            // the transaction holds a lock on an existing table
	created       map[object]bool // by this file
	dropped       map[object]bool // by this file, if they existed
	report        func(rule Rule, format string, args ...any)
	findings      []Finding
}

// exists reports whether earlier files created the table.
func (c *checker) exists(relation *pgquery.RangeVar) bool {
	return !c.created[object{table, relation.GetRelname()}]
}

// create records an object. In a file without a transaction it reports a statement that fails when it runs again.
func (c *checker) create(k kind, name string, repeatable bool) {
	if o := (object{k, name}); !c.transactional && !repeatable && !c.dropped[o] && name != "" {
		c.report(NotRepeatable, "%s exists when the file runs again", name)
	}
	c.created[object{k, name}] = true
}
