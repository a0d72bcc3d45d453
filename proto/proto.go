// Package proto holds the contracts that every process shares: the public API, the events, and the
// internal calls. What is generated from them lies in its sub-packages.
package proto

import _ "embed"

// OpenAPI is the public contract, openapi.yaml.
//
//go:embed openapi.yaml
var OpenAPI []byte
