// Package bson replaces the format of MongoDB, which gin imports.
package bson

import "errors"

// Marshal returns an error, because services do not write BSON.
func Marshal(any) ([]byte, error) {
	return nil, errors.ErrUnsupported
}

// Unmarshal returns an error, because services do not read BSON.
func Unmarshal([]byte, any) error {
	return errors.ErrUnsupported
}
