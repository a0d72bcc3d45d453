package domain

import (
	"encoding/json"
	"fmt"
	"time"

	"holdfast.dev/libs/lease"
	"holdfast.dev/libs/money"
)

// RefundStatus is the state of a refund or an allocation: one of Stripe's states, or one of two states before the gateway knows the
// refund.
type RefundStatus string

// The states of a refund. RefundCreating and RefundRefused are never shown.
const (
	RefundCreating       RefundStatus = "creating" // the gateway was or will be called, and its response is unknown
	RefundRefused        RefundStatus = "refused"  // the gateway refused to create it
	RefundPending        RefundStatus = "pending"
	RefundSucceeded      RefundStatus = "succeeded"
	RefundFailed         RefundStatus = "failed"
	RefundRequiresAction RefundStatus = "requires_action"
	RefundCanceled       RefundStatus = "canceled"
)

// refundOrder contains the states that a gateway reports. A refund has the first of these states that one of its allocations has.
var refundOrder = []RefundStatus{RefundRequiresAction, RefundPending, RefundFailed, RefundCanceled, RefundSucceeded}

// Shown returns the state as clients see it.
func (s RefundStatus) Shown() RefundStatus {
	switch s {
	case RefundCreating:
		return RefundPending
	case RefundRefused:
		return RefundFailed
	default:
		return s
	}
}

// Holds reports whether an allocation in this state reduces the refundable amount of its intent.
func (s RefundStatus) Holds() bool {
	return s == RefundCreating || s == RefundPending || s == RefundRequiresAction || s == RefundSucceeded
}

// KnownRefundStatus reports whether a state that the gateway reports is one of Stripe's.
func KnownRefundStatus(s RefundStatus) bool {
	for _, known := range refundOrder {
		if s == known {
			return true
		}
	}
	return false
}

// RefundMethod is how money is returned.
type RefundMethod string

// ByGateway is the method of a refund to the card that paid. The other methods are those of payments outside the gateway.
const ByGateway RefundMethod = "gateway"

// Refund is money returned to the card that paid, or handed back by another method.
type Refund struct {
	ID          RefundID
	Status      RefundStatus
	Shown       bool // the gateway knows or knew a part of it
	Amount      money.Amount
	Reason      string
	Method      RefundMethod
	Reference   *string // the operator's own
	BookingID   BookingID
	CustomerID  CustomerID // of the booking, if there are no allocations
	Intent      GatewayID  // the intent in the request; "" if the request named the booking
	Metadata    json.RawMessage
	Allocations []Allocation // in the order in which the gateway is called
	Version     int64
	CreatedAt   time.Time
	UpdatedAt   time.Time
	Lease       lease.Lease  // of the process that calls the gateway; the attempts are numbered per allocation
	Owed        OwedID       // the owed refund that it was created for; zero: none
	CreditNote  CreditNoteID // the credit note that it was created for; zero: none
}

// Allocation is the part of a refund that is returned through one intent. It is one refund at the gateway.
type Allocation struct {
	ID          AllocationID
	IntentID    IntentID
	Intent      GatewayID
	Minor       int64
	Status      RefundStatus
	GatewayID   string // re_…; "" while it is RefundCreating or RefundRefused
	Failure     *Failure
	Attempt     int32
	AttemptedAt time.Time
	Applied     int64 // number of the last read of the gateway that was applied
}

// CallKey returns the idempotency key of the attempt at the gateway.
func (a Allocation) CallKey() string { return fmt.Sprintf("%s:%d", a.ID, a.Attempt) }

// Forgotten reports whether the gateway may have forgotten the attempt's idempotency key.
func (a Allocation) Forgotten(real time.Time) bool { return real.Sub(a.AttemptedAt) >= gatewayMemory }

// GatewayRefund is a refund as the gateway reports it.
type GatewayRefund struct {
	ID      string // re_…
	Status  RefundStatus
	Failure *Failure
	Row     string // our id of the allocation, from its metadata

	Movements []Movement
}

// MoneyKey returns the key of the account that the refund changes.
func (r Refund) MoneyKey() MoneyKey { return BookingMoney(r.BookingID, r.Amount.Currency) }

// Move returns the change of the account by a refund that was handed back.
func (r Refund) Move() MoneyMove {
	return MoneyMove{Kind: EntryReturned, Method: EntryMethod(r.Method), Minor: r.Amount.Minor, Object: r.ID.String(), At: r.CreatedAt}
}

// Resume assigns the calls of the refund to a process for a time.
func (r Refund) Resume(real time.Time) Refund {
	r.Lease = r.Lease.Renew(real, callLease)
	return r
}

// UnderWay returns the allocations whose outcome is unknown.
func (r Refund) UnderWay() (list []Allocation) {
	for _, a := range r.Allocations {
		if a.Status == RefundCreating {
			list = append(list, a)
		}
	}
	return list
}

// Allocation returns an allocation of the refund by its id.
func (r Refund) Allocation(id AllocationID) (Allocation, bool) {
	for _, a := range r.Allocations {
		if a.ID == id {
			return a, true
		}
	}
	return Allocation{}, false
}

// Held returns the amount of an intent that the refund holds.
func (r Refund) Held(id IntentID) (minor int64) {
	for _, a := range r.Allocations {
		if a.IntentID == id && a.Status.Holds() {
			minor += a.Minor
		}
	}
	return minor
}

// Reported returns the refund with the state of an allocation that the gateway reports.
func (r Refund) Reported(id AllocationID, got GatewayRefund) Refund {
	return r.with(id, func(a *Allocation) { a.GatewayID, a.Status, a.Failure = got.ID, got.Status, got.Failure })
}

// Refused returns the refund with an allocation that the gateway refused to create.
func (r Refund) Refused(id AllocationID, why Failure) Refund {
	return r.with(id, func(a *Allocation) { a.Status, a.Failure = RefundRefused, &why })
}

// Read sets the number of the read that reported an allocation.
func (r Refund) Read(id AllocationID, number int64) Refund {
	return r.with(id, func(a *Allocation) { a.Applied = number })
}

// with changes an allocation in a copy, and derives the refund's own state. The lease ends when no call is in progress.
func (r Refund) with(id AllocationID, change func(*Allocation)) Refund {
	list := make([]Allocation, len(r.Allocations))
	copy(list, r.Allocations)
	r.Allocations = list
	for i := range list {
		if list[i].ID == id {
			change(&list[i])
		}
	}
	r.Status = status(list)
	r.Shown = r.Shown || r.Status != RefundCreating && r.Status != RefundRefused
	if len(r.UnderWay()) == 0 {
		r.Lease = r.Lease.End()
	}
	return r
}

// status derives the state of a refund from its allocations.
func status(list []Allocation) RefundStatus {
	has, known := map[RefundStatus]bool{}, false
	for _, a := range list {
		has[a.Status.Shown()] = true
		known = known || a.GatewayID != ""
	}
	if !known && has[RefundPending] {
		return RefundCreating
	}
	if !known {
		return RefundRefused
	}
	for _, s := range refundOrder {
		if has[s] {
			return s
		}
	}
	return RefundPending
}
