package model

import (
	"strings"
	"unicode"
)

// Name is a name as lowercase words.
type Name []string

// Split returns the words of a name in camelCase, PascalCase, snake_case or kebab-case.
func Split(text string) Name {
	var name Name
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			name = append(name, word.String())
		}
		word.Reset()
	}
	for _, r := range text {
		switch {
		case r == '_' || r == '-' || r == ' ' || r == '.':
			end()
			continue
		case unicode.IsUpper(r):
			end()
		}
		word.WriteRune(unicode.ToLower(r))
	}
	end()
	return name
}

// Camel returns the name as paymentIntents.
func (n Name) Camel() string {
	pascal := n.Pascal()
	return strings.ToLower(pascal[:1]) + pascal[1:]
}

// Pascal returns the name as PaymentIntents.
func (n Name) Pascal() string {
	var text strings.Builder
	for _, word := range n {
		text.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return text.String()
}

// Snake returns the name as payment_intents.
func (n Name) Snake() string { return strings.Join(n, "_") }

// Kebab returns the name as payment-intents.
func (n Name) Kebab() string { return strings.Join(n, "-") }

// String returns the name as payment intents.
func (n Name) String() string { return strings.Join(n, " ") }

// Singular returns the name with its last word in the singular: payment intent.
func (n Name) Singular() Name {
	last := len(n) - 1
	return append(append(Name{}, n[:last]...), singular(n[last]))
}

// without returns the name without the words of a resource, in the singular or in the plural: mark uncollectible for mark invoice
// uncollectible.
func (n Name) without(resource Name) Name {
	for i := 0; i+len(resource) <= len(n); i++ {
		if n[i : i+len(resource)].is(resource) {
			return append(append(Name{}, n[:i]...), n[i+len(resource):]...)
		}
	}
	return n
}

// is reports whether two names are equal except for the plural of the last word.
func (n Name) is(other Name) bool {
	last := len(n) - 1
	for i := range last {
		if n[i] != other[i] {
			return false
		}
	}
	return singular(n[last]) == singular(other[last])
}

func singular(word string) string { return strings.TrimSuffix(word, "s") }
