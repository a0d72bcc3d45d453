package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
)

// StoredSession is the content of a session, and when and from where it was last written.
type StoredSession struct {
	Data    []byte
	SeenAt  time.Time
	Address string
}

// SessionData returns the session with the given hash, or nil if there is none.
func SessionData(ctx context.Context, q pg.Q, hash []byte, now time.Time) (*StoredSession, error) {
	found, err := pg.Many(ctx, q, pgx.RowToStructByName[StoredSession],
		`select data, seen_at, address from operator_sessions where hash = $1 and expires_at > $2`, hash, now)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// PutSession writes a session. A session that was ended in the meantime is not restored: a hash that existed before, identified
// by its id, is only updated.
func PutSession(ctx context.Context, tx pg.Tx, hash []byte, s domain.Session, data []byte) error {
	return pg.Exec(ctx, tx, "write session", `insert into operator_sessions (hash, id, operator_id, data, address, agent, created_at, seen_at, expires_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		on conflict (hash) do update set operator_id = excluded.operator_id, data = excluded.data, address = excluded.address, agent = excluded.agent,
			seen_at = excluded.seen_at, expires_at = excluded.expires_at`,
		hash, s.ID, s.OperatorID, data, s.Address, s.Agent, s.CreatedAt, s.SeenAt, s.ExpiresAt)
}

// TouchSession writes the data and the expiration of a session that still exists.
func TouchSession(ctx context.Context, tx pg.Tx, hash []byte, s domain.Session, data []byte) error {
	return pg.Exec(ctx, tx, "write session", `update operator_sessions set operator_id = $2, data = $3, address = $4, agent = $5, seen_at = $6, expires_at = $7 where hash = $1`,
		hash, s.OperatorID, data, s.Address, s.Agent, s.SeenAt, s.ExpiresAt)
}

// DeleteSession ends the session with the given hash.
func DeleteSession(ctx context.Context, tx pg.Tx, hash []byte) error {
	return pg.Exec(ctx, tx, "end session", `delete from operator_sessions where hash = $1`, hash)
}

// LimitSessions ends the oldest sessions of an operator, except the one with the given hash, if there are too many. The operator's
// row must be locked.
func LimitSessions(ctx context.Context, tx pg.Tx, id domain.OperatorID, hash []byte) error {
	return pg.Exec(ctx, tx, "limit sessions", `delete from operator_sessions where operator_id = $1 and hash <> $2 and hash not in (
		select hash from operator_sessions where operator_id = $1 and hash <> $2 order by created_at desc, id desc limit $3)`, id, hash, domain.MaxSessions-1)
}

// Sessions returns an operator's sessions, most recently used first.
func Sessions(ctx context.Context, q pg.Q, id domain.OperatorID, now time.Time) ([]domain.Session, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.Session], `select id, operator_id, 0::bigint as version, address, agent, created_at, seen_at, expires_at
		from operator_sessions where operator_id = $1 and expires_at > $2 order by seen_at desc`, id, now)
}

// EndSessions ends one session of an operator or, for the zero id, all of them except the one with the given hash, which can be
// nil.
func EndSessions(ctx context.Context, tx pg.Tx, id domain.OperatorID, one domain.SessionID, but []byte) (int, error) {
	n, err := pg.Affect(ctx, tx, "end sessions", `delete from operator_sessions where operator_id = $1 and ($2::uuid is null or id = $2) and hash is distinct from $3`,
		id, nullID(one), but)
	return int(n), err
}

// nullID returns nil for the zero id.
func nullID(id domain.SessionID) *domain.SessionID {
	if id == (domain.SessionID{}) {
		return nil
	}
	return &id
}

// SignedInBy returns the session with the given hash, with a row for each tenant of its operator. It returns no rows if the session
// is not signed in.
func SignedInBy(ctx context.Context, q pg.Q, hash []byte, now time.Time) ([]domain.SessionRow, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.SessionRow], `select seen_at, created_at, id, operator, email, name, factor,
		tenant, slug, tenant_name, role, timezone, currency, country, version, clock, caps, t.status, t.reason, t.erase_at
		from signed_in_by($1, $2) with ordinality s left join lateral tenant_limits(s.tenant) on true
			left join lateral tenant_status(s.tenant) t on true order by ordinality`, hash, now)
}

// ExtendSession records that a session is in use and extends it. A session that was ended in the meantime is not restored.
func ExtendSession(ctx context.Context, tx pg.Tx, hash []byte, now, expires time.Time) error {
	return pg.Exec(ctx, tx, "extend session", `update operator_sessions set seen_at = $2, expires_at = greatest(expires_at, $3) where hash = $1 and expires_at > $2`, hash, now, expires)
}
