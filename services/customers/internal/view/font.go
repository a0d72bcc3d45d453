package view

import (
	"strings"
	"sync"
	"unicode"

	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
)

// The fonts have the characters of WGL4: Latin, Greek and Cyrillic.
var (
	regular = goregular.TTF
	bold    = gobold.TTF
)

// glyphs is the printing font, which says what characters it has.
var glyphs = sync.OnceValue(func() *sfnt.Font {
	f, err := sfnt.Parse(regular)
	if err != nil {
		panic("view: the embedded font is broken: " + err.Error()) // a fault of the build
	}
	return f
})

const missing = '\u25a1' // a box, as printers show it

// printable reports whether the fonts have each character of a text.
func printable(text string) bool {
	var b sfnt.Buffer
	return strings.IndexFunc(spaces(text), func(r rune) bool { return !has(&b, r) }) < 0
}

// plain replaces what the fonts do not have, and removes control characters but line breaks.
func plain(text string) string {
	var b sfnt.Buffer
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		case !has(&b, r):
			return missing
		}
		return r
	}, spaces(text))
}

// spaces makes each kind of space one that the fonts have.
func spaces(text string) string {
	return strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", " ", "\u00a0", " ", "\u202f", " ", "\u2009", " ").Replace(text)
}

func has(b *sfnt.Buffer, r rune) bool {
	i, err := glyphs().GlyphIndex(b, r)
	return err == nil && i != 0
}
