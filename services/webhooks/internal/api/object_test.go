package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"

	"holdfast.dev/services/webhooks/internal/domain"
)

type eventPage struct {
	Data []json.RawMessage
	Next string
}

func (w *world) aboutObjects(ctx context.Context, objects []string, cursor string) response {
	w.T.Helper()
	path := "/internal/v1/events?object_ids=" + strings.Join(objects, ",") + "&cursor=" + url.QueryEscape(cursor)
	return response{w.Send(ctx, w.engine, "customers", "GET", path, "")}
}

// about reads all pages of the events about objects.
func (w *world) about(ctx context.Context, objects ...string) (all []string, pages int) {
	w.T.Helper()
	for cursor := ""; ; {
		a := w.aboutObjects(ctx, objects, cursor).is(200)
		got := apitest.Decode[eventPage](a.Response)
		if len(a.Body) > 2<<20+1000 && len(got.Data) > 1 || len(got.Data) > 250 {
			w.T.Errorf("a page of %d events in %d bytes", len(got.Data), len(a.Body))
		}
		for _, body := range got.Data {
			all = append(all, string(body))
		}
		pages++
		if cursor = got.Next; cursor == "" {
			return all, pages
		}
	}
}

// record writes n events about each object, each with size bytes of content. The objects alternate.
func (w *world) record(ctx context.Context, n, size int, objects ...string) {
	w.T.Helper()
	c := caller.FromContext(ctx)
	for i := range n {
		var list []domain.Event
		for _, object := range objects {
			list = append(list, domain.Event{
				ID: ids.New[ids.EventPrefix](), Tenant: c.Tenant, Livemode: c.Live(), Type: "customer.updated", ObjectID: object, Version: int64(i + 1),
				Object: fmt.Appendf(nil, `{"id":%q,"name":%q}`, object, strings.Repeat("n", size)), Previous: []byte(`{}`),
			})
		}
		if err := w.intake.Ingest(ctx, list); err != nil {
			w.T.Fatal(err)
		}
	}
}

// The events about several objects are those in the list for each object, one object after the other, and no events of others.
func TestEventsOfObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := ids.New[ids.TenantPrefix]()
	ctx := w.as(tenant, caller.Test)
	objects := make([]string, 100)
	for i := range objects {
		objects[i] = ids.New[ids.CustomerPrefix]().String()
	}
	w.record(ctx, 3, 10, objects[:5]...)
	w.record(ctx, 400, 10, objects[40])
	w.record(ctx, 30, 200_000, objects[60])
	w.record(ctx, 1, 3<<20, objects[70]) // larger than a page
	w.record(ctx, 2, 10, ids.New[ids.CustomerPrefix]().String())
	w.record(w.as(tenant, caller.Live), 2, 10, objects[0])
	w.record(w.as(ids.New[ids.TenantPrefix](), caller.Test), 2, 10, objects[0])
	w.do(ctx, "POST", "/webhook-endpoints/"+w.endpoint(ctx)+"/test", `{"type":"customer.created"}`).is(202)

	var want []string
	for _, object := range []int{0, 1, 2, 3, 4, 40, 60, 70} {
		var list []string
		next := ""
		for more := true; more; {
			got := apitest.Decode[struct {
				Data []json.RawMessage
				Next *string `json:"next_cursor"`
			}](w.do(ctx, "GET", "/events?limit=100&object_id="+objects[object]+next, "").is(200).Response)
			for _, body := range got.Data {
				list = append(list, string(body))
			}
			if more = got.Next != nil; more {
				next = "&cursor=" + *got.Next
			}
		}
		slices.Reverse(list) // the list returns the newest first
		want = append(want, list...)
	}
	if len(want) != 15+400+30+1 {
		t.Fatalf("%d events are shown", len(want))
	}
	got, pages := w.about(ctx, objects...)
	if !slices.Equal(got, want) || pages < 5 {
		t.Errorf("%d events on %d pages, want %d", len(got), pages, len(want))
	}
	if got, pages := w.about(ctx, objects[10:40]...); len(got) != 0 || pages != 1 {
		t.Errorf("%d events about objects without", len(got))
	}
}

func TestWrongQueriesForEventsOfObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, object := w.ctx(), ids.New[ids.CustomerPrefix]().String()
	w.aboutObjects(ctx, nil, "").is(422, "invalid_request", "object_ids")
	w.aboutObjects(ctx, []string{object, ""}, "").is(422, "invalid_request", "object_ids")
	w.aboutObjects(ctx, slices.Repeat([]string{object}, 101), "").is(422, "invalid_request", "object_ids")
	for _, cursor := range []string{"x", object, object + ".x", "cu_1." + ids.New[ids.EventPrefix]().String()} {
		w.aboutObjects(ctx, []string{object}, cursor).is(422, "invalid_request", "cursor")
	}
	response{w.Send(ctx, w.engine, "gateway", "GET", "/internal/v1/events?object_ids="+object, "")}.is(401, "invalid_credential")
}
