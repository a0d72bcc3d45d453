// Package view converts domain objects into their public bodies. Responses, stored responses, and events all use it, so they cannot
// differ.
package view

import (
	"encoding/json"
	"time"

	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/proto/api"
)

func idOrNull[P ids.Prefix](id ids.ID[P]) nullable.Nullable[string] {
	if id.IsZero() {
		return api.Null[string]()
	}
	return nullable.NewNullableWithValue(id.String())
}

func timeOrNull(t *time.Time) nullable.Nullable[time.Time] {
	if t == nil {
		return api.Null[time.Time]()
	}
	return nullable.NewNullableWithValue(t.UTC())
}

func orEmpty(m json.RawMessage) json.RawMessage {
	if len(m) == 0 {
		return json.RawMessage(`{}`)
	}
	return m
}

func amount(a money.Amount) api.Money { return api.Money{Amount: a.Minor, Currency: a.Currency} }

// texts never returns nil, which would be encoded as null.
func texts[P ids.Prefix](list []ids.ID[P]) []string {
	out := make([]string, len(list))
	for i, id := range list {
		out[i] = id.String()
	}
	return out
}

func textOrNull(s *string) nullable.Nullable[string] {
	if s == nil {
		return api.Null[string]()
	}
	return nullable.NewNullableWithValue(*s)
}
