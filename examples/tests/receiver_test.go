package tests

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	holdfast "holdfast.dev/sdks/go"
)

// languages are the receivers: a function for each returns its command and its environment.
var languages = map[string]func(t *testing.T) (command, env []string){
	"go": func(t *testing.T) (command, env []string) {
		t.Helper()
		bin, err := filepath.Abs("../../bin/receiver")
		if err == nil {
			_, err = os.Stat(bin)
		}
		if err != nil {
			t.Fatalf("%v: run `make bin/receiver`", err)
		}
		return []string{bin}, nil
	},
	"python": func(t *testing.T) (command, env []string) {
		t.Helper()
		python, err := exec.CommandContext(t.Context(), "../../.ci/sdk-python", "path").Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, python)
		}
		source, err := filepath.Abs("../../sdks/python/src")
		if err != nil {
			t.Fatal(err)
		}
		return []string{strings.TrimSpace(string(python)), "../receiver/python/receiver.py"}, []string{"PYTHONPATH=" + source}
	},
}

// receiver is a receiver with its database.
type receiver struct {
	command, env []string
	database     string
	secret       string
	process      *exec.Cmd
	address      string // of /hooks, while it runs
}

// start starts the receiver, and waits until it listens.
func (r *receiver) start(t *testing.T) {
	t.Helper()
	r.process = exec.CommandContext(t.Context(), r.command[0], append(slices.Clone(r.command[1:]), "--database", r.database, "--address", "127.0.0.1:0")...)
	r.process.Env = with(append(slices.Clone(r.env), "HOLDFAST_WEBHOOK_SECRET="+r.secret)...)
	out, err := r.process.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.process.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for r.address = ""; r.address == ""; {
		if !lines.Scan() {
			t.Fatalf("the receiver ended: %v", r.process.Wait())
		}
		r.address = regexp.MustCompile(`http://\S+`).FindString(lines.Text())
	}
	go func() { // so that the receiver does not wait for a full pipe
		for lines.Scan() {
		}
	}()
}

// kill ends the receiver with SIGKILL.
func (r *receiver) kill() {
	_ = r.process.Process.Kill()
	_ = r.process.Wait()
}

// restart stops the receiver as a process manager does, and starts it again.
func (r *receiver) restart(t *testing.T) {
	t.Helper()
	_ = r.process.Process.Signal(syscall.SIGTERM)
	_ = r.process.Wait()
	r.start(t)
}

// stored is what the receiver knows about a booking.
type stored struct {
	ID      string `json:"id"`
	Version int64  `json:"version"`
	Status  string `json:"status"`
	Changes int    `json:"changes"`
}

// booking returns what the receiver knows about a booking.
func (r *receiver) booking(t *testing.T, id string) stored {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), r.command[0], append(slices.Clone(r.command[1:]), "--database", r.database, "--list")...)
	cmd.Env = with(r.env...)
	var failure strings.Builder
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &failure)
	}
	for line := range bytes.Lines(out) {
		var b stored
		if err := json.Unmarshal(line, &b); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if b.ID == id {
			return b
		}
	}
	return stored{}
}

// awaitBooking waits until the receiver knows a booking as wanted.
func (r *receiver) awaitBooking(t *testing.T, want stored) {
	t.Helper()
	var got stored
	for end := time.Now().Add(20 * time.Second); got != want; time.Sleep(20 * time.Millisecond) {
		if got = r.booking(t, want.ID); got.Changes > want.Changes || time.Now().After(end) {
			t.Fatalf("the receiver has %+v, want %+v", got, want)
		}
	}
}

// book creates a booking.
func book(t *testing.T) string {
	t.Helper()
	b, err := client.Bookings.Create(t.Context(), holdfast.BookingCreate{EventDate: holdfast.Ptr("2031-05-01")})
	if err != nil {
		t.Fatal(err)
	}
	return b.ID
}

// TestReceivers runs the attacks on each receiver.
func TestReceivers(t *testing.T) {
	for language, prepare := range languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			command, env := prepare(t)
			for name, attack := range map[string]func(*testing.T, *receiver, *relay){
				"duplicates in any order": duplicates,
				"forged deliveries":       forgeries,
				"kill":                    kills,
				"rotation":                rotation,
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					r := &receiver{command: command, env: env, database: filepath.Join(t.TempDir(), "receiver.db")}
					link := newRelay(t)
					r.secret = link.endpoint.Secret
					r.start(t)
					t.Cleanup(r.kill)
					attack(t, r, link)
				})
			}
		})
	}
}

// duplicates delivers the newest event of a booking first, then all events three times at the same time. It then lets the platform
// deliver them again.
func duplicates(t *testing.T, r *receiver, link *relay) {
	id, start := book(t), time.Now().Add(-time.Minute)
	for guests := range 4 {
		if _, err := client.Bookings.Update(t.Context(), id, holdfast.BookingUpdate{GuestCount: holdfast.Set(guests + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Bookings.Cancel(t.Context(), id, holdfast.BookingCancel{}); err != nil {
		t.Fatal(err)
	}
	all := link.await(t, id, 6)
	slices.SortFunc(all, func(a, b delivery) int { return int(b.event.Version - a.event.Version) })
	newest := stored{ID: id, Version: all[0].event.Version, Status: "cancelled", Changes: 1}
	if status := all[0].send(r.address); status != http.StatusNoContent {
		t.Fatal(status)
	}
	r.awaitBooking(t, newest)

	var sending sync.WaitGroup
	for range 3 {
		for _, d := range all {
			sending.Go(func() {
				if status := d.send(r.address); status != http.StatusNoContent {
					t.Errorf("%s: %d", d.event.Type, status)
				}
			})
		}
	}
	sending.Wait()
	newest.Changes = len(all)
	r.awaitBooking(t, newest)

	link.forward(r.address)
	if _, err := client.Events.Replay(t.Context(), holdfast.EventReplay{EndpointID: link.endpoint.ID, From: start}); err != nil {
		t.Fatal(err)
	}
	link.await(t, id, 12)
	r.awaitBooking(t, newest)
}

// forgeries delivers what the platform has not signed for this endpoint, not now, or not at all.
func forgeries(t *testing.T, r *receiver, link *relay) {
	other := newRelay(t) // its deliveries have a valid signature, of another endpoint
	id := book(t)
	d, foreign := link.await(t, id, 1)[0], other.await(t, id, 1)[0]
	change := func(edit func(d *delivery)) delivery {
		changed := delivery{header: d.header.Clone(), body: bytes.Clone(d.body)}
		edit(&changed)
		return changed
	}
	const header = "Service-Signature"
	for name, forged := range map[string]delivery{
		"another endpoint": foreign,
		"changed body":     change(func(d *delivery) { d.body = bytes.Replace(d.body, []byte(`"pending"`), []byte(`"confirmed"`), 1) }),
		"no signature":     change(func(d *delivery) { d.header.Del(header) }),
		"no secret": change(func(d *delivery) {
			d.header.Set(header, regexp.MustCompile(`v1=\w+`).ReplaceAllString(d.header.Get(header), "v1="))
		}),
		"another time": change(func(d *delivery) { d.header.Set(header, strings.Replace(d.header.Get(header), "t=1", "t=2", 1)) }),
	} {
		if status := forged.send(r.address); status != http.StatusBadRequest {
			t.Errorf("%s: %d", name, status)
		}
	}
	large := delivery{header: d.header, body: make([]byte, 4<<20+1)}
	if status := large.send(r.address); status != http.StatusRequestEntityTooLarge && status != 0 { // the response can be lost: the body is not read
		t.Errorf("a body over 4 MiB: %d", status)
	}
	res, err := sender.Get(r.address) //nolint:noctx // it has a timeout
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %s", res.Status)
	}
	if got := r.booking(t, id); got != (stored{}) {
		t.Errorf("it stores %+v", got)
	}
	if status := d.send(r.address); status != http.StatusNoContent {
		t.Errorf("the delivery itself: %d", status)
	}
	r.awaitBooking(t, stored{id, 1, "pending", 1})
}

// kills kills the receiver as soon as it writes to its database, so that it often has stored the event but not responded, and every
// other time right after its response, so that it often has not processed the event.
func kills(t *testing.T, r *receiver, link *relay) {
	const required, most = 3, 60 // crashes between storing and responding; rounds
	lost := 0
	for round := 0; lost < required; round++ {
		if round == most {
			t.Fatalf("%d crashes between storing and responding in %d rounds", lost, most)
		}
		id := book(t)
		d := link.await(t, id, 1)[0]
		status := r.crash(d, round%2 == 1)
		r.start(t)
		if status == http.StatusNoContent {
			r.awaitBooking(t, stored{id, 1, "pending", 1})
			continue
		}
		known := r.booking(t, id) != stored{} || r.waiting(t, id)
		if status := d.send(r.address); status != http.StatusNoContent { // as the platform does without a response
			t.Fatalf("again: %d", status)
		}
		r.awaitBooking(t, stored{id, 1, "pending", 1})
		if known {
			lost++
		}
	}
}

// waiting waits for a moment until the receiver knows a booking that it might have stored before a crash.
func (r *receiver) waiting(t *testing.T, id string) bool {
	t.Helper()
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if r.booking(t, id) != (stored{}) {
			return true
		}
	}
	return false
}

// crash sends a delivery and kills the receiver when it writes to its database, or right after the response. It returns the status of
// the response, or 0 if there is none.
func (r *receiver) crash(d delivery, afterResponse bool) int {
	before := r.written()
	status := make(chan int, 1)
	go func() { status <- d.send(r.address) }()
	if afterResponse {
		got := <-status
		r.kill()
		return got
	}
	for r.written() == before {
		select {
		case got := <-status:
			r.kill()
			return got
		default:
		}
	}
	r.kill()
	return <-status
}

// written describes the state of the file to which the database writes first.
func (r *receiver) written() [2]int64 {
	info, err := os.Stat(r.database + "-wal")
	if err != nil {
		return [2]int64{}
	}
	return [2]int64{info.Size(), info.ModTime().UnixNano()}
}

// rotation replaces the secret while events arrive: first with the previous secret valid for an hour, then at once.
func rotation(t *testing.T, r *receiver, link *relay) {
	link.forward(r.address)
	rotate := func(previous int) string {
		t.Helper()
		e, err := client.WebhookEndpoints.RotateSecret(t.Context(), link.endpoint.ID, holdfast.WebhookSecretRotate{PreviousSecretExpiresIn: &previous})
		if err != nil {
			t.Fatal(err)
		}
		return e.Secret
	}
	receives := func(want int) delivery {
		t.Helper()
		d := link.await(t, book(t), 1)[0]
		if d.status != want {
			t.Fatalf("%d, want %d", d.status, want)
		}
		return d
	}
	receives(http.StatusNoContent)
	next := rotate(3600)
	receives(http.StatusNoContent) // with the previous secret
	r.secret = next
	r.restart(t)
	link.forward(r.address)
	receives(http.StatusNoContent)
	next = rotate(0)
	d := receives(http.StatusBadRequest)
	r.secret = next
	r.restart(t)
	link.forward(r.address)
	id := d.header.Get("Service-Delivery-Id")
	await(t, "the platform stores the refused attempt, before which it does not allow another", func() bool {
		for sent, err := range client.WebhookEndpoints.ListDeliveries(t.Context(), link.endpoint.ID, holdfast.WebhookEndpointsListDeliveriesParams{}) {
			if err != nil {
				t.Fatal(err)
			}
			if sent.ID == id {
				return len(sent.Attempts) > 0
			}
		}
		return false
	})
	if _, err := client.WebhookEndpoints.RetryDelivery(t.Context(), link.endpoint.ID, id); err != nil {
		t.Fatal(err)
	}
	r.awaitBooking(t, stored{d.event.Data.Object.ID, 1, "pending", 1})
}
