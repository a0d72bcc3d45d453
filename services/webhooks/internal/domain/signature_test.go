package domain_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast.dev/services/webhooks/internal/domain"
)

const (
	own   = "whsec_b3duLXNlY3JldC1vZi0zMi1ieXRlcy1mb3ItdGVzdHM="
	older = "whsec_b2xkZXItc2VjcmV0LW9mLTMyLWJ5dGVzLWZvci10ZXM="
)

var noon = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

// bodies are bytes that an encoder or decoder could change.
var bodies = map[string][]byte{
	"plain":           []byte(`{"id":"evt_1"}`),
	"empty":           {},
	"nil":             nil,
	"signs of HTML":   []byte(`{"a":"<b>&amp;</b>"}`),
	"escaped signs":   []byte(`{"a":"\u003cb\u003e\u0026"}`),
	"emoji":           []byte(`{"a":"👩‍👩‍👧 ✓"}`),
	"escaped emoji":   []byte(`{"a":"\ud83d\ude00"}`),
	"spaces":          []byte("  {\n\t\"a\": 1 }\r\n"),
	"no UTF-8":        {0xff, 0xfe, 0x00, 0x80},
	"a signed prefix": []byte("1.2.3"),
	"a megabyte":      bytes.Repeat([]byte("x"), 1<<20),
}

// mac computes the HMAC-SHA256 from its definition in RFC 2104.
func mac(key, message []byte) []byte {
	var pad [64]byte
	copy(pad[:], key)
	if len(key) > 64 {
		long := sha256.Sum256(key)
		pad = [64]byte{}
		copy(pad[:], long[:])
	}
	inner, outer := pad, pad
	for i := range pad {
		inner[i] ^= 0x36
		outer[i] ^= 0x5c
	}
	in := sha256.Sum256(append(inner[:], message...))
	out := sha256.Sum256(append(outer[:], in[:]...))
	return out[:]
}

func v1(secret string, unix int64, body []byte) string {
	return hex.EncodeToString(mac([]byte(secret), fmt.Appendf(nil, "%d.%s", unix, body)))
}

func TestSign(t *testing.T) {
	t.Parallel()
	for name, body := range bodies {
		unix := noon.Unix()
		one := fmt.Sprintf("t=%d,v1=%s", unix, v1(own, unix, body))
		for _, tc := range []struct {
			secrets []string
			want    string
		}{
			{nil, fmt.Sprintf("t=%d", unix)},
			{[]string{own}, one},
			{[]string{own, older}, one + ",v1=" + v1(older, unix, body)},
			{[]string{older, own}, fmt.Sprintf("t=%d,v1=%s,v1=%s", unix, v1(older, unix, body), v1(own, unix, body))},
		} {
			if got := domain.Sign(body, noon.Add(999*time.Millisecond), tc.secrets...); got != tc.want {
				t.Errorf("%s, %d secrets: %s, want %s", name, len(tc.secrets), got, tc.want)
			}
		}
		both := domain.Sign(body, noon, own, older)
		for _, secret := range []string{own, older} {
			if err := domain.Verify(both, body, secret, noon); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := domain.Verify(one, append(bytes.Clone(body), ' '), own, noon); !errors.Is(err, domain.ErrSignature) {
			t.Errorf("%s and a space: %v", name, err)
		}
	}
}

// The vector is OpenSSL's: printf '1803945600.{"a":"<é>"}' | openssl dgst -sha256 -hmac whsec_test.
func TestSignVector(t *testing.T) {
	t.Parallel()
	const want = "t=1803945600,v1=162dd460b7a2e456d2919fda3a3c78bb9869fafd00741066b2346b1eba14c0bb"
	if got := domain.Sign([]byte(`{"a":"<é>"}`), time.Unix(1803945600, 0), "whsec_test"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestVerifyClock(t *testing.T) {
	t.Parallel()
	header := domain.Sign([]byte("{}"), noon, own)
	for away, want := range map[time.Duration]error{
		0:                           nil,
		299 * time.Second:           nil,
		300 * time.Second:           nil,
		300*time.Second + 999999999: nil, // of the receiver's clock, whole seconds count
		301 * time.Second:           domain.ErrSignatureTime,
		24 * 365 * time.Hour:        domain.ErrSignatureTime,
		-300 * time.Second:          nil,
		-301 * time.Second:          domain.ErrSignatureTime,
		-24 * 365 * time.Hour:       domain.ErrSignatureTime,
	} {
		if err := domain.Verify(header, []byte("{}"), own, noon.Add(away)); !errors.Is(err, want) {
			t.Errorf("%v away: %v, want %v", away, err, want)
		}
	}
}

func TestVerifyHeaders(t *testing.T) {
	t.Parallel()
	body, stamp := []byte(`{"id":"evt_1"}`), strconv.FormatInt(noon.Unix(), 10)
	good := v1(own, noon.Unix(), body)
	at := "t=" + stamp
	const form, wrong, late = "form", "wrong", "late"
	errs := map[string]error{"": nil, form: domain.ErrSignatureForm, wrong: domain.ErrSignature, late: domain.ErrSignatureTime}
	for _, tc := range []struct{ name, header, want string }{
		{"as sent", at + ",v1=" + good, ""},
		{"the time last", "v1=" + good + "," + at, ""},
		{"upper-case hex", at + ",v1=" + strings.ToUpper(good), ""},
		{"the second of two", at + ",v1=" + strings.Repeat("00", 32) + ",v1=" + good, ""},
		{"the first of two", at + ",v1=" + good + ",v1=" + strings.Repeat("00", 32), ""},
		{"next to a broken one", at + ",v1=zz,v1=" + good, ""},
		{"next to an odd one", at + ",v1=abc,v1=" + good, ""},
		{"an unknown scheme", at + ",v0=" + good + ",v1=" + good + ",v2=x", ""},
		{"an empty unknown", at + ",x=,v1=" + good, ""},
		{"an equals sign in an unknown", at + ",v2=YQ==,v1=" + good, ""},
		{"only unknown schemes", at + ",v0=" + good + ",v2=" + good, form},
		{"empty", "", form},
		{"a word", "hello", form},
		{"a comma", ",", form},
		{"an equals sign", "=", form},
		{"a comma more", at + ",v1=" + good + ",", form},
		{"a word more", at + ",v1=" + good + ",x", form},
		{"no time", "v1=" + good, form},
		{"an empty time", "t=,v1=" + good, form},
		{"a fraction", at + ".0,v1=" + good, form},
		{"hex time", "t=0x6b8,v1=" + good, form},
		{"a space before the number", "t= " + stamp + ",v1=" + good, form},
		{"a number beyond", "t=9223372036854775808,v1=" + good, form},
		{"no signature", at, form},
		{"no hex", at + ",v1=" + strings.Repeat("zz", 32), form},
		{"capital names", "T=" + stamp + ",V1=" + good, form},
		{"semicolons", at + ";v1=" + good, form},
		{"a space after the comma", at + ", v1=" + good, form},
		{"an empty signature", at + ",v1=", wrong},
		{"half of it", at + ",v1=" + good[:32], wrong},
		{"more than it", at + ",v1=" + good + "00", wrong},
		{"zeros", at + ",v1=" + strings.Repeat("00", 32), wrong},
		{"a plus at the time", "t=+" + stamp + ",v1=" + good, wrong},
		{"a zero before the time", "t=0" + stamp + ",v1=" + good, wrong},
		{"a minus at the time", "t=-" + stamp + ",v1=" + good, late},
		{"the least number", "t=-9223372036854775808,v1=" + good, late},
		{"the greatest number", "t=9223372036854775807,v1=" + good, late},
		{"milliseconds", "t=" + stamp + "000,v1=" + good, late},
		{"two times, the last counts", "t=1," + at + ",v1=" + good, ""},
		{"two times, the last is old", at + ",t=1,v1=" + good, late},
	} {
		if err := domain.Verify(tc.header, body, own, noon); !errors.Is(err, errs[tc.want]) {
			t.Errorf("%s (%s): %v, want %q", tc.name, tc.header, err, tc.want)
		}
	}
}

// A signature does not verify after a change of the body, the secret, the time or the signature.
func TestChangedDeliveriesDoNotVerify(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "body")
		secret := domain.SecretPrefix + rapid.StringMatching(`[A-Za-z0-9+/]{1,80}`).Draw(t, "secret")
		at := noon.Add(time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "s")) * time.Second)
		header := domain.Sign(body, at, secret)
		if err := domain.Verify(header, body, secret, at); err != nil {
			t.Fatalf("unchanged: %v", err)
		}
		other := bytes.Clone(body)
		other[rapid.IntRange(0, len(body)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		longer := append(bytes.Clone(body), rapid.Byte().Draw(t, "more"))
		key := []byte(secret)
		key[rapid.IntRange(0, len(key)-1).Draw(t, "character")] ^= 1
		stamp, signature, _ := strings.Cut(header, ",")
		moved := at.Unix() + rapid.SampledFrom([]int64{-300, -1, 1, 300}).Draw(t, "moved")
		raw, _ := hex.DecodeString(strings.TrimPrefix(signature, "v1="))
		raw[rapid.IntRange(0, len(raw)-1).Draw(t, "of the mac")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "its bit")
		for name, err := range map[string]error{
			"a bit of the body":      domain.Verify(header, other, secret, at),
			"a longer body":          domain.Verify(header, longer, secret, at),
			"a shorter body":         domain.Verify(header, body[:len(body)-1], secret, at),
			"another secret":         domain.Verify(header, body, string(key), at),
			"no prefix":              domain.Verify(header, body, strings.TrimPrefix(secret, domain.SecretPrefix), at),
			"another time":           domain.Verify(fmt.Sprintf("t=%d,%s", moved, signature), body, secret, at),
			"a bit of the signature": domain.Verify(stamp+",v1="+hex.EncodeToString(raw), body, secret, at),
		} {
			if !errors.Is(err, domain.ErrSignature) {
				t.Fatalf("%s: %v", name, err)
			}
		}
	})
}

func TestSignStandard(t *testing.T) {
	t.Parallel()
	standard := func(secret string, body []byte) string {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil {
			t.Fatal(err)
		}
		return "v1," + base64.StdEncoding.EncodeToString(mac(key, fmt.Appendf(nil, "evt_1.%d.%s", noon.Unix(), body)))
	}
	for name, body := range bodies {
		for _, tc := range []struct {
			secrets []string
			want    string
		}{
			{nil, ""},
			{[]string{own}, standard(own, body)},
			{[]string{own, older}, standard(own, body) + " " + standard(older, body)},
			{[]string{"whsec_no base64", own}, standard(own, body)},
		} {
			if got := domain.SignStandard("evt_1", body, noon, tc.secrets...); got != tc.want {
				t.Errorf("%s, %d secrets: %s, want %s", name, len(tc.secrets), got, tc.want)
			}
		}
	}
}

// The example of the Standard Webhooks specification's own libraries.
func TestSignStandardVector(t *testing.T) {
	t.Parallel()
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	got := domain.SignStandard("msg_p5jXN8AQM9LWM0D4loKWxJek", []byte(`{"test": 2432232314}`), time.Unix(1614265330, 0), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestNewSecret(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		s := domain.NewSecret()
		coded, ok := strings.CutPrefix(s, "whsec_")
		key, err := base64.StdEncoding.Strict().DecodeString(coded)
		if !ok || err != nil || len(key) != 32 || seen[s] || bytes.Count(key, []byte{0}) > 16 {
			t.Fatalf("%s: %v, %d bytes, seen before %v", s, err, len(key), seen[s])
		}
		seen[s] = true
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	body := []byte(`{"id":"evt_1"}`)
	want := map[string]string{
		"Content-Type": "application/json", "Service-Event-Id": "evt_1", "Service-Event-Type": "booking.created", "Service-Delivery-Id": "whd_1", "Service-Delivery-Attempt": "3",
		"Service-Signature": fmt.Sprintf("t=%d,v1=%s,v1=%s", noon.Unix(), v1(own, noon.Unix(), body), v1(older, noon.Unix(), body)),
		"webhook-id":        "evt_1", "webhook-timestamp": strconv.FormatInt(noon.Unix(), 10), "webhook-signature": domain.SignStandard("evt_1", body, noon, own, older),
	}
	if got := domain.Headers("evt_1", "booking.created", "whd_1", 3, body, noon, own, older); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// The shown headers of an attempt equal the sent ones, except for the signatures.
func TestSentHeaders(t *testing.T) {
	t.Parallel()
	at := time.Unix(1793606460, 0)
	sent := domain.Headers("evt_1", "booking.created", "whd_1", 3, []byte("{}"), at, domain.NewSecret())
	shown := domain.SentHeaders("evt_1", "booking.created", "whd_1", 3, at)
	if shown["User-Agent"] != domain.UserAgent {
		t.Errorf("the sender is %q", shown["User-Agent"])
	}
	delete(shown, "User-Agent")
	for _, name := range []string{"Service-Signature", "webhook-signature"} {
		begin, _, _ := strings.Cut(shown[name], "…")
		if !strings.HasPrefix(sent[name], begin) || len(begin) < len("v1,") {
			t.Errorf("%s is %q, shown as %q", name, sent[name], shown[name])
		}
		sent[name] = shown[name]
	}
	if !maps.Equal(sent, shown) {
		t.Errorf("sent %v, shown %v", sent, shown)
	}
}
