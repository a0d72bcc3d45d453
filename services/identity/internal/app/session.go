package app

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"time"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// SessionData returns the session with the given hash, or nil if there is none or it has expired.
func (a *App) SessionData(ctx context.Context, hash []byte) (*store.StoredSession, error) {
	return store.SessionData(ctx, a.DB.Read(ctx), hash, a.now())
}

// PutSession writes a session. An existing session is only updated. A new session is not written if its operator was disabled, or
// if their password or second factor has changed since the password was entered, because an action that ends all sessions also
// ends those that are starting.
func (a *App) PutSession(ctx context.Context, hash []byte, s domain.Session, data []byte, there bool) error {
	return a.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		switch {
		case there:
			return store.TouchSession(ctx, tx, hash, s, data)
		case s.OperatorID == nil:
			return store.PutSession(ctx, tx, hash, s, data)
		}
		o, err := store.OperatorForUpdate(ctx, tx, *s.OperatorID)
		if err != nil || o.DisabledAt != nil || o.Version != s.Version {
			return err
		}
		if err := store.PutSession(ctx, tx, hash, s, data); err != nil {
			return err
		}
		return store.LimitSessions(ctx, tx, o.ID, hash)
	})
}

// EndSession ends the session with the given hash.
func (a *App) EndSession(ctx context.Context, hash []byte) error {
	return a.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error { return store.DeleteSession(ctx, tx, hash) })
}

// Sessions returns an operator's sessions, most recently used first.
func (a *App) Sessions(ctx context.Context, id domain.OperatorID) ([]domain.Session, error) {
	return store.Sessions(ctx, a.DB.Read(ctx), id, a.now())
}

// EndSessions ends one session of an operator or, for the zero id, all except the one with the given hash. It returns the number of
// ended sessions.
func (a *App) EndSessions(ctx context.Context, id domain.OperatorID, one domain.SessionID, but []byte) (n int, err error) {
	err = a.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		n, err = store.EndSessions(ctx, tx, id, one, but)
		return err
	})
	return n, err
}

// recordEvery is how often the use of a session is recorded.
const recordEvery = time.Minute

// SessionOf returns the session with the given hash, with a row for each tenant of its operator. It records the use unless watch is
// true. The error is ErrSessionNotFound if the session is not signed in.
func (a *App) SessionOf(ctx context.Context, hash []byte, watch bool) ([]domain.SessionRow, error) {
	now := a.now()
	rows, err := store.SignedInBy(ctx, a.DB.Read(ctx), hash, now)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, domain.ErrSessionNotFound
	}
	if s := rows[0]; !watch && now.Sub(s.SeenAt) >= recordEvery {
		expires := now.Add(domain.SessionIdle)
		if end := s.CreatedAt.Add(domain.SessionLifetime); end.Before(expires) {
			expires = end
		}
		err = a.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error { return store.ExtendSession(ctx, tx, hash, now, expires) })
	}
	return rows, err
}

// FormProof returns the proof that a form was on one of the operator's pages, or "" if it cannot be encrypted.
func (a *App) FormProof(id domain.OperatorID) string {
	sealed, err := a.Box.Seal(domain.FormProof(id, a.now()), domain.ProofBinding())
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(sealed)
}

// SaveDraft stores an operator's input in the form with the given key. The proof identifies the operator. It returns
// domain.ErrDraftNotFound for an invalid or expired proof.
func (a *App) SaveDraft(ctx context.Context, proof, key string, d domain.Draft) error {
	sealed, err := base64.RawURLEncoding.DecodeString(proof)
	if err != nil {
		return domain.ErrDraftNotFound
	}
	plain, err := a.Box.Open(sealed, domain.ProofBinding())
	if err != nil {
		return domain.ErrDraftNotFound
	}
	id, ok := domain.ProvenOperator(plain, a.now())
	if !ok {
		return domain.ErrDraftNotFound
	}
	raw, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if len(raw) > domain.MaxDraft {
		return domain.ErrDraftTooLarge
	}
	if sealed, err = a.Box.Seal(raw, domain.DraftBinding(id, key)); err != nil {
		return err
	}
	return a.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		o, err := store.OperatorForUpdate(ctx, tx, id) // so that drafts of one operator are counted one after the other
		if err != nil {
			return err
		}
		if o.DisabledAt != nil {
			return domain.ErrDraftNotFound
		}
		return store.PutDraft(ctx, tx, id, key, sealed, a.now())
	})
}

// Draft returns an operator's input in the form with the given key, or domain.ErrDraftNotFound.
func (a *App) Draft(ctx context.Context, id domain.OperatorID, key string) (d domain.Draft, err error) {
	sealed, err := store.Draft(ctx, a.DB.Read(ctx), id, key, a.now())
	if err != nil {
		return d, err
	}
	raw, err := a.Box.Open(sealed, domain.DraftBinding(id, key))
	if err != nil { // encrypted with a key that no longer exists
		return d, domain.ErrDraftNotFound.WithCause(err)
	}
	return d, json.Unmarshal(raw, &d)
}

const (
	oauthSweep      = time.Minute
	successorSweep  = 5 * time.Second
	oauthSweepBatch = 500
)

// SweepOAuth deletes expired sessions, counts, and grants, and encrypted tokens whose leeway has passed, until ctx ends.
func (a *App) SweepOAuth(ctx context.Context) error {
	tick := time.NewTicker(successorSweep)
	defer tick.Stop()
	var swept time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		work := []func(context.Context, pg.Tx, time.Time, int) (int, error){store.SweepSuccessors}
		if a.now().Sub(swept) >= oauthSweep {
			swept = a.now()
			work = append(work, store.SweepSignIns, store.SweepGrants, store.SweepRegisteredApps)
		}
		for _, sweep := range work {
			if err := a.drain(ctx, sweep); err != nil && ctx.Err() == nil {
				a.Log.WarnContext(ctx, "expired sign-ins, grants and apps not deleted; trying again", slog.Any("error", err))
			}
		}
	}
}

// drain repeats a sweep until a batch is not full.
func (a *App) drain(ctx context.Context, sweep func(context.Context, pg.Tx, time.Time, int) (int, error)) error {
	for {
		n := 0
		err := a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
			n, err = sweep(ctx, tx, a.now(), oauthSweepBatch)
			return err
		})
		if err != nil || n < oauthSweepBatch {
			return err
		}
	}
}
