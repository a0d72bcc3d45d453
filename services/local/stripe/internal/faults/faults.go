// Package faults contains the deliberate faults of the stand-in. Rules are in memory only: a restart deletes them.
package faults

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Actions of a rule.
const (
	HoldAfter  = "hold_after"  // the effect happened, but there is no response until the client disconnects
	CloseAfter = "close_after" // the effect happened, and the connection is closed
	RateLimit  = "rate_limit"  // 429, nothing happens
	Refuse     = "refuse"      // 400 with the rule's code, such as balance_insufficient, stored under the idempotency key; nothing happens
)

var actions = []string{HoldAfter, CloseAfter, RateLimit, Refuse}

// Rule is one fault and the requests that it applies to.
type Rule struct {
	Action  string
	Method  string // empty: any
	Path    string // prefix; empty: any
	Account string // empty: any
	Times   int    // maximum number of affected requests; 0: no limit
	Every   int    // affects only every nth matching request; 0 and 1: every one
	Code    string // of Refuse

	id, seen, met int
}

// Set holds the rules and the latency of all requests.
type Set struct {
	mu      sync.Mutex
	rules   []*Rule
	last    int
	latency time.Duration
}

// Add adds a rule and returns its id.
func (s *Set) Add(r Rule) (int, error) {
	switch {
	case !slices.Contains(actions, r.Action):
		return 0, fmt.Errorf("action is one of %s, not %q", strings.Join(actions, ", "), r.Action)
	case r.Times < 0 || r.Every < 0:
		return 0, fmt.Errorf("times and every are not negative")
	case r.Action == Refuse && r.Code == "":
		return 0, fmt.Errorf("%s needs code", r.Action)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	r.id = s.last
	s.rules = append(s.rules, &r)
	return r.id, nil
}

// Remove deletes a rule.
func (s *Set) Remove(id int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.rules)
	s.rules = slices.DeleteFunc(s.rules, func(r *Rule) bool { return r.id == id })
	return len(s.rules) < before
}

// Latency returns the additional delay of every request.
func (s *Set) Latency() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latency
}

// SetLatency sets the latency.
func (s *Set) SetLatency(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latency = d
}

// Pick returns the first rule that applies to the request, or the zero rule if there is none.
func (s *Set) Pick(method, path, account string) Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rules {
		if r.matches(method, path, account) {
			r.seen++
			if r.Every < 2 || r.seen%r.Every == 0 {
				r.met++
				return *r
			}
		}
	}
	return Rule{}
}

func (r *Rule) matches(method, path, account string) bool {
	return (r.Times == 0 || r.met < r.Times) &&
		(r.Method == "" || r.Method == method) && strings.HasPrefix(path, r.Path) && (r.Account == "" || r.Account == account)
}
