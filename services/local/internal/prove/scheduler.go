// Package prove runs concurrent writes in chosen orders of their round trips to PostgreSQL. A Proxy for each participant holds each
// round trip until the Scheduler releases it. Explore runs all orders with a limited number of preemptions (iterative context
// bounding).
package prove

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Blocked returns which of PostgreSQL's processes wait for a lock of another one.
type Blocked func(ctx context.Context, pids []uint32) ([]uint32, error)

// A Scheduler decides which participant makes the next round trip. Outside of Run, all round trips pass.
type Scheduler struct {
	Blocked Blocked
	// MaxWait is how long a participant may compute between two round trips. Then it counts as waiting for another one.
	MaxWait time.Duration

	mu   sync.Mutex
	all  []*participant
	wake chan struct{}
}

// participant is one of the writes.
type participant struct {
	held     []*held
	released *held // its round trip is at PostgreSQL
	blocked  bool  // it waits for a lock
	begun    bool  // it has made a round trip
	finished bool
	since    time.Time // the last time that its state changed
	tired    bool      // it waited for longer than MaxWait before its round trip
}

type held struct {
	*Round

	process string
	pass    chan struct{}
}

// Step is one decision of a run.
type Step struct {
	Enabled  []int // participants that could go on
	Current  int   // the participant of the step before; -1 at the start
	Selected int

	process string // that makes the round trip
	*Round
}

// preempts reports whether a selection stops a participant that could go on.
func (s Step) preempts(selection int) bool {
	return selection != s.Current && slices.Contains(s.Enabled, s.Current)
}

// Fault is what breaks in a run: the connection of the round trip of the step with this number. Kill is then called with the name of
// the process that made the round trip, before anything else happens.
type Fault struct {
	Step int
	Drop Drop
	Kill func(process string)
}

// lockCheck is how long a round trip is at PostgreSQL before the scheduler asks whether it waits for a lock.
const lockCheck = 500 * time.Microsecond

// Intercept returns the function that holds the round trips of a process of a participant.
func (s *Scheduler) Intercept(number int, process string) func(*Round) {
	return func(r *Round) {
		h := s.hold(number, r, process)
		if h == nil {
			return
		}
		<-h.pass
	}
}

// hold registers a round trip, or returns nil if it passes.
func (s *Scheduler) hold(number int, r *Round, process string) *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number >= len(s.all) || s.all[number].finished {
		return nil
	}
	h, p := &held{Round: r, process: process, pass: make(chan struct{})}, s.all[number]
	p.tired = p.begun && p.released == nil && time.Since(p.since) > s.MaxWait
	p.held, p.begun, p.since = append(p.held, h), true, time.Now()
	s.notify()
	return h
}

// Do runs an effect outside of PostgreSQL that the process of a participant can see, such as a payment in a browser, as if it were a round
// trip.
func (s *Scheduler) Do(number int, process string, effect func()) {
	r := &Round{done: make(chan struct{})}
	defer close(r.done)
	if h := s.hold(number, r, process); h != nil {
		<-h.pass
	}
	effect()
}

func (s *Scheduler) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run runs one write per participant, none where it is nil, and returns the decisions. It follows the selections of the prefix as far as the participants can
// make them. Afterwards each participant runs until it must wait.
func (s *Scheduler) Run(ctx context.Context, prefix []int, fault *Fault, writes ...func()) (steps []Step, err error) {
	all := make([]*participant, len(writes))
	for i, write := range writes {
		all[i] = &participant{since: time.Now(), finished: write == nil}
	}
	s.mu.Lock()
	s.wake, s.all = make(chan struct{}, 1), all
	s.mu.Unlock()
	var running sync.WaitGroup
	for i, write := range writes {
		if write == nil {
			continue
		}
		running.Go(func() {
			write()
			s.mu.Lock()
			defer s.mu.Unlock()
			all[i].finished = true
			s.free(all[i])
			s.notify()
		})
	}
	defer running.Wait()
	defer s.release() // so that all of them end
	current := -1
	for {
		enabled, err := s.settle(ctx)
		if err != nil || len(enabled) == 0 {
			return steps, err
		}
		step := Step{Enabled: enabled, Current: current}
		step.Selected = s.next(step, prefix, len(steps))
		steps = append(steps, step)
		var now *Fault
		if fault != nil && fault.Step == len(steps)-1 {
			now = fault
		}
		h := s.step(step.Selected, now)
		steps[len(steps)-1].process, steps[len(steps)-1].Round = h.process, h.Round
		current = step.Selected
	}
}

// next returns the selection of the prefix, or the current participant, or the first one that is not waiting for another.
func (s *Scheduler) next(step Step, prefix []int, n int) int {
	if n < len(prefix) && slices.Contains(step.Enabled, prefix[n]) {
		return prefix[n]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(step.Enabled, step.Current) && !s.all[step.Current].tired {
		return step.Current
	}
	for _, i := range step.Enabled {
		if !s.all[i].tired {
			return i
		}
	}
	for _, i := range step.Enabled { // all are waiting: take turns
		if i != step.Current {
			return i
		}
	}
	return step.Enabled[0]
}

// step lets the first round trip of a participant pass, or breaks its connection.
func (s *Scheduler) step(number int, fault *Fault) *held {
	s.mu.Lock()
	p := s.all[number]
	h := p.held[0]
	p.held, p.released = p.held[1:], h
	if fault != nil {
		h.drop, h.hit = fault.Drop, func() {
			if fault.Kill != nil {
				fault.Kill(h.process)
			}
		}
	}
	for _, other := range s.all { // this round trip can free what they wait for
		if other.released != nil {
			other.blocked, other.since = false, time.Now()
		}
	}
	s.mu.Unlock()
	go func() {
		<-h.done
		s.mu.Lock()
		defer s.mu.Unlock()
		if p.released == h {
			p.released, p.blocked, p.since = nil, false, time.Now()
		}
		s.notify()
	}()
	close(h.pass)
	return h
}

// settle waits until each participant has finished, holds a round trip, or waits for a lock or for another participant. It returns
// those that hold one; none if all have finished.
func (s *Scheduler) settle(ctx context.Context) (enabled []int, err error) {
	tick := time.NewTicker(lockCheck)
	defer tick.Stop()
	for {
		enabled, waiting, pids := s.look()
		if waiting == 0 {
			return enabled, nil
		}
		if len(pids) > 0 {
			found, err := s.Blocked(ctx, pids)
			if err != nil {
				return nil, fmt.Errorf("find blocked processes: %w", err)
			}
			if s.mark(found) {
				continue
			}
		}
		select {
		case <-s.wake:
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("a write does not end: %w", context.Cause(ctx))
		}
	}
}

// look returns the participants that hold a round trip, how many others must be waited for, and the processes of round trips that are
// at PostgreSQL for some time.
func (s *Scheduler) look() (enabled []int, waiting int, pids []uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := 0
	for i, p := range s.all {
		switch {
		case p.finished:
			continue
		case len(p.held) > 0:
			enabled = append(enabled, i)
		case p.released != nil && p.blocked, p.begun && p.released == nil && time.Since(p.since) > s.MaxWait:
			left++
		default:
			waiting++
			if p.released != nil && time.Since(p.since) > lockCheck {
				pids = append(pids, p.released.PID)
			}
		}
	}
	if len(enabled) == 0 && left > 0 {
		waiting++ // someone must go on
	}
	return enabled, waiting, pids
}

// mark notes which processes wait for a lock. It reports whether there are any.
func (s *Scheduler) mark(pids []uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.all {
		if p.released != nil && slices.Contains(pids, p.released.PID) {
			p.blocked = true
		}
	}
	return len(pids) > 0
}

// release lets everything pass.
func (s *Scheduler) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.all {
		s.free(p)
	}
	s.all = nil
}

func (s *Scheduler) free(p *participant) {
	for _, h := range p.held {
		close(h.pass)
	}
	p.held = nil
}

// Busy reports whether a participant makes a round trip.
func (s *Scheduler) Busy(number int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return number < len(s.all) && (len(s.all[number].held) > 0 || s.all[number].released != nil)
}
