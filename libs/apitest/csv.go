package apitest

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"

	"holdfast.dev/libs/page"
)

// SameRows fails the test unless a CSV has exactly the rows of a JSON list, each cell with the value of the property that
// its column names.
func SameRows(t testing.TB, body []byte, list []json.RawMessage) {
	t.Helper()
	records, err := csv.NewReader(bytes.NewReader(body)).ReadAll()
	if err != nil || len(records) != len(list)+1 {
		t.Fatalf("%d records for %d rows: %v", len(records), len(list), err)
	}
	if bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) || !bytes.HasSuffix(body, []byte("\r\n")) {
		t.Error("the CSV begins with a byte order mark, or its last line does not end")
	}
	for i, row := range list {
		for j, name := range records[0] {
			if got, want := records[i+1][j], cellOf(t, row, name); got != want {
				t.Errorf("row %d, %s: %q, want %q", i, name, got, want)
			}
		}
	}
}

// cellOf returns the expected cell for the property with the dotted name.
func cellOf(t testing.TB, row json.RawMessage, name string) string {
	t.Helper()
	for part := range strings.SplitSeq(name, ".") {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(row, &object); err != nil {
			t.Fatal(err)
		}
		if row = object[part]; row == nil || string(row) == "null" {
			return ""
		}
	}
	var text string
	if json.Unmarshal(row, &text) != nil {
		return string(row)
	}
	if strings.IndexAny(text, page.FormulaStarts) == 0 {
		return "'" + text
	}
	return text
}
