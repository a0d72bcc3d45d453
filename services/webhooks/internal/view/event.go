package view

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/contract"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/webhooks/internal/domain"
)

// Event returns the body of an event, which is stored, shown and delivered. It contains the unchanged bytes of the object.
func Event(e domain.Event) (json.RawMessage, error) {
	mode := api.Test
	if e.Livemode {
		mode = api.Live
	}
	body := api.Event{
		Id: e.ID.String(), Object: api.EventObjectEvent, Type: api.EventType(e.Type), ApiVersion: api.V1, Mode: mode,
		CreatedAt: e.ID.Time(), ResourceVersion: e.Version,
	}
	body.Data.Object, body.Data.PreviousAttributes = e.Object, e.Previous
	body.Request.SetNull()
	if e.RequestID != "" {
		body.Request.Set(struct {
			Id             string                    `json:"id"` //nolint:revive // the name of the generated field
			IdempotencyKey nullable.Nullable[string] `json:"idempotency_key"`
		}{e.RequestID, textOrNull(e.IdempotencyKey)})
	}
	return contract.Encode(body)
}

// textOrNull returns null for an empty text.
func textOrNull(s string) nullable.Nullable[string] {
	if s == "" {
		return api.Null[string]()
	}
	return nullable.NewNullableWithValue(s)
}

// Erased returns the body of an event without the personal data that the contract marks.
func Erased(spec *contract.Contract, body []byte) (json.RawMessage, error) {
	var e api.Event
	if err := json.Unmarshal(body, &e); err != nil {
		return nil, fmt.Errorf("stored event: %w", err)
	}
	object, previous, err := spec.EraseChange(contract.KindOf(string(e.Type)), e.Data.Object, e.Data.PreviousAttributes)
	if err != nil {
		return nil, fmt.Errorf("stored event: %w", err)
	}
	e.Data.Object, e.Data.PreviousAttributes = object, previous
	return contract.Encode(e)
}

//go:embed samples/*.json
var samples embed.FS

// Sample returns an example object of the kind that events of a type are about, and its id.
func Sample(eventType string, mode api.Mode) (id string, object json.RawMessage, err error) {
	raw, err := samples.ReadFile("samples/" + contract.KindOf(eventType) + ".json")
	if err != nil {
		return "", nil, fmt.Errorf("sample: %w", err)
	}
	raw = []byte(strings.ReplaceAll(string(raw), `"mode": "test"`, fmt.Sprintf(`"mode": %q`, mode)))
	var head struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return "", nil, fmt.Errorf("sample: %w", err)
	}
	object, err = contract.Encode(json.RawMessage(raw))
	return head.ID, object, err
}
