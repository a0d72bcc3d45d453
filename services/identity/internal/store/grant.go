package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
)

const grantColumns = `tenant_id, livemode, id, app_id, operator_id, scopes, redirect_uri, code_challenge, code_expires_at, exchanged_at,
	refresh_hash, previous_hash, successor, rotated_at, refresh_expires_at, ends_at, version, created_at, revoked_at`

// GrantByCode finds a grant of any tenant by the hash of its authorization code.
func GrantByCode(ctx context.Context, q pg.Q, hash []byte) (domain.Grant, error) {
	return grantByHash(ctx, q, hash, nil)
}

// GrantByFamily finds a grant of any tenant by the part that its refresh tokens share.
func GrantByFamily(ctx context.Context, q pg.Q, hash []byte) (domain.Grant, error) {
	return grantByHash(ctx, q, nil, hash)
}

func grantByHash(ctx context.Context, q pg.Q, code, family []byte) (domain.Grant, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.Grant], domain.ErrGrantNotFound,
		`select `+grantColumns+`, role, ended or publisher_ended(app_id, tenant_id) as ended from grant_by_hash($1, $2)`, code, family)
}

// GrantTenantMode finds a grant's tenant and mode by its id.
func GrantTenantMode(ctx context.Context, q pg.Q, id domain.GrantID) (TenantMode, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[TenantMode], domain.ErrGrantNotFound, `select tenant_id, livemode from grant_home($1)`, id)
}

// InsertGrant adds a grant of the caller's tenant and mode, with the hash of its code.
func InsertGrant(ctx context.Context, tx pg.Tx, g domain.Grant, code []byte) error {
	return pg.Exec(ctx, tx, "insert grant", `insert into oauth_grants (tenant_id, livemode, id, app_id, operator_id, scopes, redirect_uri, code_hash, code_challenge,
			code_expires_at, ends_at, created_at)
		values (@tenant, @live, @id, @app, @operator, @scopes, @redirect_uri, @code, @challenge, @code_expires_at, @ends_at, @created_at)`,
		pg.Args{
			"id": g.ID, "app": g.AppID, "operator": g.OperatorID, "scopes": g.Scopes, "redirect_uri": g.RedirectURI, "code": code,
			"challenge": g.CodeChallenge, "code_expires_at": g.CodeExpiresAt, "ends_at": g.EndsAt, "created_at": g.CreatedAt,
		})
}

// Exchange specifies the tokens that a code or a refresh token is exchanged for. Only hashes of the tokens are stored.
type Exchange struct {
	Grant     domain.GrantID
	Old       []byte   // hash of the exchanged refresh token; nil for the code
	Family    []byte   // family of the new refresh token; used for the code
	Refresh   []byte   // hash of the new refresh token
	Access    []byte   // hash of the new access token
	Scopes    []string // of the access token; nil for those of the grant
	Successor []byte   // sealed tokens, for an app with a leeway
	Now       time.Time
}

// exchanged returns one statement that advances the family, if it is in the state that the caller expects, and creates the access
// token. set specifies the written columns, where the required conditions.
func exchanged(set, where string) string {
	return `with moved as (
			update oauth_grants set refresh_hash = @refresh, successor = @successor, rotated_at = @now, rotations = rotations + 1,
				refresh_expires_at = least(@now::timestamptz + @idle::interval, ends_at), ` + set + `
			where tenant_id = @tenant and livemode = @live and id = @id and revoked_at is null and ends_at > @now and ` + where + `
			returning tenant_id, livemode, id, rotations)
		insert into oauth_access_tokens as k (tenant_id, livemode, grant_id, slot, hash, scopes, expires_at)
		select tenant_id, livemode, id, rotations % @places, @access, @scopes, @now::timestamptz + @lifetime::interval from moved
		on conflict (tenant_id, livemode, grant_id, slot) do update set hash = excluded.hash, scopes = excluded.scopes, expires_at = excluded.expires_at
		returning slot`
}

var (
	exchangeCode    = exchanged(`exchanged_at = @now, family_hash = @family`, `exchanged_at is null and code_expires_at > @now`)
	exchangeRefresh = exchanged(`previous_hash = refresh_hash`, `refresh_hash = @old and refresh_expires_at > @now`)
)

// Rotate exchanges the code or the refresh token of a grant of the caller's tenant and mode for new tokens. It returns ErrRotated
// if another request was first, or the grant ended in the meantime.
func Rotate(ctx context.Context, tx pg.Tx, e Exchange) error {
	args := pg.Args{
		"id": e.Grant, "refresh": e.Refresh, "access": e.Access, "scopes": e.Scopes, "successor": e.Successor, "now": e.Now,
		"idle": domain.RefreshIdle, "lifetime": domain.AccessTokenLifetime, "places": domain.TokenPlaces,
	}
	sql := exchangeRefresh
	if e.Old == nil {
		sql, args["family"] = exchangeCode, e.Family
	} else {
		args["old"] = e.Old
	}
	_, err := pg.One(ctx, tx, pgx.RowTo[int16], domain.ErrRotated, sql, args)
	return err
}

// RevokeGrant ends a grant of the caller's tenant and mode and adds its invalidation. It returns false if the grant had already
// ended.
func RevokeGrant(ctx context.Context, tx pg.Tx, id domain.GrantID, why domain.RevokeReason, at time.Time) (bool, error) {
	n, err := pg.Affect(ctx, tx, "revoke grant", `with ended as (
			update oauth_grants set revoked_at = @at, revoked_reason = @why, successor = null, version = version + 1
			where tenant_id = @tenant and livemode = @live and id = @id and revoked_at is null returning tenant_id, livemode, id)
		insert into grant_signals (tenant_id, livemode, grant_id, value) select tenant_id, livemode, id, @value from ended
		on conflict (tenant_id, livemode, grant_id) do update set value = excluded.value`,
		pg.Args{"id": id, "at": at, "why": why, "value": domain.Revoked})
	return n == 1, err
}

// EndGrants revokes the grants of a member of the caller's tenant in both modes and adds their invalidations. It returns the
// revoked grants.
func EndGrants(ctx context.Context, tx pg.Tx, member domain.OperatorID, why domain.RevokeReason, at time.Time) ([]domain.GrantID, error) {
	return pg.Many(ctx, tx, pgx.RowTo[domain.GrantID], `select end_grants($1, $2, $3)`, member, at, why)
}

const shownGrants = `select g.tenant_id, g.livemode, g.id, g.app_id, g.operator_id, g.scopes, g.redirect_uri,
		g.code_challenge, g.code_expires_at, g.exchanged_at, g.refresh_hash, g.previous_hash, null::bytea as successor, g.rotated_at,
		g.refresh_expires_at, g.ends_at, g.version, g.created_at, g.revoked_at, '' as role, false as ended, a.name as app_name, o.email as operator
	from oauth_grants g join operators o on o.id = g.operator_id, lateral app_by_client_id(g.app_id) a
	where g.tenant_id = @tenant and g.livemode = @live `

// Grant returns a grant of the caller's tenant and mode.
func Grant(ctx context.Context, q pg.Q, id domain.GrantID) (domain.ShownGrant, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.ShownGrant], domain.ErrGrantNotFound, shownGrants+`and g.id = @id`, pg.Args{"id": id})
}

// Grants returns up to limit grants of the caller's tenant and mode that were exchanged and not revoked, newest first: of one
// operator or, if operator is nil, of all.
func Grants(ctx context.Context, q pg.Q, operator *domain.OperatorID, limit int) ([]domain.ShownGrant, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.ShownGrant], shownGrants+`and g.revoked_at is null and g.exchanged_at is not null
		and (@operator::uuid is null or g.operator_id = @operator) order by g.id desc limit @limit`, pg.Args{"operator": operator, "limit": limit})
}

// GrantIDs returns the grants of an operator for an app in the caller's tenant and mode that are not revoked, oldest first. All apps that
// registered themselves count as one, because a person can register any number of them.
func GrantIDs(ctx context.Context, tx pg.Tx, operator domain.OperatorID, app domain.App) ([]domain.GrantID, error) {
	of := `and app_id = @app`
	if app.SelfRegistered() {
		of = `and exists (select from oauth_apps a where a.id = app_id and a.tenant_id is null)`
	}
	return pg.Many(ctx, tx, pgx.RowTo[domain.GrantID], `select id from oauth_grants
		where tenant_id = @tenant and livemode = @live and operator_id = @operator `+of+` and revoked_at is null order by id`,
		pg.Args{"operator": operator, "app": app.ID})
}

// GrantsOf returns the grants of an operator that are not revoked, across all tenants, newest first.
func GrantsOf(ctx context.Context, q pg.Q, operator domain.OperatorID) ([]domain.OwnGrant, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.OwnGrant],
		`select tenant_id, livemode, id, tenant, app, scopes, created_at, exchanged from grants_of($1)`, operator)
}

// InvalidateGrants adds an invalidation with the new version of the active grants of an app, at all tenants, or of a member of
// the caller's tenant.
func InvalidateGrants(ctx context.Context, tx pg.Tx, app *domain.AppID, member *domain.OperatorID) error {
	return pg.Exec(ctx, tx, "invalidate grants", `select signal_grants($1, $2)`, app, member)
}

// AccessToken returns the principal of the access token with the given SHA-256, of any tenant, including revoked and expired ones.
func AccessToken(ctx context.Context, q pg.Q, hash []byte) (domain.TokenPrincipal, error) {
	found, err := AccessTokens(ctx, q, [][]byte{hash})
	if err != nil {
		return domain.TokenPrincipal{}, err
	}
	if len(found) == 0 {
		return domain.TokenPrincipal{}, domain.ErrCredentialNotFound
	}
	return found[0].TokenPrincipal, nil
}

// FoundToken is the principal of the access token with a hash.
type FoundToken struct {
	Hash []byte
	domain.TokenPrincipal
}

// AccessTokens is AccessToken for several tokens. It returns those that exist, in any order.
func AccessTokens(ctx context.Context, q pg.Q, hashes [][]byte) ([]FoundToken, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[FoundToken], `
		select hash, grant_id, tenant_id, livemode, app_id, operator_id, name, origins, scopes, role,
			version, expires_at, timezone, currency, policy_version, clock, revoked or publisher_ended(app_id, t.tenant_id) as revoked, s.status as tenant_status, s.erase_at,
			requests_per_minute, credential_requests_per_minute, caps
		from unnest($1::bytea[]) hash cross join lateral access_token_by_hash(hash) t
			cross join lateral tenant_limits(t.tenant_id) cross join lateral tenant_status(t.tenant_id) s`, hashes)
}

// The retention of ended grants. During this time their codes and tokens are still recognized, and revoked ones can be looked up.
const (
	unusedRetention = 24 * time.Hour
	endedRetention  = 30 * 24 * time.Hour
)

// SweepGrants deletes a batch of ended grants with their access tokens, and returns their number. tx has the worker role. A grant
// that is no longer refreshed is kept for a year. GrantPlaces limits the number of such grants.
func SweepGrants(ctx context.Context, tx pg.Tx, now time.Time, limit int) (int, error) {
	n, err := pg.Affect(ctx, tx, "sweep grants", `with over as (
			(select tenant_id, livemode, id from oauth_grants where exchanged_at is null and code_expires_at < $1 limit $3)
			union (select tenant_id, livemode, id from oauth_grants where revoked_at < $2 limit $3)
			union (select tenant_id, livemode, id from oauth_grants where ends_at < $2 limit $3)),
		tokens as (delete from oauth_access_tokens k using over where (k.tenant_id, k.livemode, k.grant_id) = (over.tenant_id, over.livemode, over.id))
		delete from oauth_grants g using over where (g.tenant_id, g.livemode, g.id) = (over.tenant_id, over.livemode, over.id)`,
		now.Add(-unusedRetention), now.Add(-endedRetention), limit)
	return int(n), err
}

// SweepSuccessors removes a batch of encrypted tokens whose leeway has passed, and returns their number. tx has the worker role.
func SweepSuccessors(ctx context.Context, tx pg.Tx, now time.Time, limit int) (int, error) {
	n, err := pg.Affect(ctx, tx, "remove sealed tokens", `update oauth_grants g set successor = null from (
			select tenant_id, livemode, id from oauth_grants where successor is not null and rotated_at < $1 limit $2 for no key update skip locked) old
		where (g.tenant_id, g.livemode, g.id) = (old.tenant_id, old.livemode, old.id)`, now.Add(-domain.MaxReuseLeeway*time.Second), limit)
	return int(n), err
}
