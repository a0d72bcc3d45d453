package web

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"time"
)

// Errors of ReadForm.
var (
	ErrCrossSite     = errors.New("web: another site has sent the form")
	ErrFormTooLarge  = errors.New("web: the form is too large")
	ErrFormMalformed = errors.New("web: the form is malformed")
)

// ReadForm returns the fields of a form, which must not exceed limit bytes. The value of a file is its content, or "" if none was
// selected. ReadForm rejects a form that another site sent.
// FormKey.Valid checks whether the form was shown to this browser.
func (s *Site) ReadForm(w http.ResponseWriter, r *http.Request, limit int64) (url.Values, error) {
	if err := s.crossing.Check(r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCrossSite, err)
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormTooLarge, err)
	}
	form, err := parseForm(r.Header.Get("Content-Type"), raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormMalformed, err)
	}
	return form, nil
}

// parseForm reads a form in one of the two encodings of browsers. Only forms with files are multipart.
func parseForm(contentType string, raw []byte) (url.Values, error) {
	encoding, params, _ := mime.ParseMediaType(contentType)
	if encoding != "multipart/form-data" {
		return url.ParseQuery(string(raw))
	}
	form, parts := url.Values{}, multipart.NewReader(bytes.NewReader(raw), params["boundary"])
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return form, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		form.Add(part.FormName(), string(content))
	}
}

// FormKey is the key that the tokens of forms are bound to. A form without a token of the browser's own key was not shown to this
// browser.
type FormKey struct {
	Secret string // from the browser's cookies, unknown to other sites; if empty, no token is valid
	About  string // the subject of the form: a token for one subject is not valid for another
}

// expiryBytes is the length of a token's expiry: Unix seconds, 0 for none.
const expiryBytes = 8

// Token returns a token that is valid until a time. If the time is zero, it is valid as long as the browser has the secret.
func (k FormKey) Token(until time.Time) string {
	var expiry uint64
	if !until.IsZero() {
		expiry = uint64(until.Unix())
	}
	return base64.RawURLEncoding.EncodeToString(k.sign(binary.BigEndian.AppendUint64(nil, expiry)))
}

// Valid reports whether a token was created with the key and has not expired.
func (k FormKey) Valid(token string, now time.Time) bool {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) < expiryBytes || k.Secret == "" {
		return false
	}
	expiry := raw[:expiryBytes:expiryBytes]
	if !hmac.Equal(raw, k.sign(expiry)) {
		return false
	}
	until := binary.BigEndian.Uint64(expiry)
	return until == 0 || now.Unix() < int64(until)
}

// sign returns the expiry followed by its message authentication code.
func (k FormKey) sign(expiry []byte) []byte {
	m := hmac.New(sha256.New, []byte(k.Secret))
	m.Write(expiry)
	m.Write([]byte(k.About))
	return m.Sum(expiry)
}
