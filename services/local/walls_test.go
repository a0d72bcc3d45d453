package main

import (
	"testing"

	"holdfast.dev/libs/walls"
)

func TestSizes(t *testing.T) {
	t.Parallel()
	walls.Sizes(t)
}
