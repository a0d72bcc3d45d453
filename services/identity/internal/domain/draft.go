package domain

import (
	"encoding/binary"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
)

// Bounds of what operators have entered into forms of the console.
const (
	DraftLifetime = time.Hour
	MaxDrafts     = 20        // of an operator; a further one takes the place of the oldest
	MaxDraft      = 256 << 10 // bytes of one as JSON
	// ProofLifetime is how long a form proves whose page it was on: longer than a session lives.
	ProofLifetime = SessionLifetime + 24*time.Hour
)

// Errors of drafts.
var (
	ErrDraftNotFound = apperr.New(apperr.NotFound, "not_found", "No draft is stored for this form.")
	ErrDraftTooLarge = apperr.New(apperr.TooLarge, "request_too_large", "Form input must be at most 256 KiB.")
)

// Draft is what an operator has entered into a form of the console, without secrets.
type Draft struct {
	Page   string              `json:"page"` // path of the page that has the form
	Values map[string][]string `json:"values"`
}

// DraftBinding binds a sealed draft to its row.
func DraftBinding(id OperatorID, key string) []byte {
	return []byte("form_drafts.sealed " + id.String() + " " + key)
}

// ProofBinding binds the sealed text by which a form proves whose page it was on.
func ProofBinding() []byte { return []byte("form proof") }

// FormProof is what such a text holds: the operator and the second from which on it is over.
func FormProof(id OperatorID, now time.Time) []byte {
	raw := id.UUID()
	return binary.BigEndian.AppendUint64(raw[:], uint64(now.Add(ProofLifetime).Unix())) //nolint:gosec // after 1970
}

// ProvenOperator returns the operator of a FormProof that is not over.
func ProvenOperator(proof []byte, now time.Time) (id OperatorID, ok bool) {
	if len(proof) != 16+8 || now.Unix() >= int64(binary.BigEndian.Uint64(proof[16:])) { //nolint:gosec // FormProof made it
		return id, false
	}
	return ids.FromUUID[OperatorPrefix]([16]byte(proof)), true
}
