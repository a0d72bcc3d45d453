// Package api contains the bodies of the contract, generated from openapi.yaml.
package api

import "github.com/oapi-codegen/nullable"

// OrNull returns a nullable field's value: null when v is nil.
func OrNull[T any](v *T) nullable.Nullable[T] {
	if v == nil {
		return nullable.NewNullNullable[T]()
	}
	return nullable.NewNullableWithValue(*v)
}
