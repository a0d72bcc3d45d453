package caller_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/secret"
)

const (
	one = "6f6e656f6e656f6e656f6e656f6e656f6e656f6e656f6e656f6e656f6e656f6e"
	two = "74776f74776f74776f74776f74776f74776f74776f74776f74776f74776f7477"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func keys(t *testing.T, s string) caller.Keys {
	t.Helper()
	k, err := caller.ParseKeys(s)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func somebody() caller.Caller {
	return caller.Caller{
		Tenant: ids.New[ids.TenantPrefix](), Timezone: "America/New_York", Currency: "USD", PolicyVersion: 7,
		Mode: caller.Test, Clock: new(now.AddDate(1, 0, 0)), Credential: "key_1", Kind: "api_key",
		Scopes: []string{"read:bookings"}, RequestID: "req_1",
	}
}

func TestVerifyReturnsTheSignedCaller(t *testing.T) {
	t.Parallel()
	c := somebody()
	s := &caller.Signer{From: "gateway", Keys: keys(t, "bookings=k2:"+two+";k1:"+one)}
	v := &caller.Verifier{Self: "bookings", Keys: keys(t, "gateway=k1:"+one+";k2:"+two)}
	who, err := caller.Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := s.Sign(c, "bookings", "GET", "/api/v1/bookings", now)
	if err != nil {
		t.Fatal(err)
	}
	call := caller.Call{Target: "bookings", Method: "GET", Path: "/api/v1/bookings", RequestID: "req_1"}
	encoded, err := s.SignEncoded(who, call, now)
	if err != nil || encoded != plain {
		t.Errorf("encoded before: %s, %v; want %s", encoded, err, plain)
	}
	got, from, err := v.Verify(plain, "GET", "/api/v1/bookings", now.Add(time.Minute))
	if err != nil || from != "gateway" {
		t.Fatalf("from %q: %v", from, err)
	}
	if diff := cmp.Diff(c, got, cmp.Comparer(func(a, b ids.Tenant) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

// A fingerprint belongs to one call. A service that makes another call with the same caller does not send it.
func TestFingerprintIsOfOneCall(t *testing.T) {
	t.Parallel()
	s := &caller.Signer{From: "gateway", Keys: keys(t, "bookings=k1:"+one)}
	v := &caller.Verifier{Self: "bookings", Keys: keys(t, "gateway=k1:"+one)}
	who, err := caller.Encode(somebody())
	if err != nil {
		t.Fatal(err)
	}
	sum := []byte(strings.Repeat("\xff", 32))
	header, err := s.SignEncoded(who, caller.Call{Target: "bookings", Method: "POST", Path: "/a", Fingerprint: sum}, now)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := v.Verify(header, "POST", "/a", now)
	if err != nil || string(got.Fingerprint) != string(sum) {
		t.Fatalf("fingerprint %x: %v", got.Fingerprint, err)
	}
	if header, err = s.Sign(got, "bookings", "POST", "/b", now); err != nil {
		t.Fatal(err)
	}
	if got, _, err = v.Verify(header, "POST", "/b", now); err != nil || got.Fingerprint != nil {
		t.Errorf("handed on: %x, %v", got.Fingerprint, err)
	}
}

func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	s := &caller.Signer{From: "gateway", Keys: keys(t, "bookings=k1:"+one+",customers=k1:"+two)}
	v := &caller.Verifier{Self: "bookings", Keys: keys(t, "gateway=k1:"+one)}
	sign := func(target string) string {
		h, err := s.Sign(somebody(), target, "POST", "/a", now)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	good := sign("bookings")
	parts := strings.Split(good, ".")
	other := base64.RawURLEncoding.EncodeToString([]byte(`{"tn":"tn_other"}`))
	for name, tc := range map[string]struct {
		header, method, path string
		at                   time.Time
	}{
		"method":         {good, "GET", "/a", now},
		"path":           {good, "POST", "/b", now},
		"late":           {good, "POST", "/a", now.Add(61 * time.Second)},
		"nothing":        {"", "POST", "/a", now},
		"another target": {sign("customers"), "POST", "/a", now},
		"another caller": {strings.Join([]string{parts[0], parts[1], other, parts[3], parts[4]}, "."), "POST", "/a", now},
		"unknown peer":   {"console" + strings.TrimPrefix(good, "gateway"), "POST", "/a", now},
		"unknown key":    {strings.Replace(good, ".k1.", ".k9.", 1), "POST", "/a", now},
		"a part less":    {strings.Join(parts[1:], "."), "POST", "/a", now},
		"no signature":   {strings.Join(parts[:4], ".") + ".", "POST", "/a", now},
	} {
		if _, _, err := v.Verify(tc.header, tc.method, tc.path, tc.at); err == nil {
			t.Errorf("%s is let in", name)
		}
	}
	for i := range good {
		forged := good[:i] + string(good[i]^1) + good[i+1:]
		if _, _, err := v.Verify(forged, "POST", "/a", now); err == nil {
			t.Fatalf("byte %d can be changed", i)
		}
	}
	if _, err := s.Sign(somebody(), "payments", "GET", "/a", now); err == nil {
		t.Error("signed for a target without a key")
	}
}

func TestParseKeysRefuses(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"gateway", "gateway=", "gateway=k1", "gateway=k1:zz", "gateway=k1:" + one[:62], "k1:" + one} {
		if _, err := caller.ParseKeys(bad); err == nil || strings.Contains(err.Error(), one[:62]) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestTestClockHoldsInTestModeOnly(t *testing.T) {
	t.Parallel()
	c := somebody()
	if got := c.Now(now); !got.Equal(*c.Clock) {
		t.Errorf("test mode: %v", got)
	}
	c.Mode = caller.Live
	if got := c.Now(now); !got.Equal(now) {
		t.Errorf("live mode: %v", got)
	}
}

// BenchmarkVerify measures a call of a known credential.
func BenchmarkVerify(b *testing.B) {
	keys, err := caller.ParseKeys("gateway=k1:" + one + ",bookings=k1:" + one)
	if err != nil {
		b.Fatal(err)
	}
	header, err := (&caller.Signer{From: "gateway", Keys: keys}).Sign(somebody(), "bookings", "GET", "/api/v1/bookings", now)
	if err != nil {
		b.Fatal(err)
	}
	v := &caller.Verifier{Self: "bookings", Keys: keys}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := v.Verify(header, "GET", "/api/v1/bookings", now); err != nil {
			b.Fatal(err)
		}
	}
}

// TestEachCallHasItsOwnCaller checks that each call has its own caller, also when there are more callers than the verifier stores.
func TestEachCallHasItsOwnCaller(t *testing.T) {
	t.Parallel()
	s := &caller.Signer{From: "gateway", Keys: keys(t, "bookings=k1:"+one)}
	v := &caller.Verifier{Self: "bookings", Keys: keys(t, "gateway=k1:"+one)}
	var headers []string
	for i := range 5000 {
		c := somebody()
		c.Credential, c.RequestID = fmt.Sprint("key_", i), fmt.Sprint("req_", i)
		h, err := s.Sign(c, "bookings", "GET", "/a", now)
		if err != nil {
			t.Fatal(err)
		}
		headers = append(headers, h)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i, h := range headers {
				got, _, err := v.Verify(h, "GET", "/a", now)
				if err != nil || got.Credential != fmt.Sprint("key_", i) || got.RequestID != fmt.Sprint("req_", i) {
					t.Errorf("call %d is of %s, %s: %v", i, got.Credential, got.RequestID, err)
				}
			}
		})
	}
	group.Wait()
}

// A rotation in the order of docs/operations/secure.md: calls are accepted in each state, without a restart.
func TestKeysFollowTheirFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	follow := func(name, text string) (caller.KeySource, func(text string)) {
		file := filepath.Join(dir, name)
		s := secret.New(text)
		s.InFile(name, file)
		k, err := caller.FollowKeys(s)
		if err != nil {
			t.Fatal(err)
		}
		return k, func(text string) {
			t.Helper()
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if switched, err := s.Reload(); !switched || err != nil {
				t.Fatal(switched, err)
			}
		}
	}
	signs, setSigns := follow("CALLER_SIGN_KEYS", "bookings=k1:"+one)
	verifies, setVerifies := follow("CALLER_VERIFY_KEYS", "gateway=k1:"+one)
	s, v := &caller.Signer{From: "gateway", Keys: signs}, &caller.Verifier{Self: "bookings", Keys: verifies}
	accepted := func() bool {
		header, err := s.Sign(somebody(), "bookings", "GET", "/a", now)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = v.Verify(header, "GET", "/a", now)
		return err == nil
	}
	for state, step := range []func(){
		func() {},
		func() { setVerifies("gateway=k1:" + one + ";k2:" + two) },
		func() { setSigns("bookings=k2:" + two) },
		func() { setVerifies("gateway=k2:" + two) },
	} {
		if step(); !accepted() {
			t.Errorf("a call is rejected in state %d", state)
		}
	}
	if setSigns("bookings=k1:" + one); accepted() {
		t.Error("a removed key is accepted")
	}
}
