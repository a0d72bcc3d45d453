package holdfast

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// signatureHeader is the header of a delivery with its signatures.
const signatureHeader = "Service-Signature"

// ErrSignature means that a delivery does not come from the platform, was changed, or is too old. Respond with a 4xx status.
var ErrSignature = errors.New("holdfast: the signature of the webhook is not valid")

// unwrapping are the settings of Unwrap.
type unwrapping struct {
	tolerance time.Duration
	now       func() time.Time
}

// UnwrapOption changes how [Unwrap] verifies a delivery.
type UnwrapOption func(*unwrapping)

// WithTolerance sets how much the time of the signature can differ from your clock. The default is 5 minutes.
func WithTolerance(d time.Duration) UnwrapOption {
	return func(u *unwrapping) { u.tolerance = d }
}

// WithClock replaces the clock, for tests with recorded deliveries.
func WithClock(now func() time.Time) UnwrapOption {
	return func(u *unwrapping) { u.now = now }
}

// Unwrap verifies a delivery to your webhook, and returns its event. body is the raw body, exactly as you received it. secret is that of
// the endpoint, whsec_…. While you rotate the secret, deliveries have one signature for each secret, and one of them must match.
// An error that wraps [ErrSignature] means that you must not trust the delivery.
func Unwrap(body []byte, header http.Header, secret string, options ...UnwrapOption) (Event, error) {
	u := unwrapping{tolerance: 5 * time.Minute, now: time.Now}
	for _, option := range options {
		option(&u)
	}
	if secret == "" {
		return nil, errors.New("holdfast: the secret of the webhook endpoint is empty")
	}
	if err := u.verify(body, header.Get(signatureHeader), secret); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	event, err := ParseEvent(body)
	if err != nil {
		return nil, fmt.Errorf("holdfast: the delivery has no event: %w", err)
	}
	return event, nil
}

// verify checks the time and the signatures.
func (u unwrapping) verify(body []byte, header, secret string) error {
	if header == "" {
		return errors.New("the header " + signatureHeader + " is missing")
	}
	signed, signatures := "", []string(nil)
	for part := range strings.SplitSeq(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "t":
			signed = value
		case "v1":
			signatures = append(signatures, value)
		}
	}
	unix, err := strconv.ParseInt(signed, 10, 64)
	if err != nil {
		return errors.New("the header has no time")
	}
	if away := u.now().Sub(time.Unix(unix, 0)).Abs(); away > u.tolerance {
		return fmt.Errorf("the time differs from the clock by %v: check your clock", away.Truncate(time.Second))
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(signed + "."))
	mac.Write(body)
	want := mac.Sum(nil)
	for _, signature := range signatures {
		if got, err := hex.DecodeString(signature); err == nil && hmac.Equal(got, want) {
			return nil
		}
	}
	return errors.New("no signature matches: check the secret, and pass the body as you received it")
}
