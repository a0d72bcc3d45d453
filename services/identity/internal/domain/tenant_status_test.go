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
	if n := strings.Count(string(doc), " --> "); n != 3 { // with the start
		t.Errorf("the diagram of the README has %d transitions", n)
	}
}

func TestActOnTenant(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	tenant := Tenant{State: State{Status: TenantActive}}
	suspended, err := tenant.Act(SuspendTenant, "unpaid", at)
	if err != nil || suspended.Status != TenantSuspended || suspended.StatusReason != "unpaid" || !suspended.StatusChangedAt.Equal(at) || suspended.Equal(tenant) {
		t.Errorf("%+v, %v", suspended, err)
	}
	if _, err := suspended.Act(SuspendTenant, "again", at); !errors.Is(err, ErrTenantTransition) || apperr.As(err).Fields[0].Message != "Cannot suspend a tenant that is suspended." {
		t.Errorf("suspended twice: %v", err)
	}
	if _, err := tenant.Act(ResumeTenant, "why", at); !errors.Is(err, ErrTenantTransition) {
		t.Errorf("an active tenant resumed: %v", err)
	}
	for _, reason := range []string{"", " ", "two\nlines", strings.Repeat("x", MaxReason+1)} {
		if _, err := tenant.Act(SuspendTenant, reason, at); err == nil || apperr.As(err).Fields[0].Field != "reason" {
			t.Errorf("reason %q: %v", reason, err)
		}
	}
	if _, err := tenant.Act(SuspendTenant, strings.Repeat("ü", MaxReason), at); err != nil {
		t.Error(err)
	}
}
