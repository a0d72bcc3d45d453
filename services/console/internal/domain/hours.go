package domain

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/forms"
)

// hours reads opening hours: the ranges of each weekday, separated by commas.
func hours(f forms.Field, form url.Values) (any, bool, error) {
	if form.Get(f.Name+".always") == "true" {
		return nil, true, nil
	}
	out, given := map[string]any{}, false
	for _, day := range Weekdays {
		given = given || form.Has(f.Name+"."+day)
		ranges := [][]string{}
		for part := range strings.FieldsFuncSeq(form.Get(f.Name+"."+day), func(r rune) bool { return r == ',' || r == ';' }) {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			from, to, ok := timeRange(part)
			if !ok {
				return nil, false, apperr.Field(f.Name+"."+day, "Must be times such as 09:00-12:00, 13:00-17:00, or empty for a closed day.")
			}
			ranges = append(ranges, []string{from, to})
		}
		if len(ranges) > 0 {
			out[day] = ranges
		}
	}
	return out, given, nil
}

var (
	dashes    = strings.NewReplacer("–", "-", "—", "-")
	bareRange = regexp.MustCompile(`^\s*\d{1,2}\s*-\s*\d{1,2}\s*$`)
)

// timeRange reads a range of times, such as 09:00-12:00, 9–17, or 9am-5pm. It rejects ranges that people understand differently:
// 9-5, and 9-5pm.
func timeRange(s string) (from, to string, ok bool) {
	s = dashes.Replace(strings.ToLower(s))
	from, to, ok = strings.Cut(s, "-")
	if !ok {
		return "", "", false
	}
	start, startHalf, ok := timeOfDay(from)
	end, endHalf, okEnd := timeOfDay(to)
	if bareRange.MatchString(s) && end <= start && start <= "12:00" {
		return "", "", false
	}
	return start, end, ok && okEnd && startHalf == endHalf
}

var dayTime = regexp.MustCompile(`^(\d{1,2})(?:[:.](\d{2}))?\s*(?:([ap])\.?m\.?|uhr)?$`)

// timeOfDay reads a time of day and returns it as HH:MM. Half reports whether it names its half of the day, am or pm.
func timeOfDay(s string) (clock string, half, ok bool) {
	m := dayTime.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return "", false, false
	}
	hour, _ := strconv.Atoi(m[1])
	minute, _ := strconv.Atoi("0" + m[2])
	if half = m[3] != ""; half {
		if hour < 1 || hour > 12 {
			return "", true, false
		}
		if hour %= 12; m[3] == "p" {
			hour += 12
		}
	}
	return fmt.Sprintf("%02d:%02d", hour, minute), half, hour < 24 && minute < 60 || hour == 24 && minute == 0
}

// HoursText formats the opening hours of a day as a form shows them.
func HoursText(v any) string {
	ranges, _ := v.([]any)
	var parts []string
	for _, one := range ranges {
		if pair, ok := one.([]any); ok && len(pair) == 2 {
			from, _ := pair[0].(string)
			to, _ := pair[1].(string)
			parts = append(parts, from+"-"+to)
		}
	}
	return strings.Join(parts, ", ")
}

func showHours(form url.Values, name string, o Object) {
	week := o.Object(name)
	if week == nil {
		form.Set(name+".always", "true")
	}
	for _, day := range Weekdays {
		form.Set(name+"."+day, HoursText(week[day]))
	}
}
