package command

import (
	"bytes"
	"encoding/binary"
	"errors"
	"unicode/utf16"
	"unicode/utf8"
)

var (
	markUTF8    = []byte{0xEF, 0xBB, 0xBF}
	markUTF16LE = []byte{0xFF, 0xFE}
	markUTF16BE = []byte{0xFE, 0xFF}

	errEncoding = errors.New("the text is neither UTF-8 nor UTF-16: save the file as UTF-8")
)

// decode returns text that begins with an ASCII character as UTF-8 without a byte order mark. The text is UTF-8 or UTF-16, which editors
// and shells of Windows write.
func decode(text []byte) ([]byte, error) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(text, markUTF16LE):
		text, order = text[2:], binary.LittleEndian
	case bytes.HasPrefix(text, markUTF16BE):
		text, order = text[2:], binary.BigEndian
	case len(text) > 1 && text[0] != 0 && text[1] == 0:
		order = binary.LittleEndian
	case len(text) > 1 && text[0] == 0 && text[1] != 0:
		order = binary.BigEndian
	}
	if order == nil {
		if !utf8.Valid(text) {
			return nil, errEncoding
		}
		return bytes.TrimPrefix(text, markUTF8), nil
	}
	if len(text)%2 != 0 {
		return nil, errEncoding
	}
	var out []byte
	for i := 0; i < len(text); i += 2 {
		r := rune(order.Uint16(text[i:]))
		if utf16.IsSurrogate(r) && i+4 <= len(text) {
			i += 2
			r = utf16.DecodeRune(r, rune(order.Uint16(text[i:])))
			if r == utf8.RuneError {
				return nil, errEncoding
			}
		}
		if utf16.IsSurrogate(r) {
			return nil, errEncoding
		}
		out = utf8.AppendRune(out, r)
	}
	return out, nil
}
