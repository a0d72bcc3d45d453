package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
)

const operatorColumns = `id, email, name, password_hash, totp_secret, totp_step, version, created_at, updated_at, disabled_at, proven_at`

// Operator returns an operator by its id.
func Operator(ctx context.Context, q pg.Q, id domain.OperatorID) (domain.Operator, error) {
	return oneOperator(ctx, q, `select `+operatorColumns+` from operators where id = $1`, id)
}

// OperatorForUpdate locks an operator's row until the transaction ends.
func OperatorForUpdate(ctx context.Context, tx pg.Tx, id domain.OperatorID) (domain.Operator, error) {
	return oneOperator(ctx, tx, `select `+operatorColumns+` from operators where id = $1 for no key update`, id)
}

// OperatorByEmail returns an operator by its address in any case and Unicode form.
func OperatorByEmail(ctx context.Context, q pg.Q, email string) (domain.Operator, error) {
	return oneOperator(ctx, q, `select `+operatorColumns+` from operators where email_lower = $1`, domain.FoldEmail(email))
}

// InsertOperator adds an operator unless the address is in use, and returns the operator with the address. Its row is locked.
func InsertOperator(ctx context.Context, tx pg.Tx, o domain.Operator) (domain.Operator, error) {
	_, err := tx.Exec(ctx, `insert into operators (id, email, email_lower, name, created_at, updated_at) values ($1, $2, $3, $4, $5, $5)
		on conflict (email_lower) do nothing`, o.ID, o.Email, domain.FoldEmail(o.Email), o.Name, o.CreatedAt)
	if err != nil {
		return domain.Operator{}, fmt.Errorf("insert operator: %w", err)
	}
	if o, err = OperatorByEmail(ctx, tx, o.Email); err != nil {
		return domain.Operator{}, err
	}
	return OperatorForUpdate(ctx, tx, o.ID)
}

// UpdateOperator writes the changeable columns of an operator and increments its version.
func UpdateOperator(ctx context.Context, tx pg.Tx, o domain.Operator) (domain.Operator, error) {
	return oneOperator(ctx, tx, `update operators set name = $2, password_hash = $3, totp_secret = $4, totp_step = $5, disabled_at = $6,
			updated_at = $7, proven_at = $8, version = version + 1
		where id = $1 returning `+operatorColumns, o.ID, o.Name, o.PasswordHash, o.TOTPSecret, o.TOTPStep, o.DisabledAt, o.UpdatedAt, o.ProvenAt)
}

// EraseOperator replaces the address and the name of a disabled operator, and deletes their sign-in data.
func EraseOperator(ctx context.Context, tx pg.Tx, id domain.OperatorID, at time.Time) error {
	b := &pgx.Batch{}
	b.Queue(`update operators set email = $2, email_lower = $2, name = '', password_hash = null, totp_secret = null, proven_at = null, updated_at = $3, version = version + 1
		where id = $1`, id, domain.ErasedEmail(id), at)
	for _, table := range []string{"operator_links", "recovery_codes", "operator_sessions", "known_browsers", "form_drafts"} {
		b.Queue(`delete from `+table+` where operator_id = $1`, id)
	}
	return pg.Send(ctx, tx, b, "erase an operator")
}

// UseTOTPStep records that the code of a time step was used. It returns false if that step or a later one was used before.
func UseTOTPStep(ctx context.Context, tx pg.Tx, id domain.OperatorID, step int64) (bool, error) {
	n, err := pg.Affect(ctx, tx, "use a code", `update operators set totp_step = $2 where id = $1 and totp_step < $2`, id, step)
	return n == 1, err
}

// SetRecoveryCodes replaces the recovery codes of an operator.
func SetRecoveryCodes(ctx context.Context, tx pg.Tx, id domain.OperatorID, hashes [][]byte) error {
	b := &pgx.Batch{}
	b.Queue(`delete from recovery_codes where operator_id = $1`, id)
	b.Queue(`insert into recovery_codes (operator_id, hash) select $1, h from unnest($2::bytea[]) h`, id, hashes)
	return pg.Send(ctx, tx, b, "set recovery codes")
}

// UseRecoveryCode deletes a recovery code and reports whether it existed.
func UseRecoveryCode(ctx context.Context, tx pg.Tx, id domain.OperatorID, hash []byte) (bool, error) {
	n, err := pg.Affect(ctx, tx, "use a recovery code", `delete from recovery_codes where operator_id = $1 and hash = $2`, id, hash)
	return n == 1, err
}

// Member returns an operator's membership of the caller's tenant, including an ended one.
func Member(ctx context.Context, q pg.Q, id domain.OperatorID) (domain.Membership, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.Membership], domain.ErrOperatorNotFound,
		`select tenant_id, operator_id, role, version, created_at, ended_at, invited_at from memberships where tenant_id = @tenant and operator_id = @id`, pg.Args{"id": id})
}

// ActiveMember returns the membership of an operator at the caller's tenant, if the operator is not disabled and the membership has
// not ended.
func ActiveMember(ctx context.Context, q pg.Q, id domain.OperatorID) (domain.Membership, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.Membership], domain.ErrOperatorNotFound,
		`select m.tenant_id, m.operator_id, m.role, m.version, m.created_at, m.ended_at, m.invited_at from memberships m join operators o on o.id = m.operator_id
		where m.tenant_id = @tenant and m.operator_id = @id and m.ended_at is null and o.disabled_at is null`, pg.Args{"id": id})
}

// SetMember writes an operator's role at the caller's tenant, or the end of the membership, and increments the version.
func SetMember(ctx context.Context, tx pg.Tx, m domain.Membership) error {
	return pg.Exec(ctx, tx, "set membership", `insert into memberships (tenant_id, operator_id, role, created_at, ended_at, invited_at)
		values (@tenant, @operator, @role, @at, @ended, @invited)
		on conflict (tenant_id, operator_id) do update set role = excluded.role, ended_at = excluded.ended_at, invited_at = excluded.invited_at, version = memberships.version + 1`,
		pg.Args{"operator": m.OperatorID, "role": m.Role, "at": m.CreatedAt, "ended": m.EndedAt, "invited": m.InvitedAt})
}

// CountOwners counts the owners of the caller's tenant who can sign in or are invited. The tenant's row must be locked.
func CountOwners(ctx context.Context, tx pg.Tx) (int, error) {
	return pg.One(ctx, tx, pgx.RowTo[int], pgx.ErrNoRows, `select count(*) from memberships m join operators o on o.id = m.operator_id
		where m.tenant_id = @tenant and m.role = 'owner' and m.ended_at is null and o.disabled_at is null`, pg.Args{})
}

// OwnerCanSignIn reports whether an owner of the caller's tenant can sign in. The tenant's row must be locked.
func OwnerCanSignIn(ctx context.Context, tx pg.Tx) (bool, error) {
	return pg.One(ctx, tx, pgx.RowTo[bool], pgx.ErrNoRows, `select exists (select from memberships m join operators o on o.id = m.operator_id
		where m.tenant_id = @tenant and m.role = 'owner' and m.ended_at is null and o.disabled_at is null and o.password_hash is not null)`, pg.Args{})
}

// CountMembers counts the operators of the caller's tenant whose membership has not ended, and those who are invited. The tenant's
// row must be locked.
func CountMembers(ctx context.Context, tx pg.Tx) (int, error) {
	return pg.One(ctx, tx, pgx.RowTo[int], pgx.ErrNoRows, `select count(*) from memberships where tenant_id = @tenant and (ended_at is null or ended_at = invited_at)`, pg.Args{})
}

const presentMembers = `select o.id, o.email, o.name, m.role, o.password_hash is null or m.ended_at is not null as invited,
		o.totp_secret is not null and m.ended_at is null as factor, m.created_at, o.disabled_at
	from memberships m join operators o on o.id = m.operator_id
	where m.tenant_id = @tenant and (m.ended_at is null or m.ended_at = m.invited_at)`

// Members returns the operators of the caller's tenant whose membership has not ended, and those who are invited, by address.
func Members(ctx context.Context, q pg.Q) ([]domain.Member, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.Member], presentMembers+` order by o.email_lower`, pg.Args{})
}

// OwnerPage returns at most limit owners among Members after one, by ID. The zero ID is before all.
func OwnerPage(ctx context.Context, q pg.Q, after domain.OperatorID, limit int) ([]domain.Member, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.Member], presentMembers+` and m.role = 'owner'
		and (@after::uuid is null or m.operator_id > @after) order by m.operator_id limit @limit`, pg.Args{"after": after, "limit": limit})
}

// PresentMember returns one of Members, or domain.ErrOperatorNotFound.
func PresentMember(ctx context.Context, q pg.Q, id domain.OperatorID) (domain.Member, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.Member], domain.ErrOperatorNotFound, presentMembers+` and m.operator_id = @id`, pg.Args{"id": id})
}

// MembershipsOf returns the tenants that an operator is currently a member of, by name.
func MembershipsOf(ctx context.Context, q pg.Q, id domain.OperatorID) ([]domain.MemberTenant, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.MemberTenant], `select tenant_id, operator_id, role, version, created_at, ended_at,
		null::timestamptz as invited_at, slug, tenant_name, s.status from memberships_of($1) cross join lateral tenant_status(tenant_id) s order by tenant_name, slug`, id)
}

// Places returns every tenant that an operator is, was or is invited to be a member of.
func Places(ctx context.Context, q pg.Q, id domain.OperatorID) ([]domain.TenantMembership, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.TenantMembership], `select tenant_id, ended_at, invited_at from memberships_ever($1)`, id)
}

// BeginMemberships begins the memberships of an operator that wait for the verification of their address.
func BeginMemberships(ctx context.Context, tx pg.Tx, id domain.OperatorID) error {
	return pg.Exec(ctx, tx, "begin memberships", `select begin_memberships($1)`, id)
}

// NewLink is a one-time link to create.
type NewLink struct {
	OperatorID      domain.OperatorID
	TenantID        *ids.Tenant // the inviting tenant; nil for a link that resets the password
	Hash            []byte
	Purpose         domain.LinkPurpose
	VerifiesAddress bool          // using it verifies the address
	Lifetime        time.Duration // 0: domain.LinkLifetime
	Now             time.Time
}

// SetLink creates a one-time link. It replaces the tenant's previous link for the operator, and deletes expired links.
func SetLink(ctx context.Context, tx pg.Tx, l NewLink) error {
	b := &pgx.Batch{}
	b.Queue(`delete from operator_links where operator_id = $1 and (tenant_id is not distinct from $2 or expires_at <= $3)`, l.OperatorID, l.TenantID, l.Now)
	b.Queue(`insert into operator_links (hash, operator_id, tenant_id, purpose, proves, expires_at) values ($1, $2, $3, $4, $5, $6)`,
		l.Hash, l.OperatorID, l.TenantID, l.Purpose, l.VerifiesAddress, l.Now.Add(cmp.Or(l.Lifetime, domain.LinkLifetime)))
	return pg.Send(ctx, tx, b, "make a link")
}

// DeleteLinks deletes the links of an operator that the tenant created or, if tenant is nil, those of every tenant. It keeps links
// that verify the address unless proving is set.
func DeleteLinks(ctx context.Context, tx pg.Tx, id domain.OperatorID, tenant *ids.Tenant, proving bool) error {
	return pg.Exec(ctx, tx, "delete links", `delete from operator_links where operator_id = $1 and ($2::uuid is null or tenant_id = $2) and ($3 or not proves)`, id, tenant, proving)
}

// DeleteBrowsers deletes the known browsers of an operator.
func DeleteBrowsers(ctx context.Context, tx pg.Tx, id domain.OperatorID) error {
	return pg.Exec(ctx, tx, "delete browsers", `delete from known_browsers where operator_id = $1`, id)
}

// Link is a one-time link.
type Link struct {
	OperatorID      domain.OperatorID
	Purpose         domain.LinkPurpose
	VerifiesAddress bool `db:"proves"`
}

// LinkAt returns the link with the given hash if it is still valid.
func LinkAt(ctx context.Context, q pg.Q, hash []byte, now time.Time) (Link, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[Link], domain.ErrLink,
		`select operator_id, purpose, proves from operator_links where hash = $1 and expires_at > $2`, hash, now)
}

// UseLink deletes the link with the given hash and returns it if it was still valid.
func UseLink(ctx context.Context, tx pg.Tx, hash []byte, now time.Time) (Link, error) {
	return pg.One(ctx, tx, pgx.RowToStructByName[Link], domain.ErrLink,
		`delete from operator_links where hash = $1 and expires_at > $2 returning operator_id, purpose, proves`, hash, now)
}

func oneOperator(ctx context.Context, q pg.Q, sql string, args ...any) (domain.Operator, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.Operator], domain.ErrOperatorNotFound, sql, args...)
}
