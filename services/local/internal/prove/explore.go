package prove

import (
	"context"
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
// context ends. run returns the decisions of the whole run. Explore returns the number of runs, and whether these were all.
func Explore(ctx context.Context, preemptions int, run func(prefix Schedule) ([]Step, error)) (runs int, all bool, err error) {
	for todo := []Schedule{{}}; len(todo) > 0; runs++ {
		if ctx.Err() != nil {
			return runs, false, nil
		}
		prefix := todo[len(todo)-1]
		steps, err := run(prefix)
		if err != nil {
			return runs, false, err
		}
		todo = append(todo[:len(todo)-1], others(steps, len(prefix), preemptions)...)
	}
	return runs, true, nil
}

// others returns the beginnings of the schedules that differ from a run at one step, which is not in its prefix.
func others(steps []Step, prefix, preemptions int) (list []Schedule) {
	for i, step := range steps {
		for _, other := range step.Enabled {
			if i >= prefix && other != step.Selected && (preemptions > 0 || !step.preempts(other)) {
				list = append(list, append(ScheduleOf(steps[:i]), other))
			}
		}
		if step.preempts(step.Selected) {
			preemptions--
		}
	}
	return list
}
