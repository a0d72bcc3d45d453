package tests

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	holdfast "holdfast.dev/sdks/go"
)

// delivery is a delivery that the platform has sent.
type delivery struct {
	header http.Header
	body   []byte
	event  struct {
		ID      string `json:"id"`
		Type    string `json:"type"`
		Version int64  `json:"resource_version"`
		Data    struct {
			Object struct {
				ID string `json:"id"`
			} `json:"object"`
		} `json:"data"`
	}
	status int // of the response
}

// send sends the delivery to a receiver, and returns the status of the response, or 0 if there is none.
func (d delivery) send(address string) int {
	req, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(d.body)) //nolint:noctx // the client has a timeout
	if err != nil {
		return 0
	}
	req.Header = d.header.Clone()
	res, err := sender.Do(req)
	if err != nil {
		return 0
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// sender does not repeat a request after the connection has failed.
var sender = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// relay is the webhook endpoint that the platform knows. It keeps the deliveries, and forwards them to a receiver if there is one.
type relay struct {
	endpoint *holdfast.WebhookEndpointWithSecret

	mu   sync.Mutex
	to   string // address of the receiver, or "": respond 204
	seen []delivery
}

// newRelay registers a relay for the events of bookings.
func newRelay(t *testing.T) *relay {
	t.Helper()
	r := &relay{}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	var err error
	r.endpoint, err = client.WebhookEndpoints.Create(t.Context(), holdfast.WebhookEndpointCreate{
		URL: server.URL, EventTypes: []holdfast.EventTypeWrite{"booking.created", "booking.updated", "booking.cancelled"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // before the server is closed
		if err := client.WebhookEndpoints.Delete(context.Background(), r.endpoint.ID); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	d, err := read(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	to := r.to
	r.mu.Unlock()
	if d.status = http.StatusNoContent; to != "" {
		d.status = d.send(to)
	}
	if d.status == 0 {
		d.status = http.StatusBadGateway
	}
	r.mu.Lock()
	r.seen = append(r.seen, d)
	r.mu.Unlock()
	w.WriteHeader(d.status)
}

func read(req *http.Request) (d delivery, err error) {
	d.header = req.Header
	if d.body, err = io.ReadAll(req.Body); err == nil {
		err = json.Unmarshal(d.body, &d.event)
	}
	return d, err
}

// forward forwards the next deliveries to a receiver.
func (r *relay) forward(to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = to
}

// of returns the deliveries of a booking in the order in which they arrived.
func (r *relay) of(booking string) []delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.seen), func(d delivery) bool { return d.event.Data.Object.ID != booking })
}

// await waits for n deliveries of a booking.
func (r *relay) await(t *testing.T, booking string, n int) []delivery {
	t.Helper()
	var all []delivery
	await(t, "the deliveries of "+booking, func() bool {
		all = r.of(booking)
		return len(all) >= n
	})
	return all
}
