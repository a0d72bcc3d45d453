package stack

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// ByDatabase returns the processor time of PostgreSQL's running server processes for each of the databases, of those that have one.
// A server process has the name of its database in its title. pid is the process that started them.
func ByDatabase(pid int, databases []string) (map[string]time.Duration, error) {
	below, err := children(pid)
	if err != nil {
		return nil, err
	}
	used := map[string]time.Duration{}
	for _, child := range below {
		title, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child))
		if ended(err) {
			continue // its time is now included in its parent's
		}
		if err != nil {
			return nil, err
		}
		database := databaseOf(string(title), databases)
		if database == "" {
			continue
		}
		t, err := read(child)
		if ended(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		used[database] += t.own
	}
	return used, nil
}

// databaseOf returns the database in the title of a server process, such as "postgres: app holdfast_bookings 127.0.0.1(4711) idle".
// It returns "" if the process serves none of the databases.
func databaseOf(title string, databases []string) string {
	for _, field := range strings.FieldsFunc(title, func(r rune) bool { return r == ' ' || r == 0 }) {
		if slices.Contains(databases, field) {
			return field
		}
	}
	return ""
}
