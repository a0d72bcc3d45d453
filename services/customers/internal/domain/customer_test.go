package domain_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/patch"

	"holdfast.dev/services/customers/internal/domain"
)

func TestName(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		first string
		last  *string
		want  string
	}{
		{"Ann", nil, "Ann"},
		{"Ann", new("Lee"), "Ann Lee"},
		{" Ann ", new(""), "Ann"},
		{" ", nil, ""},
		{"Ann", new(" Lee "), "Ann  Lee"},
	} {
		if got := (domain.Customer{FirstName: tc.first, LastName: tc.last}).Name(); got != tc.want {
			t.Errorf("%q %v: got %q, want %q", tc.first, tc.last, got, tc.want)
		}
	}
}

func TestAnEmptyBagIsNone(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{``: ``, `null`: ``, `{}`: ``, `[]`: ``, `{"b":"1"}`: `{"b":"1"}`, `[""]`: `[""]`} {
		change := domain.CustomerPatch{Metadata: patch.Value(json.RawMessage(in))}
		c, err := domain.Customer{Email: "a@b.co", Metadata: json.RawMessage(`{"old":"1"}`)}.Apply(change)
		if got := c.Metadata; err != nil || string(got) != want || (got == nil) != (want == "") {
			t.Errorf("%s: got %s, %v, want %s", in, got, err, want)
		}
	}
}

func TestApplyChangesOnlyWhatIsGiven(t *testing.T) {
	t.Parallel()
	c := domain.Customer{FirstName: "Ann", LastName: new("Lee"), Email: "a@b.co", Phone: new("1"), Metadata: json.RawMessage(`{"a":"1"}`)}
	got, err := c.Apply(domain.CustomerPatch{FirstName: patch.Value("Bea"), Phone: patch.Null[string]()})
	if err != nil || got.FirstName != "Bea" || got.Phone != nil || *got.LastName != "Lee" || got.Email != "a@b.co" || string(got.Metadata) != `{"a":"1"}` {
		t.Errorf("got %+v", got)
	}
	if c.FirstName != "Ann" || c.Phone == nil {
		t.Error("the customer itself has changed")
	}
}

func TestACustomerCanBeReached(t *testing.T) {
	t.Parallel()
	null, value := patch.Null[string](), patch.Value[string]
	for name, tc := range map[string]struct {
		before domain.Customer
		change domain.CustomerPatch
		email  *string
		fails  bool
	}{
		"neither":             {domain.Customer{}, domain.CustomerPatch{FirstName: value("Ann")}, nil, true},
		"an empty phone":      {domain.Customer{}, domain.CustomerPatch{Phone: value("")}, nil, true},
		"a phone":             {domain.Customer{}, domain.CustomerPatch{Phone: value("1")}, nil, false},
		"an address":          {domain.Customer{}, domain.CustomerPatch{Email: value("a@b.co")}, new("a@b.co"), false},
		"the last is cleared": {domain.Customer{Email: "a@b.co"}, domain.CustomerPatch{Email: null}, nil, true},
		"one of two":          {domain.Customer{Email: "a@b.co", Phone: new("1")}, domain.CustomerPatch{Email: null}, nil, false},
		"one for the other":   {domain.Customer{Phone: new("1")}, domain.CustomerPatch{Email: value("a@b.co"), Phone: null}, new("a@b.co"), false},
	} {
		got, err := tc.before.Apply(tc.change)
		if fields := fieldsOf(err); tc.fails != slices.Equal(fields, []string{"email", "phone"}) || !tc.fails && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if address := got.EmailOrNil(); (address == nil) != (tc.email == nil) || address != nil && *address != *tc.email {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// fieldsOf returns the fields of an error.
func fieldsOf(err error) []string {
	if err == nil {
		return nil
	}
	var out []string
	for _, f := range apperr.As(err).Fields {
		out = append(out, f.Field)
	}
	return out
}

func TestFold(t *testing.T) {
	t.Parallel()
	for _, tc := range [][2]string{{"ANN@X.CO", "ann@x.co"}, {"ΟΔΥΣΣΕΥΣ", "οδυσσευς"}, {"ÉMILE", "émile"}, {"\u212A", "k"}} {
		if domain.Fold(tc[0]) != domain.Fold(tc[1]) {
			t.Errorf("%q and %q differ in case only", tc[0], tc[1])
		}
	}
	if domain.Fold("a") == domain.Fold("b") || domain.Fold("Ann@x.CO") != "ann@x.co" {
		t.Error("folding is lower case")
	}
}

func TestSearchTerms(t *testing.T) {
	t.Parallel()
	c := domain.Customer{FirstName: "Anna Maria", LastName: new("O'Brien"), Email: "anna.smith@Example.com", Company: new("(Acme) 3M")}
	want := []string{
		"(acme)", "3m", "acme)", "anna", "anna.smith@example.com", "brien", "com", "example.com", "maria", "o'brien", "smith@example.com",
	}
	if got := slices.Sorted(slices.Values(c.SearchTerms())); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// found reports whether the customer has a search term in one of the ranges of term.
func found(c domain.Customer, term domain.Term) bool {
	return inRanges(c.SearchTerms(), term)
}

func inRanges(terms []string, term domain.Term) bool {
	return slices.ContainsFunc(terms, func(w string) bool {
		return slices.ContainsFunc(term, func(p domain.Prefix) bool { return w >= p.From && w < p.Before })
	})
}

// matches returns the result of the store's range conditions.
func matches(c domain.Customer, q string) bool {
	for _, term := range domain.Terms(q) {
		if !found(c, term) {
			return false
		}
	}
	return true
}

func TestPrefixes(t *testing.T) {
	t.Parallel()
	c := domain.Customer{FirstName: "Zoë", LastName: new("O'Brien"), Email: "zoe@example.com", Company: new("Ünal \uD7FFx \U0010FFFF\U0010FFFF")}
	for q, want := range map[string]bool{
		"": true, "  ": true, "z": true, "ZOË": true, "zoë o'b": true, "brien EXAM": true, "zoe@ex": true, "com": true,
		"ü": true, "\uD7FF": true, "\U0010FFFF": true, "\U0010FFFF\U0010FFFF": true,
		"oë": false, "zoë y": false, "zoez": false, "\U0010FFFF\U0010FFFF\U0010FFFF": false,
	} {
		if got := matches(c, q); got != want {
			t.Errorf("%q: got %v", q, got)
		}
	}
}

func TestPrefixRangeIsExactlyThePrefix(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		terms := domain.Terms(rapid.StringN(1, 6, -1).Draw(t, "prefix"))
		if len(terms) != 1 {
			t.Skip("several words, or none")
		}
		p := terms[0][0]
		other := rapid.OneOf(rapid.String(), rapid.Custom(func(t *rapid.T) string { return p.From + rapid.String().Draw(t, "rest") })).Draw(t, "other")
		if utf8.RuneCountInString(other) > 255 {
			t.Skip("longer than a field")
		}
		if in := other >= p.From && other < p.Before; in != strings.HasPrefix(other, p.From) {
			t.Fatalf("%q in range of %q: %v", other, p.From, in)
		}
	})
}
