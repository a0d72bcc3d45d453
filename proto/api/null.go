// Package api contains the bodies of the contract, generated from openapi.yaml.
package api

import (
	"reflect"
	"sync"

	"github.com/oapi-codegen/nullable"
)

// nulls are the values of Null by their type.
var nulls sync.Map

// Null returns a nullable field's null. All nulls of a type share one map, because a map for each null has room for eight values,
// which is most of the memory of a body. To change the field, replace it, as the methods of nullable.Nullable do. Never change
// its map.
func Null[T any]() nullable.Nullable[T] {
	t := reflect.TypeFor[T]()
	shared, ok := nulls.Load(t)
	if !ok {
		shared, _ = nulls.LoadOrStore(t, nullable.NewNullNullable[T]())
	}
	null, _ := shared.(nullable.Nullable[T])
	return null
}

// OrNull returns a nullable field's value: null when v is nil.
func OrNull[T any](v *T) nullable.Nullable[T] {
	if v == nil {
		return Null[T]()
	}
	return nullable.NewNullableWithValue(*v)
}
