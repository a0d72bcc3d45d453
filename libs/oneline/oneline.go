// Package oneline checks texts of one line, such as names and titles. It has the one rule of the contract's format one-line, of
// e-mail addresses, and of the names that commands and pages take.
package oneline

import (
	"errors"
	"strings"
	"unicode"
)

// The reasons to refuse a text. Their texts are messages for a field.
var (
	ErrBlank     = errors.New("Must contain a visible character.")                   //nolint:staticcheck // a whole sentence of a response
	ErrLineBreak = errors.New("Must not contain a line break.")                      //nolint:staticcheck // as above
	ErrBidi      = errors.New("Must not contain a bidirectional control character.") //nolint:staticcheck // as above
)

// Check returns why a text is not one visible line, nil when it is one. The empty text passes: a minimum length refuses it
// where it is not allowed. Marks for one direction (U+200E, U+200F, U+061C) and joiners inside a word pass.
func Check(s string) error {
	blank := s != ""
	for _, r := range s {
		switch {
		case r >= '\n' && r <= '\r', r == 0x85, r == 0x2028, r == 0x2029:
			return ErrLineBreak
		case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
			return ErrBidi
		}
		blank = blank && Invisible(r)
	}
	if blank {
		return ErrBlank
	}
	return nil
}

// Invisible reports whether a character is invisible on its own: white space, control and format characters, Unicode's default
// ignorable characters, and the blank Braille pattern.
func Invisible(r rune) bool {
	return unicode.In(r, unicode.White_Space, unicode.Cc, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) || r == 0x2800
}

// Blank reports whether a text has no visible character.
func Blank(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !Invisible(r) })
}
