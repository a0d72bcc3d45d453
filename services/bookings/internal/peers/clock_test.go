package peers_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/bookings/internal/peers"
)

func TestSetClock(t *testing.T) {
	t.Parallel()
	ctx := pgtest.Ctx(t, caller.Test)
	at := time.Date(2030, 5, 1, 0, 0, 0, 0, time.UTC)
	tenants := peers.NewTenants(other(t, "identity", func(w http.ResponseWriter, r *http.Request) {
		if want := "/internal/v1/tenants/" + caller.FromContext(ctx).Tenant.String() + "/test-clock"; r.Method != http.MethodPut || r.URL.Path != want {
			t.Errorf("requested %s %s", r.Method, r.URL.Path)
		}
		var in map[string]*time.Time
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		now, given := in["now"]
		if !given {
			t.Error("now is absent, where null was meant")
		}
		if now != nil && now.Before(at) {
			httpx.WriteError(w, "https://booking.test", "req_1", apperr.Field("now", "Must not be before."))
			return
		}
		_ = json.NewEncoder(w).Encode(internalapi.Tenant{PolicyVersion: 7, Clock: now})
	}))
	if got, err := tenants.SetClock(ctx, &at); err != nil || got.Version != 7 || !got.FrozenAt.Equal(at) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := tenants.SetClock(ctx, nil); err != nil || got.Version != 7 || got.FrozenAt != nil {
		t.Errorf("%+v, %v", got, err)
	}
	_, err := tenants.SetClock(ctx, new(at.Add(-time.Second)))
	var e *apperr.Error
	if !errors.As(err, &e) || e.Kind != apperr.Invalid || e.Fields[0].Field != "now" {
		t.Errorf("back: %v", err)
	}
}
