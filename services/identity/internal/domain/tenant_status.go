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
	TenantClosing   TenantStatus = "closing"   // its data can be read until its erasure, and its webhooks wait
	TenantErasing   TenantStatus = "erasing"   // its data is being deleted
)

// Consents reports whether operators of a tenant in the state can let apps act for it. The data of a closing tenant can be read.
func (s TenantStatus) Consents() bool { return s == TenantActive || s == TenantClosing }

// State is the state of a tenant, with the reason and the time of its last change.
type State struct {
	Status          TenantStatus
	StatusReason    string     // empty before the first change
	StatusChangedAt *time.Time // nil before the first change
	StatusChangedBy string     // who changed it, and from where; empty before the first change
	EraseAt         *time.Time // when the erasure of a closing tenant begins; nil in other states
}

// TenantAction changes the state of a tenant.
type TenantAction string

// The actions on a tenant.
const (
	SuspendTenant TenantAction = "suspend"
	ResumeTenant  TenantAction = "resume"
	CloseTenant   TenantAction = "close"
	ReopenTenant  TenantAction = "reopen"
	EraseTenant   TenantAction = "erase" // only the worker does this, when the time has come
)

var tenantTransitions = map[TenantStatus]map[TenantAction]TenantStatus{
	TenantActive:    {SuspendTenant: TenantSuspended, CloseTenant: TenantClosing},
	TenantSuspended: {ResumeTenant: TenantActive, CloseTenant: TenantClosing},
	TenantClosing:   {ReopenTenant: TenantActive, EraseTenant: TenantErasing},
	TenantErasing:   {},
}

// ClosingPeriod is how long the data of a closing tenant can be read before it is erased, unless the platform has set another time.
const ClosingPeriod = 30 * 24 * time.Hour

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

// StatusChange is an action on a tenant.
type StatusChange struct {
	Action  TenantAction
	Reason  string // shown to the tenant's operators
	By      Origin
	At      time.Time
	Closing time.Duration // how long the data of a tenant that closes can be read
}

// Act returns the tenant in the state after an action.
func (t Tenant) Act(c StatusChange) (Tenant, error) {
	next, err := t.Status.Next(c.Action)
	if err != nil {
		return Tenant{}, err
	}
	if !isLine(c.Reason, 1, MaxReason) {
		return Tenant{}, apperr.Field("reason", "Must be one visible line of 1 to %d characters.", MaxReason)
	}
	t.State = State{Status: next, StatusReason: c.Reason, StatusChangedAt: &c.At, StatusChangedBy: c.By.text()}
	if next == TenantClosing {
		t.EraseAt = new(c.At.Add(c.Closing))
	}
	return t, nil
}

// Erase returns the closing tenant as it is when its erasure begins. It keeps who closed it.
func (t Tenant) Erase(at time.Time) (Tenant, error) {
	next, err := t.Status.Next(EraseTenant)
	if err != nil {
		return Tenant{}, err
	}
	if at.Before(*t.EraseAt) { // it was reopened and closed again
		return Tenant{}, ErrTenantTransition
	}
	t.Status, t.StatusChangedAt, t.EraseAt = next, &at, nil
	return t, nil
}
