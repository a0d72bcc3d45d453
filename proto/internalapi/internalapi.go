// Package internalapi contains the bodies of the internal HTTP calls, generated from proto/internal, and of internal events. Both
// sides of a call use these types.
package internalapi
