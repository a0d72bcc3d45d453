package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestLogsTail shows requests as they are logged: each one once, and only those that match the filters.
func TestLogsTail(t *testing.T) {
	t.Parallel()
	c := withKey(t, shared.Env["OTHER_TEST_KEY"])
	tail, said := c.start("logs", "tail", "--status", "4xx", "--method", "GET", "-o", "table")
	lines := func(text string) int { return strings.Count(said.String(), text) }
	for _, id := range []string{"bk_01k00000000000000000000001", "bk_01k00000000000000000000002"} {
		await(t.Context(), t, "the log of "+id, func() bool {
			if lines("/bookings/"+id+" ") == 0 { // the command may have started after the first one
				c.fails(5, []string{"bookings", "get", id})
			}
			return lines("/bookings/"+id+" ") > 0
		})
	}
	c.ok("customers", "list")
	c.fails(3, []string{"bookings", "create", "--event-date", "soon"})
	c.fails(5, []string{"bookings", "get", "bk_01k00000000000000000000003"})
	await(t.Context(), t, "the log of bk_01k00000000000000000000003", func() bool { return lines("/bookings/bk_01k00000000000000000000003 ") > 0 })
	if err := tail.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := tail.Wait(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	seen := map[string]bool{}
	form := regexp.MustCompile(`^\S+Z  404  GET     /bookings/bk_\w+  \d+ ms  (req_\w+)  booking_not_found$`)
	for line := range strings.Lines(said.String()) {
		m := form.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil || seen[m[1]] {
			t.Errorf("%q", line)
			continue
		}
		seen[m[1]] = true
	}
	c.fails(2, []string{"logs", "tail", "-o", "csv"}, "--output must be")
}
