package domain

import (
	"errors"
	"net/mail"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/oneline"
	"holdfast.dev/libs/quota"
)

// OperatorPrefix is the prefix of operator ids.
type OperatorPrefix struct{}

// Prefix implements ids.Prefix.
func (OperatorPrefix) Prefix() string { return "op" }

// OperatorID is the public id of an operator, a person who signs in.
type OperatorID = ids.ID[OperatorPrefix]

// NewOperatorID creates a new id.
func NewOperatorID() OperatorID { return ids.New[OperatorPrefix]() }

// ParseOperatorID parses an operator's public id. It returns ErrOperatorNotFound for anything else.
func ParseOperatorID(s string) (OperatorID, error) {
	id, err := ids.Parse[OperatorPrefix](s)
	if err != nil {
		return OperatorID{}, ErrOperatorNotFound
	}
	return id, nil
}

// MemberPlaces is the maximum number of operators of a tenant.
var MemberPlaces = quota.Cap{Most: 1000, Rows: "operators", Field: "email", Remedy: "Remove one first."}

// Errors about operators.
var (
	ErrOperatorNotFound = apperr.New(apperr.NotFound, "operator_not_found", "Operator not found.")
	ErrLastOwner        = apperr.New(apperr.Invalid, "last_owner", "A tenant must have at least one owner who can sign in. Make another operator an owner first.")
	ErrLink             = errors.New("this link is not valid any more")
	// ErrUnproven is the 422 for an unverified address whose operator belongs to another tenant.
	ErrUnproven = apperr.Field("email", "This person has an account that is not verified. Ask the operator of the platform to send the invitation.")
)

// ErrPermission reports a call on behalf of an operator whose role at the tenant does not allow it, or who has no role there.
var ErrPermission = apperr.New(apperr.Forbidden, "insufficient_permission", "The operator's role at the tenant does not allow this.")

// Operator is a person who signs in. An operator can belong to several tenants, in both modes.
type Operator struct {
	ID           OperatorID
	Email        string
	Name         string
	PasswordHash *string // argon2id; nil until the invitation is accepted
	TOTPSecret   []byte  // sealed; nil without a second factor
	TOTPStep     int64   // the last time step whose code was used
	Version      int64
	CreatedAt    time.Time
	UpdatedAt    time.Time
	DisabledAt   *time.Time
	ProvenAt     *time.Time // nil until a link that was mailed to the address, or created by the command line, was used
}

// FactorBinding returns the data that binds the sealed secret of a second factor to its row.
func FactorBinding(id OperatorID) []byte { return []byte("operators.totp_secret " + id.String()) }

// Membership is an operator's role at a tenant, in both modes.
type Membership struct {
	TenantID   ids.Tenant
	OperatorID OperatorID
	Role       Role
	Version    int64
	CreatedAt  time.Time
	EndedAt    *time.Time
	InvitedAt  *time.Time
}

// Waits reports whether the membership is an invitation that begins when the operator's address is verified.
func (m Membership) Waits() bool {
	return m.EndedAt != nil && TenantMembership{EndedAt: m.EndedAt, InvitedAt: m.InvitedAt}.Open()
}

// TenantMembership is when an operator was a member of a tenant, or invited to be one.
type TenantMembership struct {
	TenantID  ids.Tenant
	EndedAt   *time.Time
	InvitedAt *time.Time
}

// Open reports whether the operator is a member or invited.
func (p TenantMembership) Open() bool {
	return p.EndedAt == nil || p.InvitedAt != nil && p.InvitedAt.Equal(*p.EndedAt)
}

// OtherTenants is an operator's relation to other tenants.
type OtherTenants struct {
	Member bool // currently a member of another tenant
	Known  bool // a member of another tenant, now or before
}

// OtherTenantsOf returns the relation of an operator with these memberships to other tenants than this one.
func OtherTenantsOf(tenant ids.Tenant, memberships []TenantMembership) (e OtherTenants) {
	for _, p := range memberships {
		if p.TenantID != tenant {
			e.Known = true
			e.Member = e.Member || p.EndedAt == nil
		}
	}
	return e
}

// ErrOwnerPresent reports that a tenant has an owner who can sign in, so that only they or a platform key with more rights can add one.
var ErrOwnerPresent = errors.New("the tenant has an owner who can sign in")

// MemberTenant is a tenant in the view of an operator who is a member.
type MemberTenant struct {
	Membership

	Slug       string
	TenantName string
	Status     TenantStatus // of the tenant
}

// Member is an operator in the view of the tenant.
type Member struct {
	ID         OperatorID
	Email      string
	Name       string
	Role       Role
	Invited    bool // the invitation has not been accepted yet
	Factor     bool // has a second factor
	CreatedAt  time.Time
	DisabledAt *time.Time
}

// LinkPurpose is the purpose of a one-time link.
type LinkPurpose string

// The purposes.
const (
	Invite LinkPurpose = "invite"
	Reset  LinkPurpose = "reset"
)

// How long a one-time link is valid, and one that a person requested to reset their password.
const (
	LinkLifetime  = 24 * time.Hour
	ResetLifetime = time.Hour
)

// LinkURL returns the URL of the one-time link with the given token, at identity's AUTH_URL.
func LinkURL(authURL, token string) string {
	return strings.TrimRight(authURL, "/") + "/oauth/link/" + token
}

// InviteSubject returns the subject of the invitation to a tenant.
func InviteSubject(tenant string) string { return "You have been invited to " + MailName(tenant) }

// The limits of a name in a message.
const (
	mailName   = 60 // characters
	mailDigits = 6  // more digits could be a telephone number
)

// MailName returns the name of a tenant for a message: at most 60 characters that no mail client displays as a link. This is
// necessary because a tenant chooses its name, and the platform sends the message.
func MailName(name string) string {
	letters := []rune(norm.NFKC.String(name))
	digits := 0
	for _, r := range letters {
		if unicode.IsDigit(r) {
			digits++
		}
	}
	for i, r := range letters {
		if !inMail(r, i+1 < len(letters) && !unicode.IsSpace(letters[i+1])) || digits > mailDigits && unicode.IsDigit(r) {
			letters[i] = ' '
		}
	}
	fields := []rune(strings.Join(strings.Fields(string(letters)), " "))
	if text := strings.TrimSpace(string(fields[:min(len(fields), mailName)])); text != "" {
		return text
	}
	return "a business"
}

// inMail reports whether a character cannot be part of a link. A period is allowed at the end of a word, but not inside it.
func inMail(r rune, followed bool) bool {
	switch {
	case unicode.IsLetter(r), unicode.IsMark(r), unicode.IsDigit(r), r == ' ', strings.ContainsRune("'’&-–,!()", r):
		return true
	case r == '.':
		return !followed
	}
	return false
}

// Sentence returns a text that ends with a name with one period at its end: names such as "Boats Inc." have their own.
func Sentence(text string) string { return strings.TrimSuffix(text, ".") + "." }

// LinkMessage returns the text of the message with a one-time link.
func LinkMessage(subject, link string) string {
	return Sentence(subject) + "\n\nTo set your password, open this link within 24 hours:\n\n" + link + "\n\nIf you did not expect this email, you can ignore it.\n"
}

const maxEmail = 255

// CheckEmail returns an address in its stored form, composed (NFC), or a 422 if it is invalid.
func CheckEmail(s string) (string, error) {
	s = norm.NFC.String(strings.TrimSpace(s))
	a, err := mail.ParseAddress(s)
	if err != nil || a.Address != s || strings.ContainsFunc(s, oneline.Invisible) || utf8.RuneCountInString(s) > maxEmail {
		return "", apperr.Field("email", "Must be an email address of at most 255 characters.")
	}
	return s, nil
}

// FoldEmail returns the form in which addresses are compared: lower case, with compatible characters unified (NFKC), and the
// domain in the characters that its ASCII form stands for.
func FoldEmail(s string) string {
	fold := norm.NFKC.String(strings.ToLower(norm.NFKC.String(strings.TrimSpace(s))))
	local, host, found := cutLast(fold, "@")
	if !found {
		return fold
	}
	if name, err := idna.Lookup.ToUnicode(host); err == nil {
		host = name
	}
	return local + "@" + host
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// CheckOperatorName returns a 422 if the name is too long, empty or not one visible line.
func CheckOperatorName(name string) error {
	if !isName(name, 1) {
		return apperr.Field("name", "Must be one visible line of 1 to 200 characters.")
	}
	return nil
}

// ErasedEmail returns the replacement for the address of an erased operator. No message can be sent there (RFC 2606).
func ErasedEmail(id OperatorID) string { return "erased-" + id.String() + "@erased.invalid" }

// Ending describes what must end for an operator who was disabled or erased, or whose address was verified.
type Ending struct {
	OperatorID OperatorID
	Reason     RevokeReason // why the grants end: Disabled or Proven
	Erase      bool         // also end memberships and delete personal data
	Actor      string
	Source     string
	NotedAt    time.Time // grants that were given before then end
}

// By returns who requested it.
func (e Ending) By() Origin { return Origin{e.Actor, e.Source} }
