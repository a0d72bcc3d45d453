package domain

import (
	"encoding/binary"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
)

// The limits of operators' input in forms of the console.
const (
	DraftLifetime = time.Hour
	MaxDrafts     = 20        // of an operator; one more replaces the oldest
	MaxDraft      = 256 << 10 // bytes of a draft as JSON
	// ProofLifetime is how long a form's proof of its operator is valid: longer than a session.
	ProofLifetime = SessionLifetime + 24*time.Hour
)

// The errors of drafts.
var (
	ErrDraftNotFound = apperr.New(apperr.NotFound, "not_found", "No draft is stored for this form.")
	ErrDraftTooLarge = apperr.New(apperr.TooLarge, "request_too_large", "Form input must be at most 256 KiB.")
)

// Draft is an operator's input in a form of the console, without secrets.
type Draft struct {
	Page   string              `json:"page"` // path of the page with the form
	Values map[string][]string `json:"values"`
}

// DraftBinding returns the data that binds an encrypted draft to its row.
func DraftBinding(id OperatorID, key string) []byte {
	return []byte("form_drafts.sealed " + id.String() + " " + key)
}

// ProofBinding returns the data that binds the encrypted proof of a form's operator.
func ProofBinding() []byte { return []byte("form proof") }

// FormProof returns the content of such a proof: the operator and the second in which it expires.
func FormProof(id OperatorID, now time.Time) []byte {
	raw := id.UUID()
	return binary.BigEndian.AppendUint64(raw[:], uint64(now.Add(ProofLifetime).Unix()))
}

// ProvenOperator returns the operator of a FormProof that has not expired.
func ProvenOperator(proof []byte, now time.Time) (id OperatorID, ok bool) {
	if len(proof) != 16+8 || now.Unix() >= int64(binary.BigEndian.Uint64(proof[16:])) {
		return id, false
	}
	return ids.FromUUID[OperatorPrefix]([16]byte(proof)), true
}
