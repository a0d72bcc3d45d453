package contract

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/message"

	"holdfast.dev/libs/oneline"
)

// Dates outside these years are invalid.
const minYear, maxYear = 1900, 2199

var (
	errForm  = errors.New("form")
	errYears = errors.New("years")
)

// formats replace or extend the validator's own formats. Each accepts only what Go's types can hold, so that a valid
// body is decoded without an error.
var formats = []*jsonschema.Format{
	{Name: "date-time", Validate: onText(dateTime)},
	{Name: "date", Validate: onText(date)},
	{Name: "holdfast-datetime", Validate: onText(func(s string) error {
		if len(s) == len(time.DateOnly) {
			return date(s)
		}
		return dateTime(s)
	})},
	{Name: "email", Validate: onText(email)},
	{Name: "one-line", Validate: onText(oneline.Check)},
}

var formatMessages = map[string]string{
	"date-time":         "Must be an RFC 3339 date and time with an offset, such as 2026-05-10T15:04:05Z.",
	"date":              "Must be a valid date in the format YYYY-MM-DD.",
	"holdfast-datetime": "Must be an RFC 3339 date and time with an offset, such as 2026-05-10T15:04:05Z, or a date as YYYY-MM-DD.",
	"email":             "Must be an email address.",
	"uuid":              "Must be a UUID.",
	"uri":               "Must be an absolute URL.",
}

func onText(f func(string) error) func(any) error {
	return func(v any) error {
		if s, ok := v.(string); ok {
			return f(s)
		}
		return nil
	}
}

// rfc3339 checks the form only: time.Parse also accepts one-digit hours, decimal commas and any offset.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// dateTime accepts RFC 3339 with an offset. Like Go, it rejects leap seconds and a lower-case t or z.
func dateTime(s string) error {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || !rfc3339.MatchString(s) {
		return errForm
	}
	return years(t)
}

func date(s string) error {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return errForm
	}
	return years(t)
}

func years(t time.Time) error {
	if t.Year() < minYear || t.Year() > maxYear {
		return errYears
	}
	return nil
}

// email accepts exactly one address: a dot-atom or any UTF-8 before the last @ (RFC 6531), and a host name after it. Quoted local
// parts, address literals and invisible characters are invalid.
func email(s string) error {
	at := strings.LastIndexByte(s, '@')
	if at < 1 || at > 64 || strings.ContainsFunc(s, notInEmail) || strings.IndexByte(s, '@') != at {
		return errForm
	}
	if local := s[:at]; local[0] == '.' || local[at-1] == '.' || strings.Contains(local, "..") {
		return errForm
	}
	domain := s[at+1:]
	if domain == "" || len(domain) > 253 {
		return errForm
	}
	for label := range strings.SplitSeq(domain, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' || strings.ContainsFunc(label, notInHost) {
			return errForm
		}
	}
	return nil
}

func notInEmail(r rune) bool {
	return strings.ContainsRune(`"(),:;<>[\]`, r) || oneline.Invisible(r)
}

func notInHost(r rune) bool {
	return r < 0x80 && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// strictness adds two rules to each schema: an integer must be written as an integer, and an invalid property name is reported at
// its location, which the validator loses.
var strictness = &jsonschema.Vocabulary{URL: docURL + "/strictness", Compile: compileStrictness}

type strict struct {
	integer bool
	names   *jsonschema.Schema
}

func compileStrictness(ctx *jsonschema.CompilerContext, obj map[string]any) (jsonschema.SchemaExt, error) {
	s := &strict{integer: wantsInteger(obj["type"])}
	if _, ok := obj["propertyNames"]; ok {
		s.names = ctx.Enqueue([]string{"propertyNames"})
	}
	if !s.integer && s.names == nil {
		return nil, nil
	}
	return s, nil
}

func wantsInteger(t any) bool {
	if list, ok := t.([]any); ok {
		for _, one := range list {
			if one == "integer" {
				return true
			}
		}
	}
	return t == "integer"
}

// Validate implements jsonschema.SchemaExt.
func (s *strict) Validate(ctx *jsonschema.ValidatorContext, v any) {
	if num, ok := v.(json.Number); ok && s.integer && !isInteger(string(num)) {
		ctx.AddError(&notInteger{})
	}
	m, ok := v.(map[string]any)
	if !ok || s.names == nil {
		return
	}
	for name := range m {
		var failed *jsonschema.ValidationError
		if err := s.names.Validate(name); errors.As(err, &failed) {
			ctx.AddError(&badName{name: name, err: failed})
		}
	}
}

// isInteger reports whether s is a JSON integer: -?(0|[1-9][0-9]*).
func isInteger(s string) bool {
	s = strings.TrimPrefix(s, "-")
	if s == "" || (s[0] == '0' && len(s) > 1) {
		return false
	}
	return strings.Trim(s, "0123456789") == ""
}

type notInteger struct{}

// KeywordPath implements jsonschema.ErrorKind.
func (*notInteger) KeywordPath() []string { return []string{"type"} }

// LocalizedString implements jsonschema.ErrorKind.
func (*notInteger) LocalizedString(*message.Printer) string { return "not a JSON integer" }

type badName struct {
	name string
	err  *jsonschema.ValidationError
}

// KeywordPath implements jsonschema.ErrorKind.
func (*badName) KeywordPath() []string { return []string{"propertyNames"} }

// LocalizedString implements jsonschema.ErrorKind.
func (*badName) LocalizedString(*message.Printer) string { return "invalid property name" }
