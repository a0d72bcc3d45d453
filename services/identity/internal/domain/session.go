package domain

import (
	"time"

	"holdfast.dev/libs/ids"
)

// SessionPrefix is the prefix of session ids.
type SessionPrefix struct{}

// Prefix implements ids.Prefix.
func (SessionPrefix) Prefix() string { return "ses" }

// SessionID is the public id of a session; the cookie's token is another.
type SessionID = ids.ID[SessionPrefix]

// NewSessionID makes a fresh id.
func NewSessionID() SessionID { return ids.New[SessionPrefix]() }

// Lifetimes of a session.
const (
	SessionIdle     = 12 * time.Hour
	SessionLifetime = 7 * 24 * time.Hour
)

// Session is an operator who has signed in with one browser.
type Session struct {
	ID         SessionID
	OperatorID *OperatorID // nil before the second factor
	Address    string
	Agent      string // User-Agent, at most 200 characters
	CreatedAt  time.Time
	SeenAt     time.Time
	ExpiresAt  time.Time
}
