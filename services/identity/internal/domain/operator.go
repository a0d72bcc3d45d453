package domain

import (
	"errors"
	"net/mail"
	"strings"
	"time"
	"unicode/utf8"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/quota"
)

// OperatorPrefix is the prefix of operator ids.
type OperatorPrefix struct{}

// Prefix implements ids.Prefix.
func (OperatorPrefix) Prefix() string { return "op" }

// OperatorID is the public id of an operator, a person who signs in.
type OperatorID = ids.ID[OperatorPrefix]

// NewOperatorID makes a fresh id.
func NewOperatorID() OperatorID { return ids.New[OperatorPrefix]() }

// ParseOperatorID reads an operator's public id; anything else is ErrOperatorNotFound.
func ParseOperatorID(s string) (OperatorID, error) {
	id, err := ids.Parse[OperatorPrefix](s)
	if err != nil {
		return OperatorID{}, ErrOperatorNotFound
	}
	return id, nil
}

// MemberPlaces is how many operators a tenant may have.
var MemberPlaces = quota.Cap{Most: 1000, Rows: "operators", Field: "email", Remedy: "Remove one first."}

// Errors about operators.
var (
	ErrOperatorNotFound = apperr.New(apperr.NotFound, "operator_not_found", "There is no such operator.")
	ErrLastOwner        = apperr.New(apperr.Invalid, "last_owner", "A tenant keeps at least one owner: make another operator an owner first.")
	ErrLink             = errors.New("this link is not valid any more")
)

// ErrPermission is a call in the name of somebody whose role at the tenant does not allow it, or who has none.
var ErrPermission = apperr.New(apperr.Forbidden, "insufficient_permission", "The operator's role at the tenant does not allow this.")

// Operator is a person who signs in. It spans tenants and modes.
type Operator struct {
	ID           OperatorID
	Email        string
	Name         string
	PasswordHash *string // argon2id; nil until the invitation was accepted
	TOTPSecret   []byte  // sealed; nil without a second factor
	TOTPStep     int64   // the last time step whose code was used
	Version      int64
	CreatedAt    time.Time
	UpdatedAt    time.Time
	DisabledAt   *time.Time
}

// FactorBinding binds the sealed secret of a second factor to its row.
func FactorBinding(id OperatorID) []byte { return []byte("operators.totp_secret " + id.String()) }

// Membership is an operator's role at a tenant, in both modes.
type Membership struct {
	TenantID   ids.Tenant
	OperatorID OperatorID
	Role       Role
	Version    int64
	CreatedAt  time.Time
	EndedAt    *time.Time
}

// MemberTenant is a tenant as an operator who is a member of it sees it.
type MemberTenant struct {
	Membership

	Slug       string
	TenantName string
}

// Member is an operator as the tenant sees it.
type Member struct {
	ID         OperatorID
	Email      string
	Name       string
	Role       Role
	Invited    bool // the invitation was not accepted yet
	Factor     bool // it has a second factor
	CreatedAt  time.Time
	DisabledAt *time.Time
	EndedAt    *time.Time
}

// LinkPurpose is what a one-time link is for.
type LinkPurpose string

// The purposes.
const (
	Invite LinkPurpose = "invite"
	Reset  LinkPurpose = "reset"
)

// LinkLifetime is how long a one-time link works.
const LinkLifetime = 24 * time.Hour

// LinkURL is the address of the one-time link with that token, at identity's AUTH_URL.
func LinkURL(authURL, token string) string {
	return strings.TrimRight(authURL, "/") + "/oauth/link/" + token
}

// InviteSubject is the subject of the message that invites to a tenant.
func InviteSubject(tenant string) string { return "You are invited to " + tenant }

// LinkMessage is the text of the message that brings a one-time link.
func LinkMessage(subject, link string) string {
	return subject + ".\n\nChoose your password within 24 hours:\n\n" + link + "\n\nIf you did not expect this message, ignore it.\n"
}

const maxEmail = 255

// CheckEmail returns an address in the form in which it is kept, or the 422 of one that is none.
func CheckEmail(s string) (string, error) {
	s = strings.TrimSpace(s)
	a, err := mail.ParseAddress(s)
	if err != nil || a.Address != s || utf8.RuneCountInString(s) > maxEmail {
		return "", apperr.Field("email", "Must be an e-mail address of at most 255 characters.")
	}
	return s, nil
}

// FoldEmail is the form by which addresses are compared.
func FoldEmail(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// CheckOperatorName returns the 422 of a name that is too long or empty.
func CheckOperatorName(name string) error {
	if !isName(name, 1) {
		return apperr.Field("name", "Must have 1 to 200 characters.")
	}
	return nil
}

// ErasedEmail stands for the address of an operator that was erased; no message can be sent there (RFC 2606).
func ErasedEmail(id OperatorID) string { return "erased-" + id.String() + "@erased.invalid" }
