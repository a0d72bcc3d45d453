package api

import "github.com/oapi-codegen/nullable"

// OrNull is a nullable field's value: null where there is none.
func OrNull[T any](v *T) nullable.Nullable[T] {
	if v == nil {
		return nullable.NewNullNullable[T]()
	}
	return nullable.NewNullableWithValue(*v)
}
