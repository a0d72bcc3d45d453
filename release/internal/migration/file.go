package migration

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	pgquery "github.com/pganalyze/pg_query_go/v6"
	parser "github.com/wasilibs/go-pgquery"
)

// file is one migration of goose.
type file struct {
	name          string
	text          string // everything before the Down section; positions of statements are bytes in it
	transactional bool   // one transaction contains all statements
	statements    []statement
	exceptions    []*exception
}

// statement is one SQL statement, with the comments before it.
type statement struct {
	node       *pgquery.Node
	line       int          // of the first word, from 1
	exceptions []*exception // those in its comments, and those of the file
}

// exception is a comment that allows a rule to be broken, for the statement that follows or, before the Up section, for the file.
type exception struct {
	rule Rule
	line int
	used bool
}

var (
	upSection     = regexp.MustCompile(`(?m)^-- \+goose Up *$`)
	downSection   = regexp.MustCompile(`(?m)^-- \+goose Down *$`)
	noTransaction = regexp.MustCompile(`(?m)^-- \+goose NO TRANSACTION *$`)
	allowance     = regexp.MustCompile(`(?m)^[ \t]*-- migrationlint:allow(.*)$`)
	allowed       = regexp.MustCompile(`^ ([a-z-]+): *(\S.*)$`)
	leading       = regexp.MustCompile(`\A(?:\s+|--[^\n]*(?:\n|\z)|/\*(?s:.*?)\*/)*`)
)

// parse reads a migration. Findings are exceptions that are not well-formed.
func parse(name, text string) (file, []Finding, error) {
	if at := downSection.FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	f := file{name: name, text: text, transactional: !noTransaction.MatchString(text)}
	up := upSection.FindStringIndex(text)
	if up == nil {
		return f, nil, fmt.Errorf("%s: it has no line \"-- +goose Up\"", name)
	}
	tree, err := parser.Parse(text)
	if err != nil {
		return f, nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, raw := range tree.GetStmts() {
		start, length := int(raw.GetStmtLocation()), int(raw.GetStmtLen())
		if length == 0 {
			length = len(text) - start // the last statement has no semicolon
		}
		comments := leading.FindString(text[start : start+length])
		f.statements = append(f.statements, statement{node: raw.GetStmt(), line: f.line(start + len(comments))})
	}
	return f, f.readExceptions(up[0]), nil
}

// readExceptions assigns each exception to its statement, or to all statements if it precedes the Up section at the position up.
func (f *file) readExceptions(up int) []Finding {
	var wrong []Finding
	for _, at := range allowance.FindAllStringSubmatchIndex(f.text, -1) {
		e := &exception{line: f.line(at[0])}
		parts := allowed.FindStringSubmatch(f.text[at[2]:at[3]])
		if parts == nil || !slices.Contains(Rules(), Rule(parts[1])) {
			wrong = append(wrong, Finding{f.name, e.line, "exception", "write `-- migrationlint:allow RULE: REASON` with one of the rules of docs/releases.md"})
			continue
		}
		e.rule = Rule(parts[1])
		f.exceptions = append(f.exceptions, e)
		if at[0] < up {
			for i := range f.statements {
				f.statements[i].exceptions = append(f.statements[i].exceptions, e)
			}
			continue
		}
		next, _ := slices.BinarySearchFunc(f.statements, e.line, func(s statement, line int) int { return cmp.Compare(s.line, line) })
		if next < len(f.statements) {
			f.statements[next].exceptions = append(f.statements[next].exceptions, e)
		}
	}
	return wrong
}

func (f *file) line(position int) int { return 1 + strings.Count(f.text[:position], "\n") }
