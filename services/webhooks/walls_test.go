package main

import (
	"testing"

	"holdfast.dev/libs/walls"
)

func TestWalls(t *testing.T) {
	t.Parallel()
	walls.Check(t, walls.HTTPInVerbs)
}
