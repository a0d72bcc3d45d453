package oneline_test

import (
	"errors"
	"testing"

	"holdfast.dev/libs/oneline"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]error{
		"":                         nil,
		"Ana":                      nil,
		" Ana ":                    nil,
		"Ana\tMaria":               nil,
		"👩\u200d👩\u200d👧":          nil, // joined by U+200D
		"می\u200cخواهم":            nil, // parted by U+200C
		"\u200fشركة\u200e Ltd":     nil,
		"❤\ufe0f":                  nil,
		" ":                        oneline.ErrBlank,
		"\t\u00a0\u3000":           oneline.ErrBlank,
		"\u200b\u200d\u2060\ufeff": oneline.ErrBlank,
		"\u00ad":                   oneline.ErrBlank,
		"\u115f\u1160\u3164\uffa0": oneline.ErrBlank, // Hangul fillers
		"\u034f\u17b4\u180b":       oneline.ErrBlank,
		"\ufe0f\U000e0100":         oneline.ErrBlank, // variation selectors
		"\U000e0041":               oneline.ErrBlank, // a tag
		"\u2800":                   oneline.ErrBlank,
		"\u001b":                   oneline.ErrBlank,
		"\u061c\u200e\u200f":       oneline.ErrBlank,
		"Ana\nMaria":               oneline.ErrLineBreak,
		"Ana\r":                    oneline.ErrLineBreak,
		"\v\f":                     oneline.ErrLineBreak,
		"Ana\u0085":                oneline.ErrLineBreak,
		"Ana\u2028Maria":           oneline.ErrLineBreak,
		"Ana\u2029":                oneline.ErrLineBreak,
		"invoice\u202efdp.exe":     oneline.ErrBidi,
		"\u202a\u202c":             oneline.ErrBidi,
		"\u2066Ana\u2069":          oneline.ErrBidi,
	} {
		if got := oneline.Check(s); !errors.Is(got, want) {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
}
