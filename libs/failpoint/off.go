//go:build !failpoints

// Package failpoint marks the steps at which a test makes a process crash. Only a build with the tag failpoints has them.
package failpoint

// Here does nothing: the compiler removes the call and the name.
func Here(string) {}
