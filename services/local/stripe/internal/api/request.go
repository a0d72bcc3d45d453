package api

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/store"
)

func readBody(w http.ResponseWriter, r *http.Request) (string, *domain.Error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		e := domain.BadParam("", "", "The request's body is larger than 1 MiB.")
		e.Status = http.StatusRequestEntityTooLarge
		return "", e
	case err != nil:
		return "", domain.BadParam("", "", "The request's body could not be read.")
	case len(body) > 0 && !strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded"):
		return "", domain.BadParam("", "", "Invalid request: the body must be sent as application/x-www-form-urlencoded.")
	}
	return string(body), nil
}

// Keyring maps each API key to its account and mode.
type Keyring struct {
	mu   sync.RWMutex
	keys map[string]domain.Key
}

// Add adds the keys of an account.
func (k *Keyring) Add(a domain.Account) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys == nil {
		k.keys = map[string]domain.Key{}
	}
	for text, key := range a.ByKey() {
		if text != "" {
			k.keys[text] = key
		}
	}
}

// Has reports whether a key exists.
func (k *Keyring) Has(text string) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	_, ok := k.keys[text]
	return ok
}

// authenticate finds the key: as a bearer token, as the user of basic authentication, or in the form, where Stripe.js sends it.
func (k *Keyring) authenticate(h http.Header, r *http.Request, body string) (domain.Key, *domain.Error) {
	text := bearer(r)
	if text == "" && strings.Contains("&"+body+"&"+r.URL.RawQuery, "&key=pk_") {
		values, _ := url.ParseQuery(body + "&" + r.URL.RawQuery) // invalid forms are rejected later
		text = values.Get("key")
	}
	k.mu.RLock()
	key, ok := k.keys[text]
	k.mu.RUnlock()
	if ok {
		return key, nil
	}
	h.Set("WWW-Authenticate", `Basic realm="Stripe"`)
	message := "Invalid API Key provided: " + mask(text)
	if text == "" {
		message = "You did not provide an API key. You need to provide your API key in the Authorization header, using Bearer auth (e.g. 'Authorization: Bearer YOUR_SECRET_KEY'). See https://stripe.com/docs/api#authentication for details, or we can help at https://support.stripe.com/."
	}
	e := domain.BadParam("", "", message)
	e.Status = http.StatusUnauthorized
	return key, e
}

func bearer(r *http.Request) string {
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch strings.ToLower(scheme) {
	case "bearer":
		return strings.TrimSpace(text)
	case "basic":
		pair, _ := base64.StdEncoding.DecodeString(strings.TrimSpace(text)) // invalid base64 is not a key
		user, _, _ := strings.Cut(string(pair), ":")
		return user
	default:
		return ""
	}
}

// mask hides a key except its beginning and its end.
func mask(key string) string {
	if len(key) < 16 {
		return strings.Repeat("*", len(key))
	}
	return key[:8] + strings.Repeat("*", len(key)-12) + key[len(key)-4:]
}

// inUse holds the idempotency keys of running requests.
type inUse struct {
	mu    sync.Mutex
	names map[string]bool
}

func (u *inUse) take(name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.names[name] {
		return false
	}
	if u.names == nil {
		u.names = map[string]bool{}
	}
	u.names[name] = true
	return true
}

func (u *inUse) give(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.names, name)
}

// replay returns the stored response, or an error if the parameters differ.
func (q *request) replay(stored *store.Response, path string) response {
	refused := &domain.Error{Type: domain.TypeIdempotency, Status: http.StatusBadRequest, DocURL: "https://stripe.com/docs/idempotency"}
	switch {
	case stored.Path != path:
		refused.Message = "Keys for idempotent requests can only be used for the same endpoint they were first used for ('" + path + "' vs '" + stored.Path + "'). Try using a key other than '" + q.token + "' if you meant to execute a different request."
		return q.refusal(refused)
	case stored.Params != q.form.Digest():
		refused.Message = "Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than '" + q.token + "' if you meant to execute a different request."
		return q.refusal(refused)
	}
	return response{Response: *stored, replayed: stored.Request}
}

func (q *request) write(w http.ResponseWriter, a response) {
	h := w.Header()
	if a.replayed != "" {
		h.Set("Idempotent-Replayed", "true")
		h.Set("Original-Request", a.replayed)
	}
	if a.Status == http.StatusConflict {
		h.Set("Stripe-Should-Retry", "true")
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // the client might have disconnected
}

// travel simulates the latency of a request on its way: it arrives even if the client disconnects.
func (s *Server) travel(d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.Stopping:
	}
}

// pause waits, and returns false if the client disconnected.
func pause(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

// hangUp closes the connection in the middle of the response's first line. Without these bytes Go's HTTP client would
// automatically retry a request with an idempotency key, and its caller would see no fault.
func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_, _ = conn.Write([]byte("HTTP/1.1 ")) // the client might have disconnected
		_ = conn.Close()                       // the connection must break
	}
}
