package follow_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"holdfast.dev/sdks/cli/internal/follow"
)

const bound = 2 << 20

// read returns every message of a stream as "id|event|data", and the error after the last.
func read(r io.Reader) ([]string, error) {
	var out []string
	stream := follow.NewReader(r)
	for {
		m, err := stream.Next()
		if err != nil {
			return out, err
		}
		data := string(m.Data)
		if m.Data == nil {
			data = "-"
		}
		out = append(out, fmt.Sprintf("%s|%s|%s", m.ID, m.Event, data))
	}
}

func TestReader(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		stream string
		want   []string
	}{
		"LF":                   {"id: 1\nevent: a\ndata: x\n\nid: 2\nevent: b\ndata: y\n\n", []string{"1|a|x", "2|b|y"}},
		"CRLF":                 {"id: 1\r\nevent: a\r\ndata: x\r\n\r\n", []string{"1|a|x"}},
		"mixed":                {"id: 1\r\ndata: x\n\r\ndata: y\r\n\n", []string{"1||x", "1||y"}},
		"several lines":        {"data: x\ndata:\ndata: y\n\n", []string{"||x\n\ny"}},
		"one space":            {"data:x\n\ndata:  x\n\n", []string{"||x", "|| x"}},
		"colons":               {"data: {\"a\":1}\n\n", []string{`||{"a":1}`}},
		"no colon":             {"data\n\n", []string{"||"}},
		"comments":             {": alive\n\n:\n\nid: 1\n: between\ndata: x\n\n", []string{"1||x"}},
		"others are ignored":   {"retry: 5\nfoo: bar\ndata: x\n\n", []string{"||x"}},
		"an id only":           {"id: 1\n\n", []string{"1||-"}},
		"an event only":        {"event: a\n\ndata: x\n\n", []string{"||x"}},
		"the id stays":         {"id: 1\ndata: x\n\ndata: y\n\n", []string{"1||x", "1||y"}},
		"the id is cleared":    {"id: 1\ndata: x\n\nid\ndata: y\n\n", []string{"1||x", "||y"}},
		"an id with NUL":       {"id: 1\x002\ndata: x\n\n", []string{"||x"}},
		"byte order mark":      {"\ufeffdata: x\n\n", []string{"||x"}},
		"cut in the data":      {"id: 1\ndata: x\n\nid: 2\ndata: y", []string{"1||x"}},
		"cut before the end":   {"id: 1\ndata: x\n\nid: 2\ndata: y\n", []string{"1||x"}},
		"cut behind the id":    {"id: 1\ndata: x\n\nid: 2\n", []string{"1||x"}},
		"cut in the empty one": {"id: 1\r\ndata: x\r\n\r", []string{"1||x"}},
		"nothing":              {"", nil},
	} {
		for reader, r := range map[string]io.Reader{"whole": strings.NewReader(tc.stream), "by bytes": iotest.OneByteReader(strings.NewReader(tc.stream))} {
			got, err := read(r)
			if !errors.Is(err, io.EOF) || !slices.Equal(got, tc.want) {
				t.Errorf("%s, %s: %q, %v; want %q", name, reader, got, err, tc.want)
			}
		}
	}
}

func TestReaderIsBounded(t *testing.T) {
	t.Parallel()
	fits := "data: " + strings.Repeat("x", bound-10) + "\n\n"
	long := "data: " + strings.Repeat("x", bound) + "\n\n"
	many := strings.Repeat("data: "+strings.Repeat("x", bound/4)+"\n", 5) + "\n"
	for name, tc := range map[string]struct {
		stream   string
		messages int
		want     error
	}{
		"below": {fits + fits, 2, io.EOF}, "above": {fits + long, 1, follow.ErrTooLong}, "in lines": {fits + many, 1, follow.ErrTooLong},
		"a comment": {":" + strings.Repeat("x", bound) + "\n\n", 0, follow.ErrTooLong},
	} {
		if got, err := read(strings.NewReader(tc.stream)); len(got) != tc.messages || !errors.Is(err, tc.want) {
			t.Errorf("%s: %d messages, %v", name, len(got), err)
		}
	}
}

func TestReaderReturnsTheErrorOfTheNetwork(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection reset")
	got, err := read(io.MultiReader(strings.NewReader("data: x\n\ndata: y\n"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || !slices.Equal(got, []string{"||x"}) {
		t.Errorf("%q, %v", got, err)
	}
}
