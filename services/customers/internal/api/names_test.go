package api_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
)

// The CSV of leads, quotes and invoices has the names of customers and units, if the credential may read these. JSON has none, and neither
// has an erased customer. Without bookings, there is no list whose names are missing.
func TestNamesInCSV(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := converter(t)
	_, unit, _ := w.catalogue()
	id, err := ids.Parse[ids.UnitPrefix](unit)
	if err != nil {
		t.Fatal(err)
	}
	w.bookings.NameUnit(id, "Kayak 1")
	customer := w.create(ctx, `"last_name":"Smith"`)
	lines := `"line_items":[{"description":"x","quantity":1,"unit_amount":{"amount":100,"currency":"USD"}}]`
	lead := w.lead(ctx, withEmail+fmt.Sprintf(`,"unit_id":%q`, unit))
	rows := map[string]string{
		"quotes":   w.do(ctx, "POST", "/quotes", fmt.Sprintf(`{"customer_id":%q,"unit_id":%q,"event_date":"2031-05-01",%s}`, customer.ID, unit, lines)).is(201).quote().ID,
		"invoices": w.do(ctx, "POST", "/invoices", fmt.Sprintf(`{"customer_id":%q,%s}`, customer.ID, lines)).is(201).invoice().ID,
		"leads":    lead.ID,
	}
	w.do(ctx, "POST", "/leads/"+lead.ID+"/convert", fmt.Sprintf(`{"customer_id":%q}`, customer.ID)).is(200)
	w.lead(ctx, withEmail)
	names := func(list string, scopes ...string) string {
		t.Helper()
		records, err := csv.NewReader(bytes.NewReader(w.csv(withScopes(ctx, scopes...), "/"+list))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records[1:] {
			if r[0] == rows[list] {
				out := r[slices.Index(records[0], "customer_name")]
				if at := slices.Index(records[0], "unit_name"); at >= 0 {
					out += "|" + r[at]
				}
				return out
			}
		}
		t.Fatalf("%s is not in %v", rows[list], records)
		return ""
	}
	for _, list := range []string{"leads", "quotes", "invoices"} {
		for scopes, want := range map[string]string{
			"read:" + list: "|", "read:customers": "Ann Smith|", "read:units": "|Kayak 1", "read:customers read:units": "Ann Smith|Kayak 1",
		} {
			if list == "invoices" {
				want, _, _ = strings.Cut(want, "|")
			}
			if got := names(list, strings.Fields(scopes)...); got != want {
				t.Errorf("%s with %s: %q, want %q", list, scopes, got, want)
			}
		}
		all := withScopes(ctx, "read:customers", "read:units")
		if body := string(w.do(all, "GET", "/"+list, "").is(200).Body); strings.Contains(body, "customer_name") || strings.Contains(body, "unit_name") {
			t.Errorf("the JSON of %s has names: %s", list, body)
		}
	}
	w.bookings.Before = func(context.Context, string) error {
		return apperr.ErrUnavailable.WithCause(errors.New("bookings is away"))
	}
	w.do(withScopes(ctx, "read:units"), "GET", "/quotes", "", "Accept: text/csv").is(503, "unavailable")
	if got := names("quotes", "read:quotes"); got != "|" {
		t.Errorf("without bookings: %q", got)
	}
	w.bookings.Before = nil
	w.Exec(`update customers set erased_at = now(), version = version + 1`)
	if got := names("invoices", "read:customers"); got != "" {
		t.Errorf("after the erasure: %q", got)
	}
}
