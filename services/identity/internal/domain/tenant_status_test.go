package domain

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
)

func TestTenantTransitions(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for from, actions := range tenantTransitions {
		for action, to := range actions {
			if tenantTransitions[to] == nil {
				t.Errorf("%s of %s leads to %s, which has no row", action, from, to)
			}
			if line := string(from) + " --> " + string(to) + " : " + string(action); !strings.Contains(string(doc), line) {
				t.Errorf("the diagram of the README lacks %q", line)
			}
		}
	}
	if n := strings.Count(string(doc), " --> "); n != 8 { // with the start and the end
		t.Errorf("the diagram of the README has %d transitions", n)
	}
}

func TestActOnTenant(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	act := func(t Tenant, a TenantAction, reason string) (Tenant, error) {
		return t.Act(StatusChange{Action: a, Reason: reason, By: Origin{Actor: "pk_1", Source: "s"}, At: at, Closing: time.Hour})
	}
	tenant := Tenant{State: State{Status: TenantActive}}
	suspended, err := act(tenant, SuspendTenant, "unpaid")
	if err != nil || suspended.Status != TenantSuspended || suspended.StatusReason != "unpaid" || !suspended.StatusChangedAt.Equal(at) || suspended.StatusChangedBy != "pk_1 s" || suspended.EraseAt != nil || suspended.Equal(tenant) {
		t.Errorf("%+v, %v", suspended, err)
	}
	if _, err := act(suspended, SuspendTenant, "again"); !errors.Is(err, ErrTenantTransition) || apperr.As(err).Fields[0].Message != "Cannot suspend a tenant that is suspended." {
		t.Errorf("suspended twice: %v", err)
	}
	if _, err := act(tenant, ResumeTenant, "why"); !errors.Is(err, ErrTenantTransition) {
		t.Errorf("an active tenant resumed: %v", err)
	}
	for _, reason := range []string{"", " ", "two\nlines", strings.Repeat("x", MaxReason+1)} {
		if _, err := act(tenant, SuspendTenant, reason); err == nil || apperr.As(err).Fields[0].Field != "reason" {
			t.Errorf("reason %q: %v", reason, err)
		}
	}
	if _, err := act(tenant, SuspendTenant, strings.Repeat("ü", MaxReason)); err != nil {
		t.Error(err)
	}
	for _, from := range []Tenant{tenant, suspended} {
		closing, err := act(from, CloseTenant, "cancelled")
		if err != nil || closing.Status != TenantClosing || !closing.EraseAt.Equal(at.Add(time.Hour)) {
			t.Fatalf("%+v, %v", closing, err)
		}
		if _, err := closing.Erase(at.Add(time.Hour - 1)); !errors.Is(err, ErrTenantTransition) {
			t.Errorf("erased early: %v", err)
		}
		erasing, err := closing.Erase(at.Add(time.Hour))
		if err != nil || erasing.Status != TenantErasing || erasing.EraseAt != nil || erasing.StatusChangedBy != "pk_1 s" {
			t.Errorf("%+v, %v", erasing, err)
		}
		for _, a := range []TenantAction{SuspendTenant, ResumeTenant, CloseTenant, ReopenTenant} {
			if _, err := act(erasing, a, "why"); !errors.Is(err, ErrTenantTransition) {
				t.Errorf("%s of a tenant that is being erased: %v", a, err)
			}
		}
		reopened, err := act(closing, ReopenTenant, "they stay")
		if err != nil || reopened.Status != TenantActive || reopened.EraseAt != nil {
			t.Errorf("%+v, %v", reopened, err)
		}
		if _, err := reopened.Erase(at.Add(time.Hour)); !errors.Is(err, ErrTenantTransition) {
			t.Errorf("an active tenant erased: %v", err)
		}
	}
}
