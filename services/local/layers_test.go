package main

import (
	"testing"

	"holdfast.dev/libs/archtest"
)

func TestSizes(t *testing.T) {
	t.Parallel()
	archtest.Sizes(t)
}
