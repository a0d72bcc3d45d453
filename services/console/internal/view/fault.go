package view

import "strings"

// Fault is the error of a field: its dotted path in the body, such as opening_hours.mon.0.0, and a sentence in the operator's
// language.
type Fault struct{ Path, Text string }

// AssignFaults assigns to each input the first error at or below its name. For nested inputs, it uses the innermost. It returns the
// errors that no input shows, in their original order.
func AssignFaults(inputs []Input, faults []Fault) (others []Fault) {
	for _, one := range faults {
		in := inputAt(inputs, one.Path)
		switch {
		case in == nil:
			others = append(others, one)
		case in.Wrong == "":
			in.Wrong = one.Text
		case in.Wrong != one.Text:
			others = append(others, one)
		}
	}
	return others
}

// inputAt returns the innermost input whose name is a path or a prefix of it; nil if there is none.
func inputAt(inputs []Input, path string) *Input {
	for i := range inputs {
		in := &inputs[i]
		if path != in.Name && !strings.HasPrefix(path, in.Name+".") {
			continue
		}
		if inner := inputAt(in.Inner, path); inner != nil {
			return inner
		}
		for _, row := range in.Rows {
			if cell := inputAt(row, path); cell != nil {
				return cell
			}
		}
		return in
	}
	return nil
}
