package prove

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Schedule is the selections of a run, as its text: the number of the participant of each step, such as 0,0,1,1,0.
type Schedule []int

// String implements fmt.Stringer.
func (s Schedule) String() string {
	parts := make([]string, len(s))
	for i, n := range s {
		parts[i] = strconv.Itoa(n)
	}
	return strings.Join(parts, ",")
}

// ParseSchedule reads the text of a schedule.
func ParseSchedule(text string) (Schedule, error) {
	var s Schedule
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, err
		}
		s = append(s, n)
	}
	return s, nil
}

// ScheduleOf returns the schedule of a run.
func ScheduleOf(steps []Step) Schedule {
	s := make(Schedule, len(steps))
	for i, step := range steps {
		s[i] = step.Selected
	}
	return s
}

// Explore calls run with the beginning of each schedule that has at most the given number of preemptions, until run fails or the
// context ends. run returns the decisions of the whole run. Explore leaves out schedules that differ from others only in the order of
// independent round trips. It returns the number of runs, and whether these were all.
func Explore(ctx context.Context, preemptions int, independent Independent, run func(prefix Schedule) ([]Step, error)) (runs int, all bool, err error) {
	for todo := []Schedule{{}}; len(todo) > 0; runs++ {
		if ctx.Err() != nil {
			return runs, false, nil
		}
		prefix := todo[len(todo)-1]
		steps, err := run(prefix)
		if err != nil {
			return runs, false, err
		}
		todo = append(todo[:len(todo)-1], others(steps, len(prefix), preemptions, independent)...)
	}
	return runs, true, nil
}

// others returns the beginnings of the schedules that differ from a run at one step, which is not in its prefix.
func others(steps []Step, prefix, preemptions int, independent Independent) (list []Schedule) {
	for i, step := range steps {
		for _, other := range step.Enabled {
			if i >= prefix && other != step.Selected && (!step.preempts(other) || preemptions > 0 && matters(steps[i:], other, independent)) {
				list = append(list, append(ScheduleOf(steps[:i]), other))
			}
		}
		if step.preempts(step.Selected) {
			preemptions--
		}
	}
	return list
}

// Independent reports whether the order of two round trips of different participants makes no difference.
type Independent func(a, b Step) bool

// matters reports whether the first step depends on a later one of another participant. If not, a preemption after the step has the same
// effects as one before it.
func matters(steps []Step, other int, independent Independent) bool {
	return independent == nil || slices.ContainsFunc(steps[1:], func(later Step) bool { return later.Selected == other && !independent(steps[0], later) })
}

// Statements that use rows, and those that write or lock them.
var (
	uses    = regexp.MustCompile(`(?i)\b(select|insert|update|delete)\b`)
	changes = regexp.MustCompile(`(?i)\b(insert|update|delete|share|pg_advisory\w*)\b`)
)

// ByTransaction returns an Independent for participants whose processes of the same name share a database. Round trips to different
// databases are independent. A change is visible to others when its transaction ends, so a round trip that uses rows depends on one that ends
// a transaction with changes, and one that writes or locks also on others that do. An effect of Do depends on all round trips of its process.
// private reports statements whose rows no other participant uses.
func ByTransaction(private func(sql string) bool) Independent {
	some := func(kind *regexp.Regexp, statements []string) bool {
		return slices.ContainsFunc(statements, func(sql string) bool { return kind.MatchString(sql) && !private(sql) })
	}
	commits := func(s Step) bool { return s.ended.Load() && (some(changes, s.SQL) || some(changes, s.Before)) }
	return func(a, b Step) bool {
		dependent := commits(a) && some(uses, b.SQL) || commits(b) && some(uses, a.SQL) || some(changes, a.SQL) && some(changes, b.SQL)
		return a.process != b.process || a.PID != 0 && b.PID != 0 && !dependent
	}
}
