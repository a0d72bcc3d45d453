// Package helpers is no layer.
package helpers
