// Package sqlbench creates a pgbench script from the SQL that a service sent, and runs it. The comparison always uses the
// service's own statements and round trips.
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
	param  = regexp.MustCompile(`^\$\d+ = (NULL|')`)
)

var errLog = errors.New("the statement log cannot be read")

// Parse reads a part of PostgreSQL's log, written with the prefix "%m [%p] %u@%d ", and returns one user's statements in
// order.
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

// Requests omits statements that do not belong to requests: transactions that consume a message, transactions that began before
// the log, and pings of an idle connection.
func Requests(all []Statement) []Statement {
	transaction := make([]int, len(all)) // the number of each statement's transaction, 0: none
	open, left := map[string]int{}, map[int]bool{}
	for i, s := range all {
		switch s.SQL {
		case "begin":
			open[s.server] = i + 1
		case "commit":
			if open[s.server] == 0 { // it began before the log
				leaveOut(all, transaction, i)
			}
		}
		if transaction[i] == 0 {
			transaction[i] = open[s.server]
		}
		if strings.HasPrefix(s.SQL, "insert into inbox") {
			left[transaction[i]] = true
		}
		if s.SQL == "commit" {
			delete(open, s.server)
		}
	}
	left[-1], left[0] = true, false
	var out []Statement
	for i, s := range all {
		if !left[transaction[i]] && !strings.HasPrefix(s.SQL, "-- ping") {
			out = append(out, s)
		}
	}
	return out
}

// leaveOut marks the statements of a connection up to the i-th.
func leaveOut(all []Statement, transaction []int, i int) {
	for n := range i + 1 {
		if all[n].server == all[i].server {
			transaction[n] = -1
		}
	}
}

// parseParams reads "$1 = 'it”s', $2 = NULL".
func parseParams(text string) ([]Param, error) {
	var all []Param
	for text != "" {
		found := param.FindStringSubmatch(text)
		if found == nil {
			return nil, fmt.Errorf("%w: parameters %.60q", errLog, text)
		}
		text = text[len(found[0]):]
		p := Param{Null: found[1] == "NULL"}
		if !p.Null {
			end := closing(text)
			if end < 0 {
				return nil, fmt.Errorf("%w: no end of %.60q", errLog, text)
			}
			p.Text = strings.ReplaceAll(text[:end], "''", "'")
			text = text[end+1:]
		}
		all = append(all, p)
		text = strings.TrimPrefix(text, ", ")
	}
	return all, nil
}

// closing returns the index of the quote that ends a literal, skipping doubled ones; -1 if there is none.
func closing(text string) int {
	for i := 0; i < len(text); i++ {
		if text[i] != '\'' {
			continue
		}
		if i+1 == len(text) || text[i+1] != '\'' {
			return i
		}
		i++
	}
	return -1
}
