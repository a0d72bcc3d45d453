package ids_test

import (
	"testing"

	"holdfast.dev/libs/ids"
)

// TestPublicAndStored checks that the two forms of an id convert into each other, and that an id of the payment gateway stays.
func TestPublicAndStored(t *testing.T) {
	t.Parallel()
	id := ids.New[ids.BookingPrefix]()
	stored, err := id.Value()
	if err != nil {
		t.Fatal(err)
	}
	if got := ids.Public("bk", stored.(string)); got != id.String() {
		t.Errorf("%s, want %s", got, id)
	}
	if prefix, key := ids.Stored(id.String()); prefix != "bk" || key != stored {
		t.Errorf("%s %s, want %s", prefix, key, stored)
	}
	for _, gateway := range []string{"pi_3MtwBwLkdIwHu7ix28a3tqPa", "pi_1"} {
		if prefix, key := ids.Stored(gateway); prefix != "pi" || key != gateway || ids.Public("pi", gateway) != gateway {
			t.Errorf("%s: %s %s", gateway, prefix, key)
		}
	}
}
