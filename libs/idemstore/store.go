// Package idemstore makes a POST or PATCH take effect once per Idempotency-Key: the record of the key and the stored
// response are rows of the same transaction as the effect.
package idemstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/pg"
)

// Store runs writes. pg.Migrate creates its table idempotency_keys.
type Store struct {
	DB *pg.DB
	// Box encrypts responses that contain a secret. It may be nil in a service without such responses.
	Box *crypt.Box
	// Now returns real time, in test mode too.
	Now func() time.Time
}

// Run runs a verb once per key. The record of the key, the writes of the verb, and the response that render creates from its result
// are committed together. A request whose key is still in use waits for the first one, up to the lock time-out. The verb runs
// again when the database reports a deadlock, so it must touch nothing but tx.
func Run[T any](
	ctx context.Context, s *Store, verb func(ctx context.Context, tx pg.Tx) (T, error), render func(ctx context.Context, v T) (idem.Response, error),
) (idem.Response, error) {
	req, keyed := idem.RequestFrom(ctx)
	if !keyed {
		return runWithoutKey(ctx, s, verb, render)
	}
	return runWithKey(ctx, s, req, verb, render)
}

func runWithoutKey[T any](
	ctx context.Context, s *Store, verb func(ctx context.Context, tx pg.Tx) (T, error), render func(ctx context.Context, v T) (idem.Response, error),
) (out idem.Response, err error) {
	err = s.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		v, err := verb(ctx, tx)
		if err == nil {
			out, err = render(ctx, v)
		}
		return err
	})
	return out, err
}

// errReplayed ends the transaction of a request that has a stored response.
var errReplayed = errors.New("the request has a stored response")

func runWithKey[T any](
	ctx context.Context, s *Store, req idem.Request, verb func(ctx context.Context, tx pg.Tx) (T, error),
	render func(ctx context.Context, v T) (idem.Response, error),
) (out idem.Response, err error) {
	err = s.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		key := s.lock(ctx, tx, req)
		v, err := verb(ctx, tx)
		if keyErr := key.err(ctx, tx); keyErr != nil { // takes precedence over an error of the verb
			return keyErr
		}
		if key.prior != nil {
			out = *key.prior
			return errReplayed
		}
		if err != nil {
			return err
		}
		if out, err = render(ctx, v); err != nil {
			return err
		}
		out.Secret = req.Secret
		out.ExpiresAt = s.Now().Add(idem.Lifetime)
		return s.save(ctx, tx, req, out, key.recorded)
	})
	if errors.Is(err, errReplayed) {
		return out, nil
	}
	return out, err
}

// lockedKey is a key that a transaction locks with its first statement.
type lockedKey struct {
	checked  bool
	failure  error
	recorded bool           // the key has a record, without a response or expired
	prior    *idem.Response // stored response of the same request
}

// LockKey locks a key until the transaction ends: its tenant, mode, credential, and the key.
const LockKey = `select pg_advisory_xact_lock(hashtextextended('idempotency key' || $1::uuid::text || $2::boolean::text || $3 || ' ' || $4, 0))`

// lock locks the key and reads its record in the round trip of the transaction's next statement. An advisory lock makes requests
// with the same key wait for each other without a record, so that the record is written once, with the response.
func (s *Store) lock(ctx context.Context, tx pg.Tx, req idem.Request) *lockedKey {
	c := caller.FromContext(ctx)
	key := &lockedKey{}
	b := &pgx.Batch{}
	b.Queue(LockKey, c.Tenant, c.Live(), c.Credential, req.Key)
	b.Queue(`
		select `+recordColumns+` from idempotency_keys
		where tenant_id = $1 and livemode = $2 and credential_id = $3 and key = $4 for update`,
		c.Tenant, c.Live(), c.Credential, req.Key)
	tx.Guard(b, func(res pgx.BatchResults) error {
		key.checked = true
		key.failure = s.check(ctx, res, req, key)
		if key.failure == nil && key.prior != nil {
			return errReplayed
		}
		return key.failure
	})
	return key
}

func locked(res pgx.BatchResults) error {
	_, err := res.Exec()
	switch {
	case pg.Code(err) == "55P03":
		return apperr.ErrInProgress.WithCause(err)
	case err != nil:
		return fmt.Errorf("lock idempotency key: %w", err)
	}
	return nil
}

func (s *Store) check(ctx context.Context, res pgx.BatchResults, req idem.Request, key *lockedKey) error {
	if err := locked(res); err != nil {
		return err
	}
	var rec *record
	rows, err := res.Query()
	if err == nil {
		err = pg.FirstInto(&rec, pgx.RowToStructByName[record])(rows)
	}
	switch {
	case pg.Code(err) == "55P03":
		return apperr.ErrInProgress.WithCause(err)
	case err != nil:
		return fmt.Errorf("read idempotency key: %w", err)
	case rec == nil:
		return nil
	}
	key.recorded = true
	if !rec.ExpiresAt.After(s.Now()) {
		return nil
	}
	key.prior, err = s.replay(ctx, req, *rec)
	return err
}

// err returns the error of the lock. It takes the lock if the transaction has not sent a statement.
func (k *lockedKey) err(ctx context.Context, tx pg.Tx) error {
	if !k.checked {
		if err := tx.SendBatch(ctx, &pgx.Batch{}).Close(); err != nil && !k.checked {
			return err
		}
	}
	return k.failure
}

// Check finds the stored response for a request that failed before its transaction: a finished record of the same key is a
// replay or a mismatch. Without a response it returns nil, nil.
func (s *Store) Check(ctx context.Context) (*idem.Response, error) {
	req, ok := idem.RequestFrom(ctx)
	if !ok {
		return nil, nil
	}
	rec, err := s.record(ctx, s.DB.Read(ctx), req)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s.replay(ctx, req, rec)
}

// Claim reserves the key for the request, effective when tx commits. An operation of several transactions calls Claim at the start
// of the first one, and Run in the last one stores the response. operation is the operation that an earlier attempt of the request
// began but did not complete, or "". responded reports whether an earlier attempt has a response. Without a key, Claim does
// nothing.
func (s *Store) Claim(ctx context.Context, tx pg.Tx) (operation string, responded bool, err error) {
	req, keyed := idem.RequestFrom(ctx)
	if !keyed {
		return "", false, nil
	}
	prior, operation, err := s.claim(ctx, tx, req)
	return operation, prior != nil, err
}

// Begin stores the operation in the record of the request's key, which tx claimed. A repetition of the request resumes this
// operation. Without a key it does nothing.
func (s *Store) Begin(ctx context.Context, tx pg.Tx, operation string) {
	req, keyed := idem.RequestFrom(ctx)
	if !keyed {
		return
	}
	c := caller.FromContext(ctx)
	tx.QueueAtCommit(`
		update idempotency_keys set resource_id = $5
		where tenant_id = $1 and livemode = $2 and credential_id = $3 and key = $4 and status is null`,
		c.Tenant, c.Live(), c.Credential, req.Key, operation)
}

// Hold locks the key of an operation that Begin stored, for any caller, and extends it by another Lifetime. The key of an operation
// whose outcome is unknown therefore does not expire. A transaction calls it before it locks the operation's own rows.
func (s *Store) Hold(ctx context.Context, tx pg.Tx, operation string) error {
	c := caller.FromContext(ctx)
	_, err := tx.Exec(ctx, `
		update idempotency_keys set expires_at = $4
		where tenant_id = $1 and livemode = $2 and resource_id = $3 and status is null`,
		c.Tenant, c.Live(), operation, s.Now().Add(idem.Lifetime))
	if err != nil {
		return fmt.Errorf("hold idempotency key: %w", err)
	}
	return nil
}

// Free deletes the key of an operation that ended without an effect. Any request can then use it.
func (s *Store) Free(ctx context.Context, tx pg.Tx, operation string) error {
	c := caller.FromContext(ctx)
	_, err := tx.Exec(ctx, `
		delete from idempotency_keys where tenant_id = $1 and livemode = $2 and resource_id = $3 and status is null`,
		c.Tenant, c.Live(), operation)
	if err != nil {
		return fmt.Errorf("free idempotency key: %w", err)
	}
	return nil
}

// Release deletes the request's key, as Free does, for an operation that is found without it.
func (s *Store) Release(ctx context.Context, tx pg.Tx) error {
	req, keyed := idem.RequestFrom(ctx)
	if !keyed {
		return nil
	}
	c := caller.FromContext(ctx)
	_, err := tx.Exec(ctx, `
		delete from idempotency_keys
		where tenant_id = $1 and livemode = $2 and credential_id = $3 and key = $4 and fingerprint = $5 and status is null`,
		c.Tenant, c.Live(), c.Credential, req.Key, req.Fingerprint[:])
	if err != nil {
		return fmt.Errorf("release idempotency key: %w", err)
	}
	return nil
}

// claim inserts the key's row, or takes over an expired row or one that the same request claimed before. It returns the operation
// of that row. It waits while another transaction holds the key.
func (s *Store) claim(ctx context.Context, tx pg.Tx, req idem.Request) (prior *idem.Response, operation string, err error) {
	c := caller.FromContext(ctx)
	now := s.Now()
	b := &pgx.Batch{}
	b.Queue(LockKey, c.Tenant, c.Live(), c.Credential, req.Key)
	tx.Guard(b, locked)
	rows, err := tx.Query(ctx, `
		insert into idempotency_keys as k (tenant_id, livemode, credential_id, key, fingerprint, expires_at)
		values ($1, $2, $3, $4, $5, $6)
		on conflict (tenant_id, livemode, credential_id, key) do update
		set fingerprint = excluded.fingerprint, expires_at = excluded.expires_at,
		    resource_id = case when k.expires_at <= $7 then '' else k.resource_id end,
		    status = null, body = null, location = '', etag = '', secret = false
		where k.expires_at <= $7 or (k.status is null and k.fingerprint = excluded.fingerprint)
		returning k.resource_id`,
		c.Tenant, c.Live(), c.Credential, req.Key, req.Fingerprint[:], now.Add(idem.Lifetime), now)
	if err == nil {
		operation, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[string])
	}
	switch {
	case errors.Is(err, apperr.ErrInProgress):
		return nil, "", err
	case err == nil:
		return nil, operation, nil
	case !errors.Is(err, pgx.ErrNoRows):
		return nil, "", fmt.Errorf("claim idempotency key: %w", err)
	}
	rec, err := s.record(ctx, tx, req)
	if err != nil {
		return nil, "", fmt.Errorf("read idempotency key: %w", err)
	}
	prior, err = s.replay(ctx, req, rec)
	return prior, "", err
}

type record struct {
	Fingerprint []byte
	Status      *int
	Location    string
	ETag        string `db:"etag"`
	Secret      bool
	Body        []byte
	ExpiresAt   time.Time
}

const recordColumns = `fingerprint, status, location, etag, secret, body, expires_at`

func (s *Store) record(ctx context.Context, q pg.Q, req idem.Request) (record, error) {
	c := caller.FromContext(ctx)
	rows, err := q.Query(ctx, `
		select `+recordColumns+` from idempotency_keys
		where tenant_id = $1 and livemode = $2 and credential_id = $3 and key = $4 and expires_at > $5`,
		c.Tenant, c.Live(), c.Credential, req.Key, s.Now())
	if err != nil {
		return record{}, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[record])
}

func (s *Store) replay(ctx context.Context, req idem.Request, rec record) (*idem.Response, error) {
	if [32]byte(rec.Fingerprint) != req.Fingerprint {
		return nil, apperr.ErrMismatch
	}
	if rec.Status == nil { // claimed by the same request, which has no response yet
		return nil, nil
	}
	body := rec.Body
	if rec.Secret {
		plain, err := s.Box.Open(body, aad(ctx, req.Key))
		if err != nil {
			return nil, fmt.Errorf("open stored response: %w", err)
		}
		body = plain
	}
	return &idem.Response{
		Status: *rec.Status, Location: rec.Location, ETag: rec.ETag, Body: body,
		Replayed: true, ExpiresAt: rec.ExpiresAt, Secret: rec.Secret,
	}, nil
}

// save writes the record at commit. recorded reports that the transaction has locked an earlier one.
func (s *Store) save(ctx context.Context, tx pg.Tx, req idem.Request, r idem.Response, recorded bool) error {
	body := r.Body
	if r.Secret {
		sealed, err := s.Box.Seal(body, aad(ctx, req.Key))
		if err != nil {
			return fmt.Errorf("seal response: %w", err)
		}
		body = sealed
	}
	c := caller.FromContext(ctx)
	write := `
		insert into idempotency_keys (tenant_id, livemode, credential_id, key, fingerprint, expires_at, status, location, etag, resource_id, body, secret)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`
	if recorded {
		write = `
			update idempotency_keys set fingerprint = $5, expires_at = $6, status = $7, location = $8, etag = $9, resource_id = $10, body = $11, secret = $12
			where tenant_id = $1 and livemode = $2 and credential_id = $3 and key = $4`
	}
	tx.QueueAtCommit(write, c.Tenant, c.Live(), c.Credential, req.Key, req.Fingerprint[:], r.ExpiresAt, r.Status, r.Location, r.ETag, r.Resource, body, r.Secret)
	return nil
}

// aad returns the data that binds a sealed response to its row.
func aad(ctx context.Context, key string) []byte { return boundTo(caller.FromContext(ctx), key) }

func boundTo(c caller.Caller, key string) []byte {
	return fmt.Appendf(nil, "idempotency_keys\x00%s\x00%s\x00%s\x00%s", c.Tenant, c.Mode, c.Credential, key)
}

// Sweep deletes expired records. db has the worker role.
func Sweep(ctx context.Context, db *pg.DB) error {
	return pg.SweepExpired(ctx, db, "idempotency_keys")
}
