// Package proto holds the contracts that every process shares: the public API, the events, and the
// internal calls. What is generated from them lies in its sub-packages.
package proto

import _ "embed"

// OpenAPI is the public contract as it is served: openapi.yaml with all that follows from it.
//
//go:embed api/openapi.yaml
var OpenAPI []byte
