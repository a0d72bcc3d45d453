package httpx_test

import (
	"net/http"
	"testing"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
)

func TestAcceptsCSV(t *testing.T) {
	t.Parallel()
	op := &contract.Operation{CSV: []contract.Column{{Name: "id"}}}
	for accept, want := range map[string]bool{
		"": false, "text/csv": true, "text/csv; charset=utf-8": true, "TEXT/CSV": true, "text/csv;q=0.5": true, "text/csv;q=0": false,
		"text/csv;q=x": false, "*/*": false, "text/*": false, "application/json": false, "text/csvx": false, ";;": false,
		"text/csv, application/json": false, "application/json, text/csv": false, "text/csv;q=0.5, application/json;q=0.5": false,
		"text/csv, application/json;q=0.9, */*": true, "text/csv, application/*": true, "text/csv;q=0, application/json;q=0": false, "text/csv, */*;q=0.1": true, "*/*, text/csv": true,
		"application/json, text/csv;q=0.9": false, "application/json;q=0.5, text/csv;q=0.9": true, "text/csv;q=0.5, */*;q=0.8": false,
		"application/json;q=0.1, */*, text/csv;q=0.5": true,
	} {
		if got := httpx.AcceptsCSV(op, http.Header{"Accept": {accept}}); got != want {
			t.Errorf("%q: %v", accept, got)
		}
	}
	if !httpx.AcceptsCSV(op, http.Header{"Accept": {"application/json;q=0.1", "text/csv"}}) {
		t.Error("a second Accept was not read")
	}
	if httpx.AcceptsCSV(&contract.Operation{}, http.Header{"Accept": {"text/csv"}}) || httpx.AcceptsCSV(nil, http.Header{"Accept": {"text/csv"}}) {
		t.Error("an operation without CSV returns it")
	}
}
