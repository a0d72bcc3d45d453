package domain

import (
	"crypto/sha256"
	"errors"
	"time"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
)

type grantPrefix struct{}

func (grantPrefix) Prefix() string { return "gr" }

// GrantID is the public id of a grant: the credential behind its access tokens.
type GrantID = ids.ID[grantPrefix]

// NewGrantID creates a new id.
func NewGrantID() GrantID { return ids.New[grantPrefix]() }

// ParseGrantID parses a grant's public id. It returns ErrGrantNotFound for anything else.
func ParseGrantID(s string) (GrantID, error) {
	id, err := ids.Parse[grantPrefix](s)
	if err != nil {
		return GrantID{}, ErrGrantNotFound
	}
	return id, nil
}

// The lifetimes of the codes and tokens of a grant.
const (
	CodeLifetime        = 5 * time.Minute
	AccessTokenLifetime = time.Hour
	RefreshIdle         = 30 * 24 * time.Hour
	GrantLifetime       = 365 * 24 * time.Hour
)

const (
	// TokenPlaces is the maximum number of valid access tokens of a grant. One more replaces the oldest.
	TokenPlaces = 8
	// GrantPlaces is the maximum number of grants that an operator can give to an app at a tenant in one mode. One more revokes the
	// oldest.
	GrantPlaces = 50
)

// Errors about grants.
var (
	ErrGrantNotFound = apperr.New(apperr.NotFound, "grant_not_found", "Grant not found.")
	// ErrRotated reports that another request already exchanged the code or the refresh token.
	ErrRotated = errors.New("the token was exchanged already")
)

// Grant is an operator's permission for an app at one tenant in one mode. All its tokens form a family.
type Grant struct {
	TenantID         ids.Tenant
	Livemode         bool
	ID               GrantID
	AppID            AppID
	OperatorID       OperatorID
	Scopes           []string // a subset of those that the app may request
	RedirectURI      string
	CodeChallenge    string // S256
	CodeExpiresAt    time.Time
	ExchangedAt      *time.Time // nil until the code was exchanged
	RefreshHash      []byte     // of the current refresh token
	PreviousHash     []byte     // of the previous refresh token
	Successor        []byte     // sealed tokens that the previous one was exchanged for; only for the leeway
	RotatedAt        *time.Time
	RefreshExpiresAt *time.Time
	EndsAt           time.Time
	Version          int64
	CreatedAt        time.Time
	RevokedAt        *time.Time
	Role             Role // current role of the operator at the tenant
	Ended            bool // it was revoked, or the app, the operator or the membership no longer exists
}

// Granted returns the current scopes of the grant, because the role may have fewer scopes than before.
func (g Grant) Granted() []string { return g.Role.Scopes(g.Scopes) }

// RevokeReason is the reason why a grant ended, for the audit log.
type RevokeReason string

// The reasons.
const (
	ByOperator  RevokeReason = "operator"
	ByApp       RevokeReason = "app"
	CodeReused  RevokeReason = "code_reused"
	TokenReused RevokeReason = "refresh_token_reused"
	Disabled    RevokeReason = "operator_disabled"
	Left        RevokeReason = "membership_ended"
	Replaced    RevokeReason = "too_many_grants"
	Proven      RevokeReason = "address_proven" // the account may have had another holder
)

// RevokeReasons lists all reasons.
var RevokeReasons = []RevokeReason{ByOperator, ByApp, CodeReused, TokenReused, Disabled, Left, Replaced, Proven}

// Tokens are the result of an exchange.
type Tokens struct {
	Access  string   `json:"access"`
	Refresh string   `json:"refresh"`
	Scopes  []string `json:"scopes"`
}

// The prefixes and lengths of OAuth secrets. Those of access tokens are in libs/apikey.
const (
	codePrefix    = "svc_ac_"
	refreshPrefix = "svc_rt_"
	familyDigits  = 26
	refreshDigits = familyDigits + apikey.KeyDigits
)

// NewCode creates an authorization code.
func NewCode() string { return apikey.Secret(codePrefix, apikey.KeyDigits) }

// IsCode reports whether s has the form of a code, without a look-up.
func IsCode(s string) bool { return apikey.Has(s, codePrefix, apikey.KeyDigits) }

// NewAccessToken creates an access token.
func NewAccessToken() string { return apikey.Secret(apikey.AccessToken, apikey.KeyDigits) }

// IsAccessToken reports whether s has the form of an access token.
func IsAccessToken(s string) bool { return apikey.Has(s, apikey.AccessToken, apikey.KeyDigits) }

// NewRefreshToken creates the refresh token that follows previous, or the first one of a family for "". A refresh token consists of
// a part that its family shares and its own part, so a used token is recognized without a history.
func NewRefreshToken(previous string) string {
	family := apikey.Random(familyDigits)
	if previous != "" {
		family = familyOf(previous)
	}
	return apikey.Sum(refreshPrefix + family + apikey.Random(apikey.KeyDigits))
}

// IsRefreshToken reports whether s has the form of a refresh token.
func IsRefreshToken(s string) bool { return apikey.Has(s, refreshPrefix, refreshDigits) }

// FamilyHash returns the SHA-256 of the part that the refresh tokens of a family share. It identifies a grant. token must be
// well-formed.
func FamilyHash(token string) []byte { return hash(refreshPrefix + familyOf(token)) }

// SecretHash returns the SHA-256 of a whole secret, the only form in which it is stored.
func SecretHash(secret string) []byte { return hash(secret) }

func familyOf(token string) string { return token[len(refreshPrefix):][:familyDigits] }

func hash(s string) []byte {
	sum := sha256.Sum256([]byte(s))
	return sum[:]
}

// ShownGrant is a grant in a list.
type ShownGrant struct {
	Grant

	AppName  string
	Operator string // the operator's address
}

// OwnGrant is a grant at any tenant in the view of its operator.
type OwnGrant struct {
	TenantID  ids.Tenant
	Livemode  bool
	ID        GrantID
	Tenant    string // name of the tenant
	App       string
	Scopes    []string
	CreatedAt time.Time
	Exchanged bool // its code was exchanged
}

// TokenPrincipal is the principal of an access token, before the role is applied.
type TokenPrincipal struct {
	GrantID       GrantID
	TenantID      ids.Tenant
	Livemode      bool
	AppID         AppID
	OperatorID    OperatorID
	Name          string
	Origins       []string // origins of the pages whose scripts may use the token
	Scopes        []string
	Role          Role
	Version       int64
	ExpiresAt     time.Time
	Timezone      string
	Currency      string
	PolicyVersion int64
	Clock         *time.Time
	Revoked       bool
	TenantStatus  TenantStatus
	EraseAt       *time.Time // when the data of a closing tenant is erased
	Limits                   // of the tenant
}

// Granted returns the scopes that the token has now.
func (p TokenPrincipal) Granted() []string { return p.Role.Scopes(p.Scopes) }
