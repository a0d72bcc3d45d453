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
	Delay      = "delay"       // the response is delayed; the idempotency key is in use until then
	DelayAfter = "delay_after" // the effect happens immediately, the response is delayed
	HoldBefore = "hold_before" // never responds, nothing happens
	HoldAfter  = "hold_after"  // never responds, but the effect happened
	CloseAfter = "close_after" // closes the connection after the effect happened
	CloseFirst = "close_before"
	RateLimit  = "rate_limit"  // 429, nothing happens
	Error      = "error"       // 500 that is stored under the idempotency key, nothing happens
	ErrorAfter = "error_after" // 500 that is stored under the idempotency key, but the effect happened
	Refuse     = "refuse"      // 400 with the rule's code, such as balance_insufficient, stored under the idempotency key; nothing happens
	Malformed  = "malformed"   // the effect happened, but the body is invalid JSON
)

var actions = []string{Delay, DelayAfter, HoldBefore, HoldAfter, CloseAfter, CloseFirst, RateLimit, Error, ErrorAfter, Refuse, Malformed}

// Rule is one fault and the requests that it applies to.
type Rule struct {
	ID          int
	Action      string
	Method      string // empty: any
	Path        string // prefix; empty: any
	Account     string // empty: any
	Times       int    // maximum number of affected requests; 0: no limit
	Every       int    // affects only every nth matching request; 0 and 1: every one
	Wait        time.Duration
	Until       time.Time // zero: no limit
	Code        string    // of Refuse
	ShouldRetry string    // the header Stripe-Should-Retry of 429 and 500: true, false, or empty

	Seen int // number of matching requests
	Met  int // number of affected requests
}

// Set holds the rules and the latency of all requests.
type Set struct {
	mu      sync.Mutex
	rules   []*Rule
	last    int
	latency time.Duration
}

// Add adds a rule and returns it with its id.
func (s *Set) Add(r Rule) (Rule, error) {
	switch {
	case !slices.Contains(actions, r.Action):
		return r, fmt.Errorf("action is one of %s, not %q", strings.Join(actions, ", "), r.Action)
	case r.Times < 0 || r.Every < 0 || r.Wait < 0:
		return r, fmt.Errorf("times, every and wait are not negative")
	case (r.Action == Delay || r.Action == DelayAfter) && r.Wait == 0:
		return r, fmt.Errorf("%s needs wait", r.Action)
	case r.Action == Refuse && r.Code == "":
		return r, fmt.Errorf("%s needs code", r.Action)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	r.ID, r.Seen, r.Met = s.last, 0, 0
	s.rules = append(s.rules, &r)
	return r, nil
}

// All returns the rules, including those that have ended.
func (s *Set) All() []Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Rule, len(s.rules))
	for i, r := range s.rules {
		list[i] = *r
	}
	return list
}

// Clear deletes the rules.
func (s *Set) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = nil
}

// Remove deletes a rule.
func (s *Set) Remove(id int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.rules)
	s.rules = slices.DeleteFunc(s.rules, func(r *Rule) bool { return r.ID == id })
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
func (s *Set) Pick(now time.Time, method, path, account string) Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rules {
		if r.matches(now, method, path, account) {
			r.Seen++
			if r.Every < 2 || r.Seen%r.Every == 0 {
				r.Met++
				return *r
			}
		}
	}
	return Rule{}
}

func (r *Rule) matches(now time.Time, method, path, account string) bool {
	return (r.Times == 0 || r.Met < r.Times) && (r.Until.IsZero() || now.Before(r.Until)) &&
		(r.Method == "" || r.Method == method) && strings.HasPrefix(path, r.Path) && (r.Account == "" || r.Account == account)
}
