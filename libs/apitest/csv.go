package apitest

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/money"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pgtest"
)

// SameRows fails the test unless a CSV has exactly the rows of a JSON list, each cell with the value of the property that
// its column names or is derived from. Rows without a time zone are those of a caller of pgtest.
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
			if got, want := records[i+1][j], derivedCell(t, row, name); got != want {
				t.Errorf("row %d, %s: %q, want %q", i, name, got, want)
			}
		}
	}
}

// derivedCell returns the expected cell for the column with the name.
func derivedCell(t testing.TB, row json.RawMessage, name string) string {
	t.Helper()
	if of, found := strings.CutSuffix(name, "_decimal"); found {
		amount, code := cellOf(t, row, of+".amount"), cellOf(t, row, of+".currency")
		decimals, err := money.Decimals(cmp.Or(code, "USD"))
		if err != nil || amount == "" {
			return ""
		}
		minor, _ := new(big.Rat).SetString(amount)
		return minor.Quo(minor, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil))).FloatString(decimals)
	}
	of, found := strings.CutSuffix(name, "_local")
	if !found {
		return cellOf(t, row, name)
	}
	zone, err := time.LoadLocation(cmp.Or(cellOf(t, row, "timezone"), pgtest.Timezone))
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse(time.RFC3339, cellOf(t, row, of))
	if err != nil {
		return ""
	}
	return at.In(zone).Format(time.DateTime)
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
