package pages

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"holdfast.dev/libs/locale"
)

// message is a pattern of the API's messages about invalid values. The English texts contain the messages, with names in place of
// the variable parts.
type message struct {
	id      string
	pattern *regexp.Regexp
	names   []string
}

var insert = regexp.MustCompile(`\{\{\.(\w+)\}\}`)

// patterns are the messages, the longest first, because it is the most specific of several matches.
var patterns = sync.OnceValue(func() []message {
	raw, err := locales.ReadFile("locales/" + standard.String() + ".json")
	texts := map[string]json.RawMessage{}
	if err != nil || json.Unmarshal(raw, &texts) != nil {
		return nil // NewMessages reports the error of the file
	}
	var out []message
	for id, raw := range texts {
		var text string
		if !strings.HasPrefix(id, "message_") || json.Unmarshal(raw, &text) != nil {
			continue
		}
		m := message{id: id}
		var pattern strings.Builder
		last := 0
		for _, at := range insert.FindAllStringSubmatchIndex(text, -1) {
			pattern.WriteString(regexp.QuoteMeta(text[last:at[0]]) + "(.+?)")
			m.names, last = append(m.names, text[at[2]:at[3]]), at[1]
		}
		m.pattern = regexp.MustCompile("^" + pattern.String() + regexp.QuoteMeta(text[last:]) + "$")
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b message) int { return len(b.pattern.String()) - len(a.pattern.String()) })
	return out
})

// Translate returns the API's message about an invalid value in another language. It returns a message without a translation
// unchanged.
func Translate(t locale.Text, said string) string {
	if t.Lang == standard.String() {
		return said
	}
	for _, m := range patterns() {
		found := m.pattern.FindStringSubmatch(said)
		if found == nil {
			continue
		}
		pairs := make([]any, 0, 2*len(m.names))
		for i, name := range m.names {
			pairs = append(pairs, name, found[i+1])
		}
		return t.T(m.id, pairs...)
	}
	return said
}
