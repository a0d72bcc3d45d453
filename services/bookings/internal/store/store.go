// Package store is the only layer with SQL. Readers take a pg.Q, writers a pg.Tx. Each statement of the app role specifies the
// caller's tenant and mode, and row-level security checks them again.
package store

import (
	"encoding/json"
	"fmt"

	"holdfast.dev/libs/pg"
)

// toJSON returns the text for a json column; nil becomes null.
func toJSON[T any](v *T) (*string, error) {
	if v == nil {
		return nil, nil // A nil value is null.
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return pg.JSONText(raw), nil
}

// fromJSON reads what toJSON wrote.
func fromJSON[T any](raw []byte) (*T, error) {
	if raw == nil {
		return nil, nil // A nil value is null.
	}
	v := new(T)
	return v, json.Unmarshal(raw, v)
}
