// Package api contains the bodies of the contract, generated from openapi.yaml.
package api

import (
	"reflect"
	"sync"

	"github.com/oapi-codegen/nullable"
)

// nulls contains the values of Null by type.
var nulls sync.Map

// Null returns the null of a nullable field. All nulls of a type share one map, because a separate map for each null would have
// room for eight values and would use most of the memory of a body. To change the field, replace it, as the methods of
// nullable.Nullable do. Never change its map.
func Null[T any]() nullable.Nullable[T] {
	t := reflect.TypeFor[T]()
	shared, ok := nulls.Load(t)
	if !ok {
		shared, _ = nulls.LoadOrStore(t, nullable.NewNullNullable[T]())
	}
	null, _ := shared.(nullable.Nullable[T])
	return null
}

// OrNull returns a nullable field with the value v, or null if v is nil.
func OrNull[T any](v *T) nullable.Nullable[T] {
	if v == nil {
		return Null[T]()
	}
	return nullable.NewNullableWithValue(*v)
}
