package command

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// mostSimilar is the maximum number of names that an error suggests.
const mostSimilar = 3

// suggest returns the end of an error about an unknown name: ": did you mean limit?", or "" if no name is similar.
func suggest(name string, names []string) string {
	similar := similarTo(name, names)
	if len(similar) == 0 {
		return ""
	}
	return ": did you mean " + strings.Join(similar, " or ") + "?"
}

// similarTo returns the names that differ from a name by at most two letters, the most similar ones first, or else those that begin with it.
func similarTo(name string, names []string) []string {
	var found []string
	distances := map[string]int{}
	for _, other := range names {
		if d := distance(strings.ToLower(name), strings.ToLower(other)); d <= 2 && d < len(other)/2+1 {
			distances[other] = d
			found = append(found, other)
		}
	}
	slices.SortStableFunc(found, func(a, b string) int { return distances[a] - distances[b] })
	for _, other := range names {
		if len(distances) == 0 && name != "" && strings.HasPrefix(strings.ToLower(other), strings.ToLower(name)) {
			found = append(found, other)
		}
	}
	return found[:min(len(found), mostSimilar)]
}

// distance returns how many letters must be added, removed, replaced or swapped with the next one to turn a name into another.
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}

// flagError adds the similar flags to the error about an unknown flag.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || len(unknown.GetSpecifiedName()) < 2 { // a shorthand
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return usagef("unknown flag --%s%s", unknown.GetSpecifiedName(), suggest("--"+flagName(unknown.GetSpecifiedName()), names))
}
