package domain

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// SecretPrefix is the prefix of every secret.
const SecretPrefix = "whsec_"

// Tolerance is the maximum difference between a signature's time and the receiver's time, in both directions.
const Tolerance = 5 * time.Minute

// The errors of Verify.
var (
	ErrSignatureForm = errors.New("the signature header is malformed: want t=<unix time>,v1=<hex>")
	ErrSignatureTime = fmt.Errorf("the signature's time is more than %d seconds before or after the present time", int(Tolerance.Seconds()))
	ErrSignature     = errors.New("no signature in the header matches these bytes and this secret")
)

// NewSecret returns a new secret in the format of Standard Webhooks: whsec_ and 32 random bytes in base64.
func NewSecret() string {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails
	return SecretPrefix + base64.StdEncoding.EncodeToString(raw[:])
}

// Sign returns the value of Service-Signature: t=<unix seconds> and one v1=<hex> for each secret, in their order. A v1 is the
// HMAC-SHA256 of "<t>.<body>" under the whole secret, including its prefix.
func Sign(body []byte, at time.Time, secrets ...string) string {
	t := strconv.FormatInt(at.Unix(), 10)
	var b strings.Builder
	b.WriteString("t=" + t)
	for _, s := range secrets {
		b.WriteString(",v1=" + hex.EncodeToString(sum([]byte(s), t, ".", body)))
	}
	return b.String()
}

// SignStandard returns the value of webhook-signature of Standard Webhooks 1.0: one v1,<base64> for each secret. It signs
// "<id>.<t>.<body>" under the bytes that the secret encodes.
func SignStandard(id string, body []byte, at time.Time, secrets ...string) string {
	t := strconv.FormatInt(at.Unix(), 10)
	list := make([]string, 0, len(secrets))
	for _, s := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s, SecretPrefix))
		if err != nil {
			continue // not a secret of NewSecret
		}
		list = append(list, "v1,"+base64.StdEncoding.EncodeToString(sum(key, id, "."+t+".", body)))
	}
	return strings.Join(list, " ")
}

// UserAgent identifies the sender to receivers.
const UserAgent = "Holdfast-Webhooks/1"

// Headers returns the headers of the n-th attempt of a delivery, signed with each secret.
func Headers(event, eventType, delivery string, n int, body []byte, at time.Time, secrets ...string) map[string]string {
	return map[string]string{
		"Content-Type":             "application/json",
		"Service-Signature":        Sign(body, at, secrets...),
		"Service-Event-Id":         event,
		"Service-Event-Type":       eventType,
		"Service-Delivery-Id":      delivery,
		"Service-Delivery-Attempt": strconv.Itoa(n),
		"webhook-id":               event,
		"webhook-timestamp":        strconv.FormatInt(at.Unix(), 10),
		"webhook-signature":        SignStandard(event, body, at, secrets...),
	}
}

// unkept is shown instead of a signature. A new signature is created for each attempt and is not stored.
const unkept = "…"

// SentHeaders returns the headers of the n-th attempt of a delivery in the form that can be shown later, without signatures.
func SentHeaders(event, eventType, delivery string, n int, at time.Time) map[string]string {
	out := Headers(event, eventType, delivery, n, nil, at)
	out["User-Agent"] = UserAgent
	out["Service-Signature"] += ",v1=" + unkept
	out["webhook-signature"] = "v1," + unkept
	return out
}

// sum returns the HMAC-SHA256 of the parts under a key.
func sum(key []byte, first, second string, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(first))
	h.Write([]byte(second))
	h.Write(body)
	return h.Sum(nil)
}

// Verify checks the value of Service-Signature like a receiver: its time must be within Tolerance of now, and one v1 must be the
// signature of body. It ignores parts with other names.
func Verify(header string, body []byte, secret string, now time.Time) error {
	var t string
	var given [][]byte
	for part := range strings.SplitSeq(header, ",") {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return ErrSignatureForm
		}
		switch name {
		case "t":
			t = value
		case "v1":
			if mac, err := hex.DecodeString(value); err == nil {
				given = append(given, mac)
			}
		}
	}
	unix, err := strconv.ParseInt(t, 10, 64)
	if err != nil || len(given) == 0 {
		return ErrSignatureForm
	}
	if away := now.Unix() - unix; away > int64(Tolerance.Seconds()) || away < -int64(Tolerance.Seconds()) {
		return ErrSignatureTime
	}
	want := sum([]byte(secret), t, ".", body)
	for _, mac := range given {
		if hmac.Equal(mac, want) {
			return nil
		}
	}
	return ErrSignature
}
