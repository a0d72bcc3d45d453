package history

import (
	"cmp"
	"fmt"
	"slices"
)

// sessions checks SESSION-1: what a response shows is not older than what an earlier response with the same credential showed.
func (h *histories) sessions() (found []Violation) {
	for _, o := range h.sorted() {
		bySession := map[string][]observation{}
		for _, r := range o.reads {
			bySession[r.op.Session] = append(bySession[r.op.Session], r)
		}
		for _, reads := range bySession {
			if v, ok := regress(reads); ok {
				found = append(found, v)
			}
		}
	}
	return found
}

// regress returns the first violation in the observations of one session, which are in the order of their calls.
func regress(reads []observation) (Violation, bool) {
	ended := slices.Clone(reads)
	slices.SortStableFunc(ended, func(a, b observation) int { return cmp.Compare(a.op.Return, b.op.Return) })
	var newest observation
	next := 0
	for _, r := range reads {
		for ; ended[next].op.Return < r.op.Call; next++ {
			if ended[next].Version > newest.Version {
				newest = ended[next]
			}
		}
		if r.Version >= newest.Version {
			continue
		}
		what := "reads go back"
		if newest.op.Write {
			what = "a write is not read"
		}
		return Violation{
			Claim: "SESSION-1", Text: fmt.Sprintf("%s: %v after version %d", what, r.State, newest.Version),
			Operations: []Operation{*newest.op, *r.op},
		}, true
	}
	return Violation{}, false
}
