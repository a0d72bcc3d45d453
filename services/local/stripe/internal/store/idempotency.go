package store

import (
	"encoding/json"
	"time"

	"holdfast.dev/services/local/stripe/internal/domain"
)

// Response is the stored response of an idempotency key.
type Response struct {
	Path    string          `json:"path"`
	Params  string          `json:"params"` // digest
	Request string          `json:"request"`
	Status  int             `json:"status"`
	Body    json.RawMessage `json:"body"`
	At      int64           `json:"at"` // Unix seconds
}

// LoadResponse returns the response of a key; nil if there is none or it is older than the lifetime.
func (t *Tx) LoadResponse(s domain.Scope, name string, lifetime time.Duration) (*Response, error) {
	text := t.bucket(idempotent).Get(key(s, name))
	if text == nil {
		return nil, nil //nolint:nilnil // none is no error
	}
	a := new(Response)
	if err := json.Unmarshal(text, a); err != nil {
		return nil, err
	}
	if t.now.Sub(time.Unix(a.At, 0)) >= lifetime {
		return nil, nil //nolint:nilnil // forgotten
	}
	return a, nil
}

// SaveResponse stores the response of a key.
func (t *Tx) SaveResponse(s domain.Scope, name string, a Response) error {
	a.At = t.now.Unix()
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return t.bucket(idempotent).Put(key(s, name), text)
}
