package api_test

import (
	"fmt"
	"strings"
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

const emoji = "⛵" // one character, three bytes

// entries returns a metadata object of n entries.
func entries(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"k%d":"v"`, i)
	}
	return "{" + strings.Join(list, ",") + "}"
}

// TestBounds checks each field at its limit and one above it.
func TestBounds(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	b := w.book(ctx, `"event_date":"2030-05-01"`)
	for _, tc := range []struct{ field, value, wrong string }{
		{"event_type", str(strings.Repeat(emoji, 100)), ""},
		{"event_type", str(strings.Repeat("t", 101)), "event_type"},
		{"event_type", `""`, ""},
		{"event_type", `null`, ""},
		{"event_type", `1`, "event_type"},
		{"event_type", `"a\u0000"`, "event_type"},
		{"notes", str(strings.Repeat(emoji, 5000)), ""},
		{"notes", str(strings.Repeat("n", 5001)), "notes"},
		{"notes", `[]`, "notes"},
		{"event_start_time", `""`, "event_start_time"},
		{"event_start_time", `"10:00 "`, "event_start_time"},
		{"event_start_time", `1000`, "event_start_time"},
		{"event_end_time", `"٠٩:٠٠"`, "event_end_time"},
		{"event_date", str(strings.Repeat("2", 101)), "event_date"},
		{"event_date", `20300501`, "event_date"},
		{"event_date", `"2030-05-01T25:00:00Z"`, "event_date"},
		{"status", `"open"`, "status"},
		{"status", `null`, "status"},
		{"customer_id", str(strings.Repeat("c", 101)), "customer_id"},
		{"service_id", `1`, "service_id"},
		{"guest_count", `2147483647`, ""},
		{"guest_count", `2147483648`, "guest_count"},
		{"guest_count", `1e2`, "guest_count"},
		{"guest_count", `"10"`, "guest_count"},
		{"guest_count", `true`, "guest_count"},
		{"metadata", entries(50), ""},
		{"metadata", entries(51), "metadata"},
		{"metadata", `{` + str(strings.Repeat(emoji, 40)) + `:` + str(strings.Repeat(emoji, 500)) + `}`, ""},
		{"metadata", `{` + str(strings.Repeat("k", 41)) + `:""}`, "metadata." + strings.Repeat("k", 41)},
		{"metadata", `{"k":` + str(strings.Repeat("v", 501)) + `}`, "metadata.k"},
		{"metadata", `{"":"v"}`, "metadata."},
		{"metadata", `{"k":1}`, "metadata.k"},
		{"metadata", `"text"`, "metadata"},
		{"nickname", `"\u0000"`, "nickname"},
	} {
		fields := `"event_date":"2030-05-01",` + str(tc.field) + ":" + tc.value
		if tc.field == "event_date" {
			fields = `"event_date":` + tc.value
		}
		created := w.post(ctx, "{"+fields+"}")
		changed := w.patch(ctx, b.ID, "{"+str(tc.field)+":"+tc.value+"}")
		if tc.wrong == "" {
			created.is(201)
			changed.is(200)
			continue
		}
		created.is(422, "invalid_request", tc.wrong)
		changed.is(422, "invalid_request", tc.wrong)
	}
}

func TestMetadataRoundTrip(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	for sent, want := range map[string]string{
		`{ "z":"1", "a":"2" }`:                   `{"z":"1","a":"2"}`,
		`{"\u006b":"<é&\u00e9\ud83d\ude00\"\/"}`: `{"k":"<é&é😀\"/"}`,
		`["b","a","b"]`:                          `["b","a","b"]`,
		`{}`:                                     `{}`,
		`[]`:                                     `{}`,
		`null`:                                   `{}`,
	} {
		b := w.book(ctx, `"event_date":"2030-05-01","metadata":%s`, sent)
		if got := string(w.get(ctx, b.ID).Metadata); got != want {
			t.Errorf("POST %s: %s", sent, got)
		}
		c := w.book(ctx, `"event_date":"2030-05-01","metadata":{"old":"1"}`)
		w.patch(ctx, c.ID, `{"metadata":`+sent+`}`).is(200)
		if got := string(w.get(ctx, c.ID).Metadata); got != want {
			t.Errorf("PATCH %s: %s", sent, got)
		}
		if got := w.list(ctx, "/bookings?metadata[old]=1"); len(got.Data) != 0 {
			t.Error("the old pairs are still found")
		}
	}
}
