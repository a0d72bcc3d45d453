// Package oneline checks texts of one line, such as names and titles. The contract's format one-line, e-mail addresses, and the
// names in commands and on pages all use its rule.
package oneline

import (
	"errors"
	"strings"
	"unicode"
)

// The reasons why a text is invalid. Their texts are messages for a field.
var (
	ErrBlank     = errors.New("Must contain a visible character.")                   //nolint:staticcheck // a whole sentence of a response
	ErrLineBreak = errors.New("Must not contain a line break.")                      //nolint:staticcheck // as above
	ErrBidi      = errors.New("Must not contain a bidirectional control character.") //nolint:staticcheck // as above
)

// Check returns the reason why a text is not one visible line, or nil if it is one. The empty text is valid: a minimum length
// excludes it where it is not allowed. Marks for one direction (U+200E, U+200F, U+061C) and joiners inside a word are valid.
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
