// Package codec replaces the library for MessagePack, which gin imports.
package codec

import (
	"errors"
	"io"
)

// MsgpackHandle replaces the options of the format.
type MsgpackHandle struct{}

// Encoder returns an error for every value, because services do not write MessagePack.
type Encoder struct{}

// NewEncoder returns an Encoder.
func NewEncoder(io.Writer, *MsgpackHandle) *Encoder {
	return &Encoder{}
}

// Encode returns an error.
func (*Encoder) Encode(any) error {
	return errors.ErrUnsupported
}

// Decoder returns an error for every value, because services do not read MessagePack.
type Decoder struct{}

// NewDecoder returns a Decoder.
func NewDecoder(io.Reader, *MsgpackHandle) *Decoder {
	return &Decoder{}
}

// Decode returns an error.
func (*Decoder) Decode(any) error {
	return errors.ErrUnsupported
}
