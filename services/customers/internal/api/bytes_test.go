package api_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pgtest"
)

// TestPagesOfTheLargestCustomers checks that a hundred of the largest customers are returned in sufficiently small pages, each
// customer once. The responses to bookings, which list the remaining customers, are equally small.
func TestPagesOfTheLargestCustomers(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	const four = "\U00010000" // one character, four bytes
	metadata := apitest.LargestMetadata()
	var want []string
	for range 100 {
		c := w.create(ctx, `"last_name":`+str(strings.Repeat(four, 100))+`,"company":`+str(strings.Repeat(four, 200))+`,"metadata":`+metadata)
		want = append([]string{c.ID}, want...)
	}
	get := func(query string) apitest.Response { return w.do(ctx, "GET", "/customers?"+query, "").Response }
	if got, sizes := w.Walk(get, 100); !slices.Equal(got, want) || len(sizes) < 100*len(metadata)/page.MaxBytes {
		t.Errorf("%d of %d rows in %d pages", len(got), len(want), len(sizes))
	}

	unknown := ids.New[ids.CustomerPrefix]().String()
	requested, calls := append([]string{unknown}, append(want[:99:99], unknown)...), 0
	var got []string
	for rest := requested; len(rest) > 0; calls++ {
		body, err := json.Marshal(map[string]any{"ids": rest[:min(len(rest), 100)]})
		if err != nil {
			t.Fatal(err)
		}
		a := w.from(ctx, w.engine, "bookings", "POST", "/internal/v1/customers/batch", string(body)).is(200)
		result := decode[struct {
			Data []customer
			Rest []string
		}](a)
		if len(a.Body) > page.MaxBytes+10_000 || len(result.Data) == 0 || len(result.Rest) >= len(rest) {
			t.Fatalf("%d bytes, %d customers, %d of %d left", len(a.Body), len(result.Data), len(result.Rest), len(rest))
		}
		for _, c := range result.Data {
			got = append(got, c.ID)
		}
		rest = result.Rest
	}
	if !slices.Equal(got, want[:99]) || calls < 99*len(metadata)/page.MaxBytes {
		t.Errorf("%d customers in %d calls", len(got), calls)
	}
}
