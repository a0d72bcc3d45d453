// Package sqlbench creates a pgbench script from the SQL that a service sent, and runs it. The comparison always uses
// the service's own statements and round trips.
package sqlbench

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Statement is one statement as PostgreSQL logged it (log_statement = all).
type Statement struct {
	User   string
	SQL    string
	server string // process id of the connection's server
	Params []Param
}

// Param is the value of $1, $2, …, in PostgreSQL's text format.
type Param struct {
	Text string
	Null bool
}

var (
	entry = regexp.MustCompile(`^\d{4}-\d\d-\d\d \S+ \S+ \[(\d+)\] (\S*)@\S* ([A-Z]+):  (.*)`)
	// A statement of the simple protocol, or the execution of a prepared one.
	logged = regexp.MustCompile(`(?s)^(?:statement|execute [^:]+): (.*)$`)
	param  = regexp.MustCompile(`\$\d+ = (NULL|'((?:[^']|'')*)')`)
	params = regexp.MustCompile(`^(?:(?:^|, )` + param.String() + `)*$`)
)

var errLog = errors.New("the statement log cannot be read")

// Parse reads a part of PostgreSQL's log, written with the prefix "%m [%p] %u@%d ", and returns one user's statements
// in order.
func Parse(log, user string) ([]Statement, error) {
	var all []Statement
	for _, e := range entries(log) {
		switch text := logged.FindStringSubmatch(e.text); {
		case e.user != user:
		case e.level == "LOG" && text != nil:
			all = append(all, Statement{User: user, SQL: strings.TrimSpace(text[1]), server: e.server})
		case e.level == "DETAIL" && strings.HasPrefix(strings.ToLower(e.text), "parameters: ") && len(all) > 0:
			params, err := parseParams(e.text[len("parameters: "):])
			if err != nil {
				return nil, err
			}
			all[len(all)-1].Params = params
		}
	}
	return all, nil
}

type logEntry struct{ server, user, level, text string }

// entries joins the lines of each entry. All lines except the first begin with a tab.
func entries(log string) []logEntry {
	var all []logEntry
	for line := range strings.SplitSeq(log, "\n") {
		if found := entry.FindStringSubmatch(line); found != nil {
			all = append(all, logEntry{found[1], found[2], found[3], found[4]})
		} else if rest, ok := strings.CutPrefix(line, "\t"); ok && len(all) > 0 {
			all[len(all)-1].text += "\n" + rest
		}
	}
	return all
}

// Requests omits statements that do not belong to requests: transactions that consume a message, transactions that
// began before the log, and pings of an idle connection.
func Requests(all []Statement) []Statement {
	// The number of each statement's transaction; 0: none, -1: one that began before the log.
	transaction := make([]int, len(all))
	open, omitted := map[string]int{}, map[int]bool{-1: true}
	for i, s := range all {
		if s.SQL == "begin" {
			open[s.server] = i + 1
		}
		transaction[i] = open[s.server]
		switch {
		case strings.HasPrefix(s.SQL, "insert into inbox"):
			omitted[transaction[i]] = true
		case s.SQL == "commit" && open[s.server] == 0:
			for n := range i + 1 {
				if all[n].server == s.server {
					transaction[n] = -1
				}
			}
		case s.SQL == "commit":
			delete(open, s.server)
		}
	}
	delete(omitted, 0)
	var out []Statement
	for i, s := range all {
		if !omitted[transaction[i]] && !strings.HasPrefix(s.SQL, "-- ping") {
			out = append(out, s)
		}
	}
	return out
}

// parseParams reads "$1 = 'it”s', $2 = NULL".
func parseParams(text string) ([]Param, error) {
	if !params.MatchString(text) {
		return nil, fmt.Errorf("%w: parameters %.60q", errLog, text)
	}
	var all []Param
	for _, found := range param.FindAllStringSubmatch(text, -1) {
		all = append(all, Param{Text: strings.ReplaceAll(found[2], "''", "'"), Null: found[1] == "NULL"})
	}
	return all, nil
}
