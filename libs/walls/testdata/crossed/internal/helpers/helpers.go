// Package helpers is no room.
package helpers
