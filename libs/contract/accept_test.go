package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// unruled are fields that only the validator can accept, with the keyword that rules do not know.
var unruled = map[string]string{
	"applies_to":  "a oneOf with two branches of the same type",
	"event_types": "uniqueItems",
	"types":       "uniqueItems",
}

// published returns the operations of the public contract that have a body.
func published(t testing.TB) []*Operation {
	t.Helper()
	doc, err := os.ReadFile("../../proto/api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Load(doc)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(c.Operations(), func(op *Operation) bool { return op.body == nil })
}

// agree fails if the rule accepts a body that the validator rejects. It returns what each of them says.
func agree(t *testing.T, op *Operation, body string) (accepted, valid bool) {
	t.Helper()
	b, err := op.Parse([]byte(body))
	if err != nil {
		return false, false
	}
	accepted = op.rule.accepts(b.root, op.shape)
	invalid := op.body.Validate(b.root.instance(op.shape))
	if accepted && invalid != nil {
		t.Fatalf("%s: the rule accepts %s, the validator does not: %v", op.ID, body, invalid)
	}
	return accepted, invalid == nil
}

// TestRulesAgreeWithTheValidator sends random bodies, valid ones and almost valid ones, to each operation. A rule accepts nothing that
// the validator rejects, and all that it accepts except bodies that are not ruled.
func TestRulesAgreeWithTheValidator(t *testing.T) {
	t.Parallel()
	for _, op := range published(t) {
		t.Run(op.ID, func(t *testing.T) {
			t.Parallel()
			g := generator{rand.New(rand.NewPCG(1, 2)), 0}
			var valid, invalid int
			for range 400 {
				body := g.body(op.body)
				accepted, ok := agree(t, op, body)
				if !ok {
					invalid++
					continue
				}
				valid++
				if !accepted && ruled(body) {
					t.Fatalf("the rule does not accept %s", body)
				}
			}
			if valid < 20 || invalid < 20 {
				t.Errorf("%d valid bodies, %d invalid ones", valid, invalid)
			}
		})
	}
}

// ruled reports whether a body has neither a field of unruled nor a number with a fraction.
func ruled(body string) bool {
	for field := range unruled {
		if strings.Contains(body, `"`+field+`":`) {
			return false
		}
	}
	return !strings.Contains(body, "2.5")
}

// generator writes random bodies.
type generator struct {
	*rand.Rand

	faults int // of the values of one body: how many of a thousand do not follow their schema
}

func (g *generator) body(s *jsonschema.Schema) string {
	g.faults = []int{0, 0, 20, 200}[g.IntN(4)]
	text, err := json.Marshal(g.value(s, 0))
	if err != nil {
		panic(err)
	}
	return string(text)
}

// value returns a value of the schema, or with the generator's probability one that differs.
func (g *generator) value(s *jsonschema.Schema, depth int) any {
	if g.IntN(1000) < g.faults {
		return []any{nil, true, -1, 2.5, 1 << 40, "", "x", "a\nb", strings.Repeat("é", 6000), []any{}, []any{1}, map[string]any{}, map[string]any{"a": "b"}}[g.IntN(13)]
	}
	switch {
	case s.Ref != nil:
		return g.value(s.Ref, depth)
	case len(s.OneOf) > 0:
		return g.branch(s.OneOf, depth)
	case s.Const != nil:
		return *s.Const
	case s.Enum != nil:
		return s.Enum.Values[g.IntN(len(s.Enum.Values))]
	case s.Types == nil && s.Properties == nil:
		return "any"
	}
	kinds := []string{"object"}
	if s.Types != nil {
		kinds = s.Types.ToStrings()
	}
	switch kinds[g.IntN(len(kinds))] {
	case "object":
		return g.object(s, depth)
	case "array":
		return g.array(s, depth)
	case "string":
		return g.text(s)
	case "integer", "number":
		low, high := int64(0), int64(1000)
		if s.Minimum != nil {
			low = s.Minimum.Num().Int64()
		}
		if s.Maximum != nil {
			high = s.Maximum.Num().Int64()
		}
		return []int64{low, high, low + g.Int64N(high-low+1)}[g.IntN(3)]
	case "boolean":
		return g.IntN(2) == 0
	default:
		return nil
	}
}

// branch returns a value of one of the branches, or sometimes an object that matches two of them.
func (g *generator) branch(branches []*jsonschema.Schema, depth int) any {
	one, two := g.value(branches[g.IntN(len(branches))], depth), g.value(branches[g.IntN(len(branches))], depth)
	object, ok := one.(map[string]any)
	if other, same := two.(map[string]any); ok && same && g.IntN(2) == 0 {
		maps.Copy(object, other)
	}
	return one
}

func (g *generator) object(s *jsonschema.Schema, depth int) any {
	out := map[string]any{}
	for name, sub := range s.Properties {
		if slices.Contains(s.Required, name) && g.IntN(1000) >= g.faults || g.IntN(2+depth) == 0 {
			out[name] = g.value(sub, depth+1)
		}
	}
	if len(s.AnyOf) > 0 {
		for _, name := range s.AnyOf[g.IntN(len(s.AnyOf))].Required {
			out[name] = g.value(s.Properties[name], depth+1)
		}
	}
	if extra, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		for i := range g.IntN(3) {
			out[fmt.Sprintf("key-%d", i)] = g.value(extra, depth+1)
		}
	}
	return out
}

func (g *generator) array(s *jsonschema.Schema, depth int) any {
	low, high := or(s.MinItems, 0), or(s.MaxItems, 3)
	n := low + g.IntN(min(high-low, 3)+1)
	if g.IntN(1000) < g.faults {
		n = high + 1
	}
	out := make([]any, n)
	for i := range out {
		out[i] = "any"
		if s.Items2020 != nil {
			out[i] = g.value(s.Items2020, depth+1)
		}
	}
	return out
}

// text returns a text of the schema. Texts with a pattern come from the list, as those with a format.
func (g *generator) text(s *jsonschema.Schema) string {
	samples := []string{
		"2026-05-10T15:04:05Z", "2026-05-10", "ann@example.com", "https://example.com/hooks", "10:00", "USD", "8.875", "Europe/Berlin", "en", "de-DE", "DE",
		"+4930123456", "#00aaff", "MO", "09:30:00", "A", "2026-05",
	}
	if s.Pattern != nil {
		samples = append(samples, strings.TrimPrefix(s.Pattern.String(), "^")+"01h455vb4pex5vsknk084sn02q") // such as ^cu_
	}
	if s.Format == nil && s.Pattern == nil || s.Format != nil && s.Format.Name == "one-line" && s.Pattern == nil {
		low, high := or(s.MinLength, 0), or(s.MaxLength, 40)
		n := []int{low, high, low + g.IntN(high-low+1)}[g.IntN(3)]
		return strings.Repeat([]string{"a", "é", "😀"}[g.IntN(3)], n)
	}
	fits := slices.DeleteFunc(samples, func(text string) bool {
		return s.Format != nil && s.Format.Validate(text) != nil || s.Pattern != nil && !s.Pattern.MatchString(text)
	})
	if len(fits) == 0 || g.IntN(1000) < g.faults {
		return "none"
	}
	return fits[g.IntN(len(fits))]
}

// FuzzRules looks for bodies that a rule accepts and the validator rejects.
func FuzzRules(f *testing.F) {
	ops := published(f)
	g := generator{rand.New(rand.NewPCG(3, 4)), 0}
	for i, op := range ops {
		f.Add(uint16(i), []byte(g.body(op.body)))
	}
	f.Fuzz(func(t *testing.T, n uint16, body []byte) { agree(t, ops[int(n)%len(ops)], string(body)) })
}
