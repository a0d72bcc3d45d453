// Package patch represents the fields of a partial update, which are absent, null, or have a value (RFC 7396).
package patch

import (
	"encoding/json"

	"github.com/oapi-codegen/nullable"
)

// Field is one field of a partial update. The zero value is absent.
type Field[T any] struct {
	given bool
	value *T
}

// Value returns a field with a value.
func Value[T any](v T) Field[T] { return Field[T]{given: true, value: &v} }

// Null returns a field that is null.
func Null[T any]() Field[T] { return Field[T]{given: true} }

// FromPointer converts a field of a generated body that cannot be null. nil is absent.
func FromPointer[T any](v *T) Field[T] { return Field[T]{given: v != nil, value: v} }

// FromNullable converts a field of a generated body that can be null.
func FromNullable[T any](n nullable.Nullable[T]) Field[T] {
	f := Field[T]{given: n.IsSpecified()}
	if v, err := n.Get(); err == nil {
		f.value = &v
	}
	return f
}

// Given reports whether the field is null or has a value.
func (f Field[T]) Given() bool { return f.given }

// Pointer returns the value, or nil if the field is absent or null.
func (f Field[T]) Pointer() *T { return f.value }

// Set copies the value, if any, to a property that cannot be null.
func (f Field[T]) Set(to *T) {
	if f.value != nil {
		*to = *f.value
	}
}

// SetNullable copies the value or nil to a property that can be null. An absent field changes nothing.
func (f Field[T]) SetNullable(to **T) {
	if f.given {
		*to = f.value
	}
}

// SetMetadata copies metadata, which is compact JSON. Null and every empty form set it to nil.
func SetMetadata(f Field[json.RawMessage], to *json.RawMessage) {
	if !f.given {
		return
	}
	*to = nil
	if f.value == nil {
		return
	}
	switch string(*f.value) {
	case "", "null", "{}", "[]":
	default:
		*to = *f.value
	}
}

// Precondition specifies the version of a resource that a change expects. The If-Match of a request implements it.
type Precondition interface {
	// Check returns apperr.ErrVersion if the version is not the expected one.
	Check(version int64) error
}
