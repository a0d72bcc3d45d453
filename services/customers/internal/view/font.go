package view

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/text/unicode/norm"
)

// The fonts are subsets of Noto Sans (fonts/subset.sh): Latin with Vietnamese, Greek, Cyrillic, and the signs of all currencies of
// ISO 4217.
var (
	//go:embed fonts/NotoSans-Regular.ttf
	regular []byte
	//go:embed fonts/NotoSans-Bold.ttf
	bold []byte
)

// glyphs is the printing font, which defines the available characters.
var glyphs = sync.OnceValue(func() *sfnt.Font {
	f, err := sfnt.Parse(regular)
	if err != nil {
		panic("view: the embedded font is broken: " + err.Error()) // a build error
	}
	return f
})

const missing = '\u25a1' // a box, as printers show it

// plain prepares a text for printing. It composes characters with their marks (NFC), and replaces a variant that the fonts lack by
// its plain form (NFKC). It shows a box for every other character that the fonts lack, including private-use characters such as
// those of alias. It removes control characters except line breaks.
func plain(text string) string {
	var b sfnt.Buffer
	var out strings.Builder
	for _, r := range norm.NFC.String(spaces(text)) {
		switch {
		case r == '\n':
			out.WriteRune(r)
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
		case unicode.Is(unicode.Co, r):
			out.WriteRune(missing)
		case has(&b, r):
			out.WriteRune(r)
		default:
			out.WriteString(variant(&b, r))
		}
	}
	return out.String()
}

// variant returns the plain form of a character that the fonts lack, or a box if they lack this form too.
func variant(b *sfnt.Buffer, r rune) string {
	text := norm.NFKC.String(string(r))
	if text == string(r) || strings.IndexFunc(text, func(r rune) bool { return !has(b, r) }) >= 0 {
		return string(missing)
	}
	return text
}

// spaces replaces each kind of space by a space, a non-breaking space or a line break, and each kind of hyphen by a hyphen.
func spaces(text string) string { return spaceReplacer.Replace(text) }

var spaceReplacer = strings.NewReplacer(
	"\r\n", "\n", "\r", "\n", "\u0085", "\n", "\v", "\n", "\f", "\n", "\u2028", "\n", "\u2029", "\n",
	"\t", " ", "\u2009", " ", "\u3000", " ", "\u202f", nbsp, "\u2007", nbsp, "\u2011", "-", "\u2010", "-",
)

func has(b *sfnt.Buffer, r rune) bool {
	i, err := glyphs().GlyphIndex(b, r)
	return err == nil && i != 0
}
