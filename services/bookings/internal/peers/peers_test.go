package peers_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/peer"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto/api"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/peers"
)

const secret = "k1:626f6f6b696e6773626f6f6b696e6773626f6f6b696e6773626f6f6b696e6773"

// other starts another service. It verifies the signed caller and passes the request to respond.
func other(t *testing.T, name string, respond http.HandlerFunc) *peer.Client {
	t.Helper()
	keys, err := caller.ParseKeys("bookings=" + secret)
	if err != nil {
		t.Fatal(err)
	}
	verifier := &caller.Verifier{Self: name, Keys: keys}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, _, err := verifier.Verify(r.Header.Get(caller.Header), r.Method, r.URL.EscapedPath(), time.Now()); err != nil {
			httpx.WriteError(w, "https://booking.test", "", httpx.ErrCaller)
			return
		}
		respond(w, r)
	}))
	t.Cleanup(srv.Close)
	sign, err := caller.ParseKeys(name + "=" + secret)
	if err != nil {
		t.Fatal(err)
	}
	return &peer.Client{Target: name, BaseURL: srv.URL, Signer: &caller.Signer{From: "bookings", Keys: sign}}
}

func TestTenantIsCachedByVersion(t *testing.T) {
	t.Parallel()
	ctx := pgtest.Ctx(t, caller.Test)
	var calls, version atomic.Int64
	version.Store(1)
	tenants := peers.NewTenants(other(t, "identity", func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		if want := "/internal/v1/tenants/" + caller.FromContext(ctx).Tenant.String(); r.URL.Path != want {
			t.Errorf("requested %s", r.URL.Path)
		}
		_ = json.NewEncoder(w).Encode(internalapi.Tenant{
			PolicyVersion: version.Load(), BookingPolicy: internalapi.BookingPolicy{ConfirmOnDeposit: true, HoldTTLMinutes: new(int(version.Load()) * 10)},
			TaxBehavior: new(internalapi.Inclusive), DefaultTaxes: &[]api.Tax{{Name: "VAT", Rate: "19"}},
		})
	}))
	at := func(policyVersion int64, wantMinutes int, wantCalls int64) {
		t.Helper()
		c := caller.FromContext(ctx)
		c.PolicyVersion = policyVersion
		got, err := tenants.Tenant(caller.With(ctx, c))
		if err != nil || !got.Policy.ConfirmOnDeposit || *got.Policy.HoldTTLMinutes != wantMinutes || calls.Load() != wantCalls {
			t.Errorf("version %d: %v, %v after %d calls", policyVersion, got.Policy.HoldTTLMinutes, err, calls.Load())
		}
		if want := []money.Tax{{Name: "VAT", Rate: 190_000}}; got.Taxes.Behavior != money.TaxInclusive || !slices.Equal(got.Taxes.Taxes, want) {
			t.Errorf("version %d: taxes %+v", policyVersion, got.Taxes)
		}
	}
	at(1, 10, 1)
	at(1, 10, 1)
	at(2, 10, 2) // identity is behind the caller: its response is used but not stored
	version.Store(2)
	at(2, 20, 3)
	at(2, 20, 3)
	at(1, 10, 3)
}

func TestCustomers(t *testing.T) {
	t.Parallel()
	ctx := pgtest.Ctx(t, caller.Test)
	known, unknown := ids.New[ids.CustomerPrefix](), ids.New[ids.CustomerPrefix]()
	customers := &peers.Customers{Client: other(t, "customers", func(w http.ResponseWriter, r *http.Request) {
		body := fmt.Sprintf(`{"id":%q,"object":"customer","name":"Ann","version":7,"metadata":{"b":"1","a":"2"}}`, known)
		switch {
		case r.Method == http.MethodPost:
			var in internalapi.CustomerBatch
			if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.IDs) != 2 {
				t.Errorf("requested %v, %v", in.IDs, err)
			}
			fmt.Fprintf(w, `{"data":[%s],"rest":[%q]}`, body, unknown)
		case strings.HasSuffix(r.URL.Path, known.String()):
			fmt.Fprint(w, body)
		default:
			httpx.WriteError(w, "https://booking.test", "req_1", domain.ErrCustomerNotFound)
		}
	})}
	if got, err := customers.Customer(ctx, known); err != nil || got != (domain.Customer{ID: known, Name: "Ann", Version: 7}) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := customers.Customer(ctx, unknown); !errors.Is(err, domain.ErrCustomerNotFound) {
		t.Errorf("unknown: %v", err)
	}
	got, rest, err := customers.Expand(ctx, []domain.CustomerID{known, unknown})
	if err != nil || len(got) != 1 || len(rest) != 1 || rest[0] != unknown || string(got[known].Metadata) != `{"b":"1","a":"2"}` {
		t.Errorf("%v, %v", got, err)
	}
	down := &peers.Customers{Client: &peer.Client{Target: "customers", BaseURL: "http://127.0.0.1:1", Signer: customers.Client.Signer}}
	if _, err := down.Customer(ctx, known); !errors.Is(err, apperr.ErrUnavailable) {
		t.Errorf("no server: %v", err)
	}
}

func TestExpireQuotes(t *testing.T) {
	t.Parallel()
	ctx, more := pgtest.Ctx(t, caller.Test), true
	customers := &peers.Customers{Client: other(t, "customers", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/internal/v1/expiries" {
			t.Errorf("requested %s %s", r.Method, r.URL.Path)
		}
		fmt.Fprintf(w, `{"more":%v}`, more)
	})}
	for range 2 {
		if got, err := customers.ExpireQuotes(ctx); got != more || err != nil {
			t.Errorf("%v, %v; want %v", got, err, more)
		}
		more = !more
	}
}
