package contract

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"holdfast.dev/libs/apperr"
)

const maxDepth = 64

// ErrMalformed is the 400 for a body that is not one I-JSON object (RFC 7493).
var ErrMalformed = apperr.New(apperr.BadRequest, "malformed_json", "The body must be a single JSON object in UTF-8.")

const (
	objectKind = jsontext.KindBeginObject
	arrayKind  = jsontext.KindBeginArray
	stringKind = jsontext.KindString
	numberKind = jsontext.KindNumber
	nullKind   = jsontext.KindNull
	objectEnd  = jsontext.KindEndObject
	arrayEnd   = jsontext.KindEndArray
)

// largeBody is the size above which at most one body per processor is parsed at a time. An object in a body of 1 MiB can have
// 100,000 names, and comparing them takes 15 MiB.
const largeBody = 64 << 10

var parsers = make(chan struct{}, runtime.GOMAXPROCS(0))

// reserveParser waits until a body of the given size may be parsed.
func reserveParser(size int) (done func()) {
	if size < largeBody {
		return func() {}
	}
	parsers <- struct{}{}
	return func() { <-parsers }
}

// tokens reads a body once. It rejects a body that is not JSON or not UTF-8, is nested too deeply, or repeats a name in an object.
type tokens struct {
	body []byte
	dec  *jsontext.Decoder
}

// start reads the opening brace of a body.
func start(body []byte) (*tokens, error) {
	t := &tokens{body: body, dec: jsontext.NewDecoder(bytes.NewBuffer(body))}
	if t.dec.PeekKind() != objectKind {
		return nil, ErrMalformed
	}
	_, _, err := t.next()
	return t, err
}

// next returns a token. raw is the text of a scalar or a name, with its quotes and escapes.
func (t *tokens) next() (kind jsontext.Kind, raw []byte, err error) {
	switch kind = t.dec.PeekKind(); kind {
	case objectKind, arrayKind:
		if t.dec.StackDepth() == maxDepth {
			return 0, nil, ErrMalformed.WithMessage("The body must not be nested more than %d levels deep.", maxDepth)
		}
		_, err = t.dec.ReadToken()
	case objectEnd, arrayEnd:
		_, err = t.dec.ReadToken()
	default:
		var v jsontext.Value
		v, err = t.dec.ReadValue()
		end := int(t.dec.InputOffset())
		raw = t.body[end-len(v) : end]
	}
	if err != nil {
		return 0, nil, t.malformed(err)
	}
	return kind, raw, nil
}

// end checks that nothing follows the object.
func (t *tokens) end() error {
	_, err := t.dec.ReadToken()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return t.malformed(err)
	default:
		return ErrMalformed.WithMessage("The body must be a single JSON object; there is more data at %s.", t.place(t.dec.InputOffset()))
	}
}

// malformed describes the error and its position.
func (t *tokens) malformed(err error) error {
	var wrong *jsontext.SyntacticError
	if !errors.As(err, &wrong) {
		return ErrMalformed.WithCause(err)
	}
	at := t.place(wrong.ByteOffset)
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return ErrMalformed.WithMessage("%s appears more than once, again at %s.", dotted(slices.Collect(wrong.JSONPointer.Tokens())), at)
	}
	reason := wrong.Err.Error()
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		reason = "it ends too early"
	case strings.HasPrefix(reason, "invalid surrogate pair"): // the reason also contains the following bytes
		reason = "invalid surrogate pair in string"
	}
	return ErrMalformed.WithMessage("The body is not valid JSON at %s: %s.", at, reason)
}

// place returns the line and the character of a byte offset, both counted from 1.
func (t *tokens) place(offset int64) string {
	before := t.body[:min(int(offset), len(t.body))]
	line := bytes.LastIndexByte(before, '\n') + 1
	return fmt.Sprintf("line %d, column %d", bytes.Count(before, []byte{'\n'})+1, utf8.RuneCount(before[line:])+1)
}

// unquote decodes a string without its quotes and escapes. t has already validated it.
func unquote(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	plain, _ := jsontext.AppendUnquote(nil, raw) // cannot fail
	return plain
}
