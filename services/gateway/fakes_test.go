package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/contract/contracttest"
	"holdfast.dev/libs/ids"
	"holdfast.dev/proto"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/gateway/internal/store"
)

// fakeIdentity serves lookups from memory, and counts them.
type fakeIdentity struct {
	url     string
	mu      sync.Mutex
	known   map[string]*internalapi.Principal // by hash
	lookups int                               // credentials
	calls   int                               // lookups and batches of them
	down    bool
	old     bool             // the previous release, which has no batches
	pause   time.Duration    // before each response
	broken  string           // the hash of a credential that cannot be read
	pages   http.HandlerFunc // the handler for all paths except lookups
}

func newFakeIdentity(t testing.TB, secret string) *fakeIdentity {
	f := &fakeIdentity{known: map[string]*internalapi.Principal{}}
	keys, err := caller.ParseKeys("gateway=k1:" + secret)
	if err != nil {
		t.Fatal(err)
	}
	verifier := &caller.Verifier{Self: "identity", Keys: keys}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, from, err := verifier.Verify(r.Header.Get(caller.Header), r.Method, r.URL.EscapedPath(), time.Now())
		lookup := strings.HasPrefix(r.URL.Path, "/internal/v1/credentials/lookup")
		operation := strings.HasPrefix(r.URL.Path, "/api/v1/")
		if err != nil || from != "gateway" || who.Tenant.IsZero() == operation || !lookup && f.pages == nil {
			t.Errorf("identity was called by %q as %+v: %v", from, who, err)
		}
		if !lookup && f.pages != nil {
			f.pages(w, r)
			return
		}
		f.serveLookup(t, w, r)
	}))
	t.Cleanup(srv.Close)
	f.url = srv.URL
	return f
}

func (f *fakeIdentity) serveLookup(t testing.TB, w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	pause := f.pause
	f.mu.Unlock()
	time.Sleep(pause)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	batch := strings.HasSuffix(r.URL.Path, "-batch")
	switch {
	case f.down:
		f.lookups++
		w.WriteHeader(http.StatusServiceUnavailable)
	case batch && f.old:
		refuse(w, http.StatusNotFound, "not_found")
	case batch:
		var in internalapi.LookupBatch
		_ = json.NewDecoder(r.Body).Decode(&in)
		var out internalapi.FoundCredentials
		if slices.Contains(in.Hashes, f.broken) {
			refuse(w, http.StatusInternalServerError, "internal_error")
			return
		}
		for _, hash := range slices.Backward(in.Hashes) {
			if p := f.find(t, hash, in.Kind); p != nil {
				out.Data = append(out.Data, internalapi.FoundCredential{Hash: hash, Principal: *p})
			}
		}
		_ = json.NewEncoder(w).Encode(out)
	default:
		var in internalapi.Lookup
		_ = json.NewDecoder(r.Body).Decode(&in)
		switch p := f.find(t, in.Hash, *in.Kind); {
		case in.Hash == f.broken:
			refuse(w, http.StatusInternalServerError, "internal_error")
		case p != nil:
			_ = json.NewEncoder(w).Encode(p)
		default:
			refuse(w, http.StatusNotFound, "credential_not_found")
		}
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"error":{"code":%q,"message":"No."}}`, code)
}

// find returns a principal and counts the lookup. The caller must hold f.mu.
func (f *fakeIdentity) find(t testing.TB, hash, kind string) *internalapi.Principal {
	f.lookups++
	p := f.known[hash]
	if p != nil && kind != p.Kind {
		t.Errorf("an %s is looked up as %v", p.Kind, kind)
	}
	return p
}

// newKey creates a test key. Without scopes, it has all scopes.
func (f *fakeIdentity) newKey(scopes ...string) string {
	if len(scopes) == 0 {
		scopes = proto.Scopes
	}
	key := apikey.New(caller.Test)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known[hash(key)] = &internalapi.Principal{
		ID:   strings.Replace(ids.New[ids.RequestPrefix]().String(), "req_", "key_", 1),
		Kind: "api_key", Name: "test", Mode: "test", Scopes: scopes,
		TenantID: ids.New[ids.TenantPrefix]().String(), Timezone: "UTC", Currency: "USD", PolicyVersion: 1, Version: 1,
	}
	return key
}

// newToken creates an access token of a new grant, which expires at the given time.
func (f *fakeIdentity) newToken(expires time.Time) string {
	key := f.newKey()
	token := apikey.Secret(apikey.AccessToken, apikey.KeyDigits)
	f.mu.Lock()
	defer f.mu.Unlock()
	p := *f.known[hash(key)]
	p.Kind, p.ExpiresAt, p.ID = "oauth", &expires, strings.Replace(p.ID, "key_", "gr_", 1)
	f.known[hash(token)] = &p
	return token
}

func hash(key string) string {
	sum := apikey.Hash(key)
	return hex.EncodeToString(sum[:])
}

// change edits the principal of a key.
func (f *fakeIdentity) change(key string, edit func(*internalapi.Principal)) internalapi.Principal {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.known[hash(key)]; edit != nil {
		edit(p)
	}
	return *f.known[hash(key)]
}

func (f *fakeIdentity) id(key string) string { return f.change(key, nil).ID }

// holder returns what a key's requests are counted for.
func (f *fakeIdentity) holder(key string) store.Holder {
	p := f.change(key, nil)
	return store.Holder{Tenant: p.TenantID, Mode: p.Mode, Credential: p.ID}
}

// sibling creates another key of the tenant of a key.
func (f *fakeIdentity) sibling(key string, edits ...func(*internalapi.Principal)) string {
	other := f.newKey()
	p := f.change(key, nil)
	f.change(other, func(o *internalapi.Principal) {
		o.TenantID, o.Limits = p.TenantID, p.Limits
		for _, edit := range edits {
			edit(o)
		}
	})
	return other
}

func (f *fakeIdentity) lookupCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lookups
}

// fakeService stands for every service except identity. It stores what it creates, and idempotency records.
type fakeService struct {
	url      string
	mu       sync.Mutex
	bodies   map[string]string // by id
	records  map[string]string // id by kind, credential and key
	created  int
	handled  int
	last     *http.Request
	lastBody string
	caller   caller.Caller
	delay    time.Duration
	handle   func(w http.ResponseWriter, r *http.Request) bool // true: it responded
}

func newFakeService(t testing.TB, secrets map[string]string) *fakeService {
	f := &fakeService{bodies: map[string]string{}, records: map[string]string{}}
	verifiers := map[string]*caller.Verifier{}
	for self, secret := range secrets {
		keys, err := caller.ParseKeys("gateway=k1:" + secret)
		if err != nil {
			t.Fatal(err)
		}
		verifiers[self] = &caller.Verifier{Self: self, Keys: keys}
	}
	c, err := contract.Public()
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		op, _, _ := contracttest.Match(c, r.Method, strings.TrimPrefix(r.URL.EscapedPath(), "/api/v1"))
		if strings.HasPrefix(r.URL.Path, "/internal/v1/gateway-events/") { // it needs no credential and is not in the contract
			op = &contract.Operation{Service: "payments", Public: true}
		}
		if op == nil {
			t.Errorf("%s %s is no operation of the contract", r.Method, r.URL)
			w.WriteHeader(http.StatusNotFound)
			return
		}
		who, _, err := verifiers[op.Service].Verify(r.Header.Get(caller.Header), r.Method, r.URL.EscapedPath(), time.Now())
		if err != nil || who.Tenant.IsZero() != op.Public {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		f.serve(w, r, who)
	}))
	t.Cleanup(srv.Close)
	f.url = srv.URL
	return f
}

func (f *fakeService) serve(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	f.mu.Lock()
	delay, handle := f.delay, f.handle
	f.handled++
	f.last, f.lastBody, f.caller = r, string(body), who
	f.mu.Unlock()
	time.Sleep(delay)
	if handle != nil && handle(w, r) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Internal-Anything", "secret")
	h.Set("Server", "fake")
	if r.Method != http.MethodPost {
		h.Set("ETag", `"1"`)
		_, _ = io.WriteString(w, customerBody("cu_00000000000000000000000000"))
		return
	}
	kind, prefix, render := "customers", "cu_", customerBody
	if strings.HasPrefix(r.URL.Path, bookings) {
		kind, prefix, render = "bookings", "bk_", bookingBody
	}
	key := kind + who.Credential + "/" + r.Header.Get("Idempotency-Key")
	h.Set("X-Internal-Idem-Expires", fmt.Sprint(time.Now().Add(24*time.Hour).Unix()))
	stored, again := f.records[key]
	if again && r.Header.Get("Idempotency-Key") != "" {
		h.Set("Idempotent-Replayed", "true")
	} else {
		f.created++
		stored = fmt.Sprintf("%s%026d", prefix, f.created)
		f.bodies[stored], f.records[key] = render(stored), stored
	}
	h.Set("Location", "/api/v1/"+kind+"/"+stored)
	h.Set("ETag", `"1"`)
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, f.bodies[stored])
}

// customerBody has its own white space, which a replay must preserve.
func customerBody(id string) string {
	return `{ "id":"` + id + `","object":"customer","name":"Ada <&>","first_name":"Ada","last_name":null,"email":"a@example.com",` +
		`"phone":null,"company":null,"tax_id":null,"billing_address":null,"country":null,"locale":null,"metadata":{},"mode":"test","version":1,"erased_at":null,` +
		`"created_at":"2026-05-10T00:00:00Z","updated_at":"2026-05-10T00:00:00Z"}`
}

func bookingBody(id string) string {
	money := `{"amount":0,"currency":"USD"}`
	return `{ "id":"` + id + `","object":"booking","number":"B-1","status":"pending","payment_status":"unpaid",` +
		`"customer_id":null,"lead_id":null,"quote_id":null,"service_id":null,"unit_id":null,"package_id":null,"package_snapshot":null,` +
		`"event_type":null,"event_date":"2026-05-10T00:00:00Z","event_local_date":"2026-05-10","event_local_end_date":"2026-05-10","event_start_time":null,"event_end_time":null,"starts_at":null,"ends_at":null,` +
		`"timezone":"UTC","guest_count":2,"exclusive":false,"notes":"<&>","total_amount":` + money + `,"tax_behavior":null,"tax_breakdown":[],"tax_amount":` + money + `,"gross_amount":` + money + `,"deposit_amount":` + money + `,"amount_paid":` + money +
		`,"amount_refunded":` + money + `,"amount_credited":` + money + `,"amount_due":` + money + `,"disputed":false,"hold_expires_at":null,"cancellation":null,"invoice_ids":[],"metadata":{},"mode":"test","version":1,` +
		`"confirmed_at":null,"cancelled_at":null,"completed_at":null,"created_at":"2026-05-10T00:00:00Z","updated_at":"2026-05-10T00:00:00Z"}`
}

func (f *fakeService) set(edit func(*fakeService)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	edit(f)
}

func (f *fakeService) calls() (handled, created int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.handled, f.created
}
