package holdfast

import (
	"encoding/json"
	"errors"

	"github.com/oapi-codegen/nullable"
)

// Ptr returns a pointer to a value, for optional fields.
func Ptr[T any](value T) *T { return &value }

// Set returns a value for a field that can be null.
func Set[T any](value T) nullable.Nullable[T] { return nullable.NewNullableWithValue(value) }

// Null returns null. In an update, it clears the field.
func Null[T any]() nullable.Nullable[T] { return nullable.NewNullNullable[T]() }

// AppliesTo states which services or packages a holiday rule changes the prices of: all of them, or those of one list.
type AppliesTo struct {
	All        bool
	ServiceIDs []string
	PackageIDs []string
}

// selection is the JSON object of an AppliesTo that names services or packages.
type selection struct {
	ServiceIDs []string `json:"service_ids,omitzero"`
	PackageIDs []string `json:"package_ids,omitzero"`
}

// MarshalJSON returns "all" or an object.
func (a AppliesTo) MarshalJSON() ([]byte, error) {
	if a.All {
		return []byte(`"all"`), nil
	}
	return json.Marshal(selection{a.ServiceIDs, a.PackageIDs})
}

// UnmarshalJSON reads "all" or an object.
func (a *AppliesTo) UnmarshalJSON(document []byte) error {
	var text string
	if json.Unmarshal(document, &text) == nil {
		if text != "all" {
			return errors.New(`applies_to must be "all" or an object`)
		}
		*a = AppliesTo{All: true}
		return nil
	}
	var s selection
	err := json.Unmarshal(document, &s)
	*a = AppliesTo{ServiceIDs: s.ServiceIDs, PackageIDs: s.PackageIDs}
	return err
}
