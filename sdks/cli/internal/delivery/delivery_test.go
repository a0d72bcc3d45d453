package delivery_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	holdfast "holdfast.dev/sdks/go"

	"holdfast.dev/sdks/cli/internal/delivery"
	"holdfast.dev/sdks/cli/internal/follow"
)

var event = follow.Event{ID: "evt_1", Type: "booking.created", Body: []byte(`{"id":"evt_1","type":"booking.created","note":"<&> \u00e9 é 🛶"}`)}

// TestDeliver checks that the SDK accepts the signature, and the signature of Standard Webhooks.
func TestDeliver(t *testing.T) {
	t.Parallel()
	var header http.Header
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header
		body, _ = io.ReadAll(r.Body)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect) // not followed
	}))
	defer server.Close()
	r, err := delivery.New(strings.TrimPrefix(server.URL, "http://"), "")
	if err != nil {
		t.Fatal(err)
	}
	if status, _, err := r.Deliver(t.Context(), event); err != nil || status != http.StatusTemporaryRedirect {
		t.Fatalf("%d %v", status, err)
	}
	if e, err := holdfast.Unwrap(body, header, r.Secret); err != nil || e.EventID() != "evt_1" || string(body) != string(event.Body) {
		t.Errorf("%v %v", e, err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(r.Secret, "whsec_"))
	if err != nil || len(key) != 32 {
		t.Fatalf("%s %v", r.Secret, err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("evt_1." + header.Get("Webhook-Timestamp") + "." + string(body)))
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); header.Get("Webhook-Signature") != want {
		t.Errorf("%s, want %s", header.Get("Webhook-Signature"), want)
	}
	for name, want := range map[string]string{"Service-Event-Id": "evt_1", "Service-Event-Type": "booking.created", "Service-Delivery-Attempt": "1", "Webhook-Id": "evt_1", "Content-Type": "application/json"} {
		if header.Get(name) != want {
			t.Errorf("%s is %s", name, header.Get(name))
		}
	}
	if id := header.Get("Service-Delivery-Id"); len(id) != len("whd_")+26 {
		t.Errorf("the delivery is %s", id)
	}
}

// TestRefusedReceivers checks addresses and secrets that cannot be used, and errors of the connection.
func TestRefusedReceivers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ target, secret, want string }{
		{"http://127.0.0.1:1", "whsec_", "--secret must be whsec_"},
		{"http://127.0.0.1:1", "whsec_#", "--secret must be"},
		{"http://127.0.0.1:1", "dGhpcw==", "--secret must be"},
		{"ftp://127.0.0.1:1", "", "--forward-to must be"},
		{"http://", "", "--forward-to must be"},
	} {
		if _, err := delivery.New(tc.target, tc.secret); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v", tc, err)
		}
	}
	r, err := delivery.New("http://127.0.0.1:1", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Deliver(t.Context(), event); err == nil || strings.Contains(err.Error(), "http://") {
		t.Errorf("%v", err)
	}
}
