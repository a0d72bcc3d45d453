// Package store is in order.
package store
