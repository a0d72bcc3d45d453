package scenario_test

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"
)

// command matches the commands that run the first folder of each collection.
var command = regexp.MustCompile(`(?m)^\.ci/collections (newman|bru) .+$`)

// uuid is an Idempotency-Key that an API client has generated.
var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// TestCollections runs the commands of the README, which run the first folder of each collection: it creates a catalogue, a customer and a
// booking, and cancels the booking. The booking then must have the IDs of the other objects, and each write a key of its own.
func TestCollections(t *testing.T) {
	readme, err := os.ReadFile("../collections/README.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := command.FindAllStringSubmatch(string(readme), -1)
	if len(commands) != 2 {
		t.Fatalf("%d commands", len(commands))
	}
	for _, c := range commands {
		client := c[1]
		ctx, cancel := context.WithTimeout(t.Context(), longest)
		defer cancel()
		known := map[any]bool{}
		for _, b := range shared.list(ctx, t, "/bookings", url.Values{"status": {"cancelled"}}) {
			known[b["id"]] = true
		}
		cmd := exec.CommandContext(ctx, "bash", "-c", c[0])
		cmd.Dir, cmd.Env = "../..", append(os.Environ(), "NO_COLOR=1", "BASE_URL="+shared.baseURL, "DEMO_TEST_KEY="+shared.key)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", client, err, out)
			continue
		}
		var created []map[string]any
		for _, b := range shared.list(ctx, t, "/bookings", url.Values{"status": {"cancelled"}}) {
			if reason, _ := b["cancellation"].(map[string]any); !known[b["id"]] && reason["reason"] == "Bad weather" {
				created = append(created, b)
			}
		}
		if len(created) != 1 || created[0]["customer_id"] == nil || created[0]["unit_id"] == nil || created[0]["package_id"] == nil {
			t.Errorf("%s: the cancelled bookings are %v\n%s", client, created, out)
			continue
		}
		id, _ := created[0]["id"].(string)
		checkKeys(ctx, t, id)
	}
}

// checkKeys checks that the three writes to a booking had different generated keys.
func checkKeys(ctx context.Context, t *testing.T, booking string) {
	t.Helper()
	const writes = 3
	var events []map[string]any
	for end := time.Now().Add(30 * time.Second); len(events) < writes && time.Now().Before(end); time.Sleep(50 * time.Millisecond) { // they follow the response
		events = shared.list(ctx, t, "/events", url.Values{"object_id": {booking}})
	}
	keys := map[string]bool{}
	for _, e := range events {
		request, _ := e["request"].(map[string]any)
		key, _ := request["idempotency_key"].(string)
		if !uuid.MatchString(key) {
			t.Errorf("the key of %v is %q", e["type"], key)
		}
		keys[key] = true
	}
	if len(keys) != writes {
		t.Errorf("%d different keys of %d events: %v", len(keys), len(events), keys)
	}
}
