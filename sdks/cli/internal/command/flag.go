package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/sdks/cli/internal/operations"
)

// flagName returns the flag of a parameter: --base-price.amount for base_price.amount.
func flagName(param string) string { return strings.ReplaceAll(param, "_", "-") }

// input is the flag of a parameter. It implements pflag.Value.
type input struct {
	param operations.Param

	given []string
}

// String returns the default, which no flag has.
func (i *input) String() string { return "" }

// Type returns what the help shows as the value.
func (i *input) Type() string {
	switch {
	case i.param.Map:
		return "key=value"
	case i.param.Type == "integer":
		return "int"
	case i.param.Type == "any":
		return "json"
	case i.param.Type == "boolean":
		return "bool"
	}
	return "string"
}

// single reports whether the flag can be given only once.
func (i *input) single() bool { return !i.param.Array && !i.param.Map }

// Set adds a value. It accepts a second one of a single flag, because completion parses the flags twice; check reports it.
func (i *input) Set(text string) error {
	switch {
	case i.param.Map:
		if name, _, ok := strings.Cut(text, "="); !ok || name == "" {
			return errors.New("it must be key=value")
		}
	case i.param.Type == "integer":
		if _, err := strconv.ParseInt(text, 10, 64); err != nil {
			return errors.New("it must be a whole number")
		}
	case i.param.Type == "boolean":
		if text != "true" && text != "false" {
			return errors.New("it must be true or false")
		}
	case i.param.Type == "any":
		if !json.Valid([]byte(text)) {
			return errors.New("it must be JSON")
		}
	}
	i.given = append(i.given, text)
	return nil
}

// addInput adds the flag of a parameter to a command.
func addInput(cmd *cobra.Command, p operations.Param) *input {
	i := &input{param: p}
	name := flagName(p.Name)
	text := short(p.Description)
	if len(p.Values) > 0 {
		text += " (" + strings.Join(p.Values, ", ") + ")"
	}
	switch {
	case p.Array || p.Map:
		text += " Repeat the flag for several."
	case p.Required:
		text += " Required."
	}
	flag := cmd.Flags().VarPF(i, name, "", text)
	if p.Type == "boolean" {
		flag.NoOptDefVal = "true"
	}
	complete := cobra.NoFileCompletions
	if values := p.Values; len(values) > 0 {
		complete = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return values, cobra.ShellCompDirectiveNoFileComp
		}
	} else if p.Type == "boolean" {
		complete = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"true", "false"}, cobra.ShellCompDirectiveNoFileComp
		}
	}
	_ = cmd.RegisterFlagCompletionFunc(name, complete) // the flag exists
	return i
}

// short returns the first sentence of a description.
func short(text string) string {
	for i := 0; i+1 < len(text); i++ {
		if text[i] == '.' && text[i+1] == ' ' && !strings.HasSuffix(text[:i], "e.g") {
			text = text[:i+1]
			break
		}
	}
	return strings.ReplaceAll(text, "`", "") // pflag reads a quoted word as the name of the value
}

// query returns the parameters of the query that were given.
func query(inputs []*input) url.Values {
	values := url.Values{}
	for _, i := range inputs {
		switch {
		case len(i.given) == 0:
		case i.param.Map:
			for _, pair := range i.given {
				name, value, _ := strings.Cut(pair, "=")
				values.Set(i.param.Name+"["+name+"]", value)
			}
		default:
			values.Set(i.param.Name, strings.Join(i.given, ","))
		}
	}
	return values
}

// maxBody is the maximum size of a body that --data reads, in bytes. The API accepts less.
const maxBody = 8 << 20

// body returns the body: the document of --data with the fields of the other flags. cleared are the fields to set to null. It is nil if
// nothing was given.
func body(data string, stdin io.Reader, inputs []*input, cleared []string) (json.RawMessage, error) {
	document, err := readData(data, stdin)
	if err != nil {
		return nil, err
	}
	for _, i := range inputs {
		if len(i.given) == 0 {
			continue
		}
		if document == nil {
			document = map[string]any{}
		}
		if err := set(document, i.param.Name, i.value()); err != nil {
			return nil, usagef("--%s: %w", flagName(i.param.Name), err)
		}
	}
	for _, name := range cleared {
		name = strings.ReplaceAll(name, "-", "_")
		if !slices.ContainsFunc(inputs, func(i *input) bool { return clearable(i, name) }) {
			return nil, usagef("--clear: %s is not a field that can be null", name)
		}
		if document == nil {
			document = map[string]any{}
		}
		if err := set(document, name, nil); err != nil {
			return nil, usagef("--clear: %w", err)
		}
	}
	if document == nil {
		return nil, nil
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err = e.Encode(document)
	return bytes.TrimSpace(text.Bytes()), err
}

// clearable reports whether a field, or the object of fields, is the named one and can be null.
func clearable(i *input, name string) bool {
	return i.param.Nullable && i.param.Name == name || strings.HasPrefix(i.param.Name, name+".") && !i.param.Required
}

// readData returns the object of --data, or nil if there is none.
func readData(data string, stdin io.Reader) (map[string]any, error) {
	if data == "" {
		return nil, nil //nolint:nilnil // no document
	}
	var from io.Reader = strings.NewReader(data)
	if name, file := strings.CutPrefix(data, "@"); name == "-" {
		from = stdin
	} else if file {
		f, err := os.Open(name)
		if err != nil {
			return nil, usagef("--data: %w", err)
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	text, err := io.ReadAll(io.LimitReader(from, maxBody+1))
	if err != nil {
		return nil, usagef("--data: %w", err)
	}
	if len(text) > maxBody {
		return nil, usagef("--data: the document is larger than %d MiB", maxBody>>20)
	}
	if text, err = decode(text); err != nil {
		return nil, usagef("--data: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var document map[string]any
	if err := d.Decode(&document); err != nil || document == nil || d.More() {
		return nil, usagef("--data: it must be one JSON object, @FILE with one, or - for standard input%s", because(err))
	}
	return document, nil
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// value returns the value of the flag in a JSON document.
func (i *input) value() any {
	if i.param.Map {
		pairs := map[string]any{}
		for _, pair := range i.given {
			name, value, _ := strings.Cut(pair, "=")
			pairs[name] = value
		}
		return pairs
	}
	all := make([]any, len(i.given))
	for n, text := range i.given {
		switch i.param.Type {
		case "integer":
			all[n] = json.Number(text)
		case "boolean":
			all[n] = text == "true"
		case "any":
			all[n] = json.RawMessage(text)
		default:
			all[n] = text
		}
	}
	if i.param.Array {
		return all
	}
	return all[0]
}

// set sets the value of a path, and adds the objects on the way.
func set(document map[string]any, path string, value any) error {
	name, rest, nested := strings.Cut(path, ".")
	if !nested {
		document[name] = value
		return nil
	}
	inner, ok := document[name].(map[string]any)
	if !ok {
		if _, other := document[name]; other {
			return fmt.Errorf("%s has another value already", name)
		}
		inner = map[string]any{}
		document[name] = inner
	}
	return set(inner, rest, value)
}
