package view

import (
	"time"

	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/civil"
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

func dateOrNull(d *civil.Date) nullable.Nullable[string] {
	if d == nil {
		return api.Null[string]()
	}
	return nullable.NewNullableWithValue(d.String())
}

func amountOrNull(a *money.Amount) nullable.Nullable[api.Money] {
	if a == nil {
		return api.Null[api.Money]()
	}
	return nullable.NewNullableWithValue(api.Money{Amount: a.Minor, Currency: a.Currency})
}

// texts never returns nil, which would be encoded as null.
func texts[P ids.Prefix](list []ids.ID[P]) []string {
	out := make([]string, len(list))
	for i, id := range list {
		out[i] = id.String()
	}
	return out
}

func amount(a money.Amount) api.Money { return api.Money{Amount: a.Minor, Currency: a.Currency} }
