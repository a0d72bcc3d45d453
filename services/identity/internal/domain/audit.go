package domain

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"holdfast.dev/libs/ids"
)

// The audited actions. Actions of other services have the names of their events.
const (
	TenantCreated    = "tenant.create"
	TenantUpdated    = "tenant.update"
	KeyCreated       = "key.create"
	KeyRevoked       = "key.revoke"
	KeyRotated       = "key.rotate" // a new key replaces it
	OperatorInvited  = "operator.invite"
	OperatorJoined   = "operator.join" // the invitation was accepted
	OperatorRole     = "operator.role"
	OperatorLeft     = "operator.leave"
	OperatorDisabled = "operator.disable"
	OperatorEnabled  = "operator.enable"
	OperatorReset    = "operator.reset"
	PasswordChanged  = "operator.password"
	FactorChanged    = "operator.second_factor"
	SignedIn         = "operator.sign_in"
	SignInDelayed    = "operator.sign_in_delayed" // attempts with wrong passwords must wait from now on
	AppCreated       = "app.create"
	AppUpdated       = "app.update"
	AppDeleted       = "app.delete"
	AppVerified      = "app.verify"
	AppUnverified    = "app.unverify"
	GrantCreated     = "grant.create"
	GrantRevoked     = "grant.revoke"
	EndpointFailing  = "webhook_endpoint.failing"
	EndpointDisabled = "webhook_endpoint.disabled"
)

// Origin is the actor of a change and its source: a name such as "cli", and an address or machine.
type Origin struct{ Actor, Source string }

// Record is one line of a tenant's audit log. Before and After contain the visible fields, but never a secret. nil means that the
// object did not exist before, or does not exist afterwards.
type Record struct {
	TenantID ids.Tenant
	Livemode bool  // true for changes of the whole tenant
	Seq      int64 // 1, 2, 3 … per tenant, across both modes
	At       time.Time
	Actor    string
	Action   string
	Object   string // public id
	Before   json.RawMessage
	After    json.RawMessage
	Source   string
	PrevHash []byte // hash of the previous record; 32 zero bytes for the first
	Hash     []byte
}

// Head is the end of a tenant's chain: its last record's number and hash.
type Head struct {
	TenantID ids.Tenant
	Seq      int64
	Hash     []byte
}

// ErrHeadMissing reports that a tenant has no head, although a head is created with each tenant.
var ErrHeadMissing = errors.New("the head is missing")

// PrintedHead is a head in its printed form, to save in a place that people with write access to the database cannot change.
type PrintedHead struct {
	Seq  int64  `json:"sequence"`
	Hash string `json:"hash"` // in hexadecimal
}

// Printed returns h in its printed form.
func (h Head) Printed() PrintedHead { return PrintedHead{Seq: h.Seq, Hash: hex.EncodeToString(h.Hash)} }

// NewHead returns the head of an empty chain.
func NewHead(tenant ids.Tenant) Head { return Head{TenantID: tenant, Hash: make([]byte, sha256.Size)} }

// Append numbers the record and chains it to the head. It returns the record and the new head.
func (h Head) Append(r Record) (Record, Head, error) {
	r.TenantID, r.Seq, r.PrevHash = h.TenantID, h.Seq+1, h.Hash
	r.At = r.At.UTC().Truncate(time.Microsecond) // the column's precision
	sum, err := r.sum()
	if err != nil {
		return Record{}, Head{}, err
	}
	r.Hash = sum
	return r, Head{TenantID: h.TenantID, Seq: r.Seq, Hash: sum}, nil
}

// Follow checks that r is the unchanged next record of the chain, and returns the head after it.
func (h Head) Follow(r Record) (Head, error) {
	if r.Seq != h.Seq+1 {
		return h, fmt.Errorf("record %d is missing", h.Seq+1)
	}
	sum, err := r.sum()
	if err != nil {
		return h, err
	}
	if !bytes.Equal(r.PrevHash, h.Hash) || !bytes.Equal(r.Hash, sum) {
		return h, fmt.Errorf("record %d was altered", r.Seq)
	}
	return Head{TenantID: h.TenantID, Seq: r.Seq, Hash: sum}, nil
}

// sum returns the SHA-256 of the canonical form: JSON in this order of fields. The keys of Before and After are sorted, because
// jsonb does not preserve their original order.
func (r Record) sum() ([]byte, error) {
	before, err := canonical(r.Before)
	if err != nil {
		return nil, fmt.Errorf("audit record %d: before: %w", r.Seq, err)
	}
	after, err := canonical(r.After)
	if err != nil {
		return nil, fmt.Errorf("audit record %d: after: %w", r.Seq, err)
	}
	form, err := json.Marshal(struct {
		Tenant        string
		Livemode      bool
		Seq           int64
		At            string
		Actor         string
		Action        string
		Object        string
		Before, After json.RawMessage
		Source        string
		Prev          []byte
	}{
		r.TenantID.String(), r.Livemode, r.Seq, r.At.UTC().Format(time.RFC3339Nano),
		r.Actor, r.Action, r.Object, before, after, r.Source, r.PrevHash,
	})
	if err != nil {
		return nil, fmt.Errorf("audit record %d: %w", r.Seq, err)
	}
	sum := sha256.Sum256(form)
	return sum[:], nil
}

func canonical(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		return json.RawMessage("null"), nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v) // maps marshal in key order
}
