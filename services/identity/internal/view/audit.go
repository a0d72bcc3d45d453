package view

import (
	"encoding/json"
	"time"

	"holdfast.dev/libs/caller"

	"holdfast.dev/services/identity/internal/domain"
)

// Audited is an audit record in the form of the command line.
type Audited struct {
	Sequence int64           `json:"sequence"`
	At       time.Time       `json:"at"`
	Mode     string          `json:"mode"`
	Actor    string          `json:"actor"`
	Action   string          `json:"action"`
	Object   string          `json:"object"`
	Before   json.RawMessage `json:"before"` // null: the object did not exist, or its content is not stored
	After    json.RawMessage `json:"after"`
	Source   string          `json:"source"`
}

// AuditRecord renders a record of the audit log for the command line.
func AuditRecord(r domain.Record) Audited {
	mode := caller.ModeOf(r.Livemode)
	return Audited{
		Sequence: r.Seq, At: r.At.UTC(), Mode: string(mode), Actor: r.Actor, Action: r.Action, Object: r.Object,
		Before: r.Before, After: r.After, Source: r.Source,
	}
}
