package main

import (
	"testing"

	"holdfast.dev/libs/archtest"
)

func TestLayers(t *testing.T) {
	t.Parallel()
	archtest.Check(t)
}
