package view_test

import (
	"encoding/json"
	"testing"
	"time"

	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
	"holdfast.dev/services/console/internal/view"
)

// TestValues checks values whose form differs from that in the API: the object of an event, minutes, and the platform as an actor.
func TestValues(t *testing.T) {
	t.Parallel()
	messages, err := pages.NewMessages()
	if err != nil {
		t.Fatal(err)
	}
	v := view.Values{
		Format: view.Format{Text: messages.For("en", ""), Zone: time.UTC},
		Path:   func(page string) string { return "/" + page },
		NameOf: func(string) string { return "" },
	}
	const id = "bk_01m8cazka8fesrjh3acc791q9m"
	event := domain.Object{"object": "event", "data": map[string]any{"object": map[string]any{"id": id}}}
	if got := v.Of(event, "object"); got.Text != id || got.Href != "/bookings/"+id || got.Kind != view.Link {
		t.Errorf("the object of an event: %+v", got)
	}
	if got := v.Of(domain.Object{"duration_minutes": json.Number("240")}, "duration_minutes"); got.Text != "240" || got.Label != "Duration (minutes)" {
		t.Errorf("minutes: %+v", got)
	}
	headers := domain.Object{"headers": map[string]any{"X-B": nil, "Authorization": nil}}
	if got := v.Of(headers, "headers"); got.Text != "Authorization, X-B" || got.Kind != view.Plain {
		t.Errorf("headers: %+v", got)
	}
	if got := v.Of(domain.Object{"headers": map[string]any{}}, "headers"); got.Kind != view.Nothing {
		t.Errorf("no headers: %+v", got)
	}
	for actor, want := range map[string]string{"svc:customers": "System", "key_unknown": "key_unknown"} {
		if got := v.Of(domain.Object{"actor": actor}, "actor"); got.Text != want {
			t.Errorf("%s: %+v", actor, got)
		}
	}
}

// TestLabels checks that a page uses the name of a field for its resource, if there is one.
func TestLabels(t *testing.T) {
	t.Parallel()
	messages, err := pages.NewMessages()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ resource, field, want string }{
		{"requests", "method", "Methode"},
		{"invoices", "method", "Zahlungsart"},
		{"", "method", "Zahlungsart"},
		{"requests", "status", "Status"},
		{"requests", "unknown", "unknown"},
	} {
		f := view.Format{Text: messages.For("de", ""), Zone: time.UTC, Resource: tc.resource}
		if got := f.Label(tc.field); got != tc.want {
			t.Errorf("%s of %q: %q, want %q", tc.field, tc.resource, got, tc.want)
		}
	}
}
