package api_test

import (
	"encoding/json"
	"testing"

	"holdfast.dev/proto/api"
)

func TestNull(t *testing.T) {
	t.Parallel()
	null := api.Null[string]()
	if body, err := json.Marshal(null); err != nil || string(body) != "null" || !null.IsNull() {
		t.Errorf("%s, %v", body, err)
	}
	null.Set("x")
	if again := api.OrNull[string](nil); !again.IsNull() || null.MustGet() != "x" {
		t.Error("a field that was set has changed the other nulls")
	}
	if value := "y"; api.OrNull(&value).MustGet() != "y" {
		t.Error("a value is lost")
	}
}

func TestNullsTakeNoMemory(t *testing.T) { //nolint:paralleltest // counts the allocations of the process
	if n := testing.AllocsPerRun(100, func() { _ = api.Null[api.Customer]() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
