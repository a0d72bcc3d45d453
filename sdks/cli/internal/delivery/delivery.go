// Package delivery sends events to a receiver in the form of deliveries, signed like those of the platform (docs/guides/webhooks.md).
package delivery

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/sdks/cli/internal/follow"
)

// prefix is the prefix of secrets.
const prefix = "whsec_"

// responseTimeout is the time limit for a receiver's response, the same as for a delivery.
const responseTimeout = 10 * time.Second

var errLate = fmt.Errorf("no response within %v", responseTimeout)

// Receiver is the developer's own receiver. It can have any address.
type Receiver struct {
	URL, Secret string

	http *http.Client
}

// New returns the receiver at an address, with or without its scheme. Without a secret, it gets a new one.
func New(target, secret string) (*Receiver, error) {
	if secret == "" {
		var raw [32]byte
		_, _ = rand.Read(raw[:]) // never fails
		secret = prefix + base64.StdEncoding.EncodeToString(raw[:])
	}
	if _, err := key(secret); err != nil {
		return nil, err
	}
	if !strings.Contains(target, "://") {
		target = "http://" + target
	}
	if u, err := url.Parse(target); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("--forward-to must be an http or https URL, not %q", target)
	}
	return &Receiver{target, secret, &http.Client{
		Timeout:       responseTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// key returns the bytes that a secret encodes.
func key(secret string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(secret, prefix)
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(raw) == 0 {
		return nil, errors.New("--secret must be whsec_ followed by base64, as created by the platform")
	}
	return raw, nil
}

// Deliver makes one attempt, with the number 1.
func (r *Receiver) Deliver(ctx context.Context, e follow.Event) (status int, took time.Duration, err error) {
	began := time.Now()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(e.Body))
	if err != nil {
		return 0, 0, err
	}
	if err := r.sign(request.Header, e, began); err != nil {
		return 0, 0, err
	}
	response, err := r.http.Do(request)
	took = time.Since(began)
	if err != nil {
		return 0, took, withoutURL(err)
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)) // so that the connection can be reused
	return response.StatusCode, took, nil
}

// sign sets the headers of a delivery.
func (r *Receiver) sign(h http.Header, e follow.Event, at time.Time) error {
	raw, err := key(r.Secret)
	if err != nil {
		return err
	}
	unix := strconv.FormatInt(at.Unix(), 10)
	for name, value := range map[string]string{
		"User-Agent":               "Holdfast-Webhooks/1 (listen)",
		"Content-Type":             "application/json",
		"Service-Signature":        "t=" + unix + ",v1=" + hex.EncodeToString(sum([]byte(r.Secret), unix+".", e.Body)),
		"Service-Event-Id":         e.ID,
		"Service-Event-Type":       e.Type,
		"Service-Delivery-Id":      "whd_" + strings.ToLower(rand.Text()),
		"Service-Delivery-Attempt": "1",
		"Webhook-Id":               e.ID,
		"Webhook-Timestamp":        unix,
		"Webhook-Signature":        "v1," + base64.StdEncoding.EncodeToString(sum(raw, e.ID+"."+unix+".", e.Body)),
	} {
		h.Set(name, value)
	}
	return nil
}

// sum returns the HMAC-SHA256 of a text and a body.
func sum(key []byte, text string, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	h.Write(body)
	return h.Sum(nil)
}

// withoutURL returns the error without its method and URL.
func withoutURL(err error) error {
	var u *url.Error
	if !errors.As(err, &u) {
		return err
	}
	if u.Timeout() {
		return errLate
	}
	return u.Err
}
