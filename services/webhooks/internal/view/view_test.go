package view_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/ids"
	"holdfast.dev/proto"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/view"
)

// The body has the form of the contract's Event, and the bytes of the object are unchanged.
func TestEvent(t *testing.T) {
	t.Parallel()
	id := ids.New[ids.EventPrefix]()
	e := domain.Event{
		ID: id, Livemode: true, Type: "customer.updated", ObjectID: "cu_1", Version: 7, RequestID: "req_1", IdempotencyKey: "k",
		Object: json.RawMessage(`{"id":"cu_1","name":"<&> 🎉 \u0041","metadata":{"b":"1","a":"2","b":"3"}}`), Previous: json.RawMessage(`{"name":"B"}`),
	}
	want := `{"id":"` + id.String() + `","object":"event","type":"customer.updated","api_version":"v1","mode":"live","created_at":"` +
		id.Time().Format(time.RFC3339Nano) + `","resource_version":7,"request":{"id":"req_1","idempotency_key":"k"},"data":{"object":` +
		`{"id":"cu_1","name":"<&> 🎉 \u0041","metadata":{"b":"1","a":"2","b":"3"}},"previous_attributes":{"name":"B"}}}`
	if got, err := view.Event(e); err != nil || string(got) != want {
		t.Errorf("got  %s\nwant %s, %v", got, want, err)
	}
	e.IdempotencyKey, e.Livemode = "", false
	if got, _ := view.Event(e); !bytes.Contains(got, []byte(`"mode":"test"`)) || !bytes.Contains(got, []byte(`"request":{"id":"req_1","idempotency_key":null}`)) {
		t.Errorf("without a key: %s", got)
	}
	e.RequestID = ""
	if got, _ := view.Event(e); !bytes.Contains(got, []byte(`"request":null`)) {
		t.Errorf("of the platform itself: %s", got)
	}
}

func TestErased(t *testing.T) {
	t.Parallel()
	spec, err := contract.Public()
	if err != nil {
		t.Fatal(err)
	}
	e := domain.Event{
		ID: ids.New[ids.EventPrefix](), Type: "customer.updated",
		Object:   json.RawMessage(`{"id":"cu_1","name":"N","first_name":"F","last_name":null,"email":"e","phone":"p","company":"c","metadata":{"m":"secret"},"version":3}`),
		Previous: json.RawMessage(`{"email":"old@b.c","metadata":{"m":"secret"}}`),
	}
	body, err := view.Event(e)
	if err != nil {
		t.Fatal(err)
	}
	erased, err := view.Erased(spec, body)
	if err != nil {
		t.Fatal(err)
	}
	var got api.Event
	if err := json.Unmarshal(erased, &got); err != nil {
		t.Fatal(err)
	}
	if want := `{"id":"cu_1","name":"","first_name":"","last_name":null,"email":null,"phone":null,"company":null,"metadata":{},"version":3}`; string(got.Data.Object) != want {
		t.Errorf("object %s", got.Data.Object)
	}
	if want := `{"email":null,"metadata":{}}`; string(got.Data.PreviousAttributes) != want || strings.Contains(string(erased), "secret") {
		t.Errorf("%s", erased)
	}
	if _, err := view.Erased(spec, []byte(`{`)); err == nil {
		t.Error("a broken body was erased")
	}
}

// Each type has a sample in the caller's mode. The samples of resources that exist have exactly the contract's fields.
func TestSamples(t *testing.T) {
	t.Parallel()
	for _, kind := range proto.EventTypes {
		id, object, err := view.Sample(kind.Name, api.Live)
		if err != nil || id == "" || !bytes.Contains(object, []byte(`"mode":"live"`)) || !bytes.Contains(object, []byte(id)) {
			t.Errorf("%s: %s %s %v", kind.Name, id, object, err)
		}
		if want := `"object":"` + contract.KindOf(kind.Name) + `"`; !bytes.Contains(object, []byte(want)) {
			t.Errorf("%s: want %s in %s", kind.Name, want, object)
		}
		switch resource, _, _ := strings.Cut(kind.Name, "."); resource {
		case "booking":
			same[api.Booking](t, object)
		case "customer":
			same[api.Customer](t, object)
		case "lead":
			same[api.Lead](t, object)
		case "quote":
			same[api.Quote](t, object)
		case "invoice":
			same[api.Invoice](t, object)
		case "payment":
			same[api.PaymentIntent](t, object)
		}
	}
	if _, _, err := view.Sample("../../secrets", api.Test); err == nil {
		t.Error("a sample of nothing")
	}
}

// same fails unless object has exactly the fields of T.
func same[T any](t *testing.T, object []byte) {
	t.Helper()
	var v T
	dec := json.NewDecoder(bytes.NewReader(object))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		t.Errorf("%v: %s", err, object)
		return
	}
	again, err := contract.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	var x, y any
	if json.Unmarshal(object, &x) != nil || json.Unmarshal(again, &y) != nil || !reflect.DeepEqual(x, y) {
		t.Errorf("sample %s\nshape  %s", object, again)
	}
}
