// Package helpers is not a layer.
package helpers
