package domain

import (
	"fmt"
	"time"
)

// Clock is a time of day as the operator's wall clock shows it, "HH:MM".
type Clock string

// ParseClock reads HH:MM from 00:00 to 23:59.
func ParseClock(s string) (Clock, bool) {
	if len(s) != 5 || s[2] != ':' || !digit(s[0]) || !digit(s[1]) || !digit(s[3]) || !digit(s[4]) {
		return "", false
	}
	return Clock(s), s[:2] <= "23" && s[3:] <= "59"
}

func digit(b byte) bool { return b >= '0' && b <= '9' }

// ClockOf is what t shows in its own location, to the minute.
func ClockOf(t time.Time) Clock { return Clock(fmt.Sprintf("%02d:%02d", t.Hour(), t.Minute())) }

// Minutes counts from 00:00.
func (c Clock) Minutes() int {
	if len(c) != 5 {
		return 0
	}
	return int(c[0]-'0')*600 + int(c[1]-'0')*60 + int(c[3]-'0')*10 + int(c[4]-'0')
}
