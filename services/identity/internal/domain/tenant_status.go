package domain

import (
	"time"

	"holdfast.dev/libs/apperr"
)

// TenantStatus is the state of a tenant, which only the platform changes.
type TenantStatus string

// The states of a tenant.
const (
	TenantActive    TenantStatus = "active"
	TenantSuspended TenantStatus = "suspended" // no credential and no operator can use its data, and its webhooks wait
)

// State is the state of a tenant, with the reason and the time of its last change.
type State struct {
	Status          TenantStatus
	StatusReason    string     // empty before the first change
	StatusChangedAt *time.Time // nil before the first change
}

// TenantAction changes the state of a tenant.
type TenantAction string

// The actions on a tenant.
const (
	SuspendTenant TenantAction = "suspend"
	ResumeTenant  TenantAction = "resume"
)

var tenantTransitions = map[TenantStatus]map[TenantAction]TenantStatus{
	TenantActive:    {SuspendTenant: TenantSuspended},
	TenantSuspended: {ResumeTenant: TenantActive},
}

// MaxReason is the maximum length of the reason of a change, in characters.
const MaxReason = 500

// ErrTenantTransition reports that the state of a tenant does not allow an action.
var ErrTenantTransition = apperr.New(apperr.Invalid, "invalid_status_transition", "The status of the tenant does not allow this action.").WithField("status")

// Next returns the state after an action, or ErrTenantTransition.
func (s TenantStatus) Next(a TenantAction) (TenantStatus, error) {
	if next, ok := tenantTransitions[s][a]; ok {
		return next, nil
	}
	return s, ErrTenantTransition.WithMessage("Cannot %s a tenant that is %s.", a, s).WithField("status")
}

// Audited returns the action's name in the audit log.
func (a TenantAction) Audited() string { return "tenant." + string(a) }

// Act returns the tenant in the state after an action. The reason is shown to the tenant's operators.
func (t Tenant) Act(a TenantAction, reason string, at time.Time) (Tenant, error) {
	next, err := t.Status.Next(a)
	if err != nil {
		return Tenant{}, err
	}
	if !isLine(reason, 1, MaxReason) {
		return Tenant{}, apperr.Field("reason", "Must be one visible line of 1 to %d characters.", MaxReason)
	}
	t.State = State{next, reason, &at}
	return t, nil
}
