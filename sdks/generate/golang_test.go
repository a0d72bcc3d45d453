package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast.dev/sdks/generate/model"
)

// TestTheGoSDKIsFresh checks that the committed files are those that the contract and VERSION give.
func TestTheGoSDKIsFresh(t *testing.T) {
	t.Parallel()
	m, err := model.Read()
	if err != nil {
		t.Fatal(err)
	}
	version, err := os.ReadFile("../VERSION")
	if err != nil {
		t.Fatal(err)
	}
	files, err := golang(m, strings.TrimSpace(string(version)))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join("../go", name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale: run make gen (%v)", name, err)
		}
	}
}

// TestTheGoTypesAreSmall checks the limit of the generated types: a large package is slow to compile and to read.
func TestTheGoTypesAreSmall(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../go/models.gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte{'\n'}); n > 6000 {
		t.Errorf("the types have %d lines, at most 6000 are allowed", n)
	}
}

// TestGoNames checks how names of the contract are written in Go.
func TestGoNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"payment_intent_id": "PaymentIntentID", "unit_ids": "UnitIDs", "CalendarFeedWithUrl": "CalendarFeedWithURL", "listCsv": "ListCSV", "If-None-Match": "IfNoneMatch"} {
		if got := goName(model.Split(text)); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{"id": "id", "payment_id": "paymentID", "token": "token"} {
		if got := goArgument(model.Param{Name: text}); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	if got := goText("See [the list](/docs/errors) and `x[0]`, [b](c)."); got != "See the list and `x[0]`, b." {
		t.Error(got)
	}
}
