package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// linkDigits is the number of random digits in a one-time link: 190 bits.
const linkDigits = 32

const (
	endingLease  = 60 * time.Second // longer than the duration of an ending
	endingsBatch = 100
)

// DisableOperator ends the sessions of an operator and every grant that they gave, at all tenants. The operator can no longer
// sign in.
func (a *App) DisableOperator(ctx context.Context, by domain.Origin, email string) (o domain.Operator, published bool, err error) {
	return a.disable(ctx, by, email, false)
}

// EraseOperator disables an operator, ends their memberships, and deletes their personal data. The id remains in grants and audit
// logs. A tenant can lose its last owner this way and must then invite another one.
func (a *App) EraseOperator(ctx context.Context, by domain.Origin, email string) (o domain.Operator, published bool, err error) {
	return a.disable(ctx, by, email, true)
}

// disable disables an operator. It records what must end for them and ends it. After a crash in between, FinishEndings completes
// it.
func (a *App) disable(ctx context.Context, by domain.Origin, email string, erase bool) (o domain.Operator, published bool, err error) {
	o, err = store.OperatorByEmail(ctx, a.DB.Read(ctx), email)
	if err != nil {
		return domain.Operator{}, false, err
	}
	var e domain.Ending
	if o, err = a.writeOperator(ctx, o.ID, func(tx pg.Tx, o *domain.Operator) error {
		if o.DisabledAt == nil {
			o.DisabledAt = new(a.now())
		}
		if _, err := store.EndSessions(ctx, tx, o.ID, domain.SessionID{}, nil); err != nil {
			return err
		}
		e, err = a.noteEnding(ctx, tx, by, o.ID, domain.Disabled, erase)
		return err
	}); err != nil {
		return domain.Operator{}, false, err
	}
	published, err = a.end(ctx, e)
	return o, published, err
}

// noteEnding records what must end for an operator. A worker ends it if the process does not do so within the lease.
func (a *App) noteEnding(ctx context.Context, tx pg.Tx, by domain.Origin, id domain.OperatorID, why domain.RevokeReason, erase bool) (domain.Ending, error) {
	now := a.now()
	return store.PutEnding(ctx, tx, domain.Ending{OperatorID: id, Reason: why, Erase: erase, Actor: by.Actor, Source: by.Source, NotedAt: now}, now.Add(endingLease))
}

// end performs a recorded ending of an operator. Each step can be repeated. The audit log then contains its record twice.
func (a *App) end(ctx context.Context, e domain.Ending) (published bool, err error) {
	published, err = a.revokeAll(ctx, e)
	if err == nil && e.Reason == domain.Disabled {
		err = a.auditEverywhere(ctx, e.By(), domain.OperatorDisabled, e.OperatorID)
	}
	if err == nil && e.Erase {
		var ok bool
		ok, err = a.erasePerson(ctx, e)
		published = published && ok
	}
	if err != nil {
		return false, err
	}
	return published, a.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error { return store.DeleteEnding(ctx, tx, e) })
}

// erasePerson ends the memberships of an operator and deletes their personal data.
func (a *App) erasePerson(ctx context.Context, e domain.Ending) (published bool, err error) {
	o, err := store.Operator(ctx, a.DB.Read(ctx), e.OperatorID)
	if err != nil {
		return false, err
	}
	all, err := store.Places(ctx, a.DB.Read(ctx), o.ID)
	if err != nil {
		return false, err
	}
	published = true
	for _, m := range all {
		if !m.Open() {
			continue
		}
		ok, err := a.RemoveOperator(ctx, e.By(), MemberRef{Tenant: m.TenantID, Email: o.Email})
		if err != nil {
			return false, err
		}
		published = published && ok
	}
	return published, a.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error { return store.EraseOperator(ctx, tx, o.ID, a.now()) })
}

// FinishEndings completes the endings of crashed processes: those of one operator or, if operator is nil, all due ones. A failed
// ending does not delay others and is retried later.
func (a *App) FinishEndings(ctx context.Context, operator *domain.OperatorID) error {
	for {
		var list []domain.Ending
		now := a.now()
		err := a.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
			list, err = store.TakeEndings(ctx, tx, operator, now, now.Add(endingLease), endingsBatch)
			return err
		})
		for _, e := range list {
			if _, failed := a.end(ctx, e); failed != nil {
				err = errors.Join(err, fmt.Errorf("operator %s: %w", e.OperatorID, failed))
			}
		}
		if err != nil || len(list) < endingsBatch {
			return err
		}
	}
}

// EnableOperator lets a disabled operator sign in again. The grants stay revoked.
func (a *App) EnableOperator(ctx context.Context, by domain.Origin, email string) (domain.Operator, error) {
	o, err := store.OperatorByEmail(ctx, a.DB.Read(ctx), email)
	if err != nil {
		return domain.Operator{}, err
	}
	if err := a.FinishEndings(ctx, &o.ID); err != nil { // otherwise grants that are not revoked yet would work again
		return domain.Operator{}, err
	}
	if o, err = a.writeOperator(ctx, o.ID, func(_ pg.Tx, o *domain.Operator) error {
		o.DisabledAt = nil
		return nil
	}); err != nil {
		return domain.Operator{}, err
	}
	return o, a.auditEverywhere(ctx, by, domain.OperatorEnabled, o.ID)
}

// ResetOperator creates the token of a link with which an operator sets a new password. The old password works until then. With
// factor, it also removes the second factor, for an operator who lost it.
func (a *App) ResetOperator(ctx context.Context, by domain.Origin, email string, factor bool) (o domain.Operator, token string, err error) {
	if o, err = store.OperatorByEmail(ctx, a.DB.Read(ctx), email); err != nil {
		return domain.Operator{}, "", err
	}
	token = apikey.Random(linkDigits)
	if o, err = a.writeOperator(ctx, o.ID, func(tx pg.Tx, o *domain.Operator) error {
		if factor {
			o.TOTPSecret = nil
			if err := store.SetRecoveryCodes(ctx, tx, o.ID, nil); err != nil {
				return err
			}
		}
		return store.SetLink(ctx, tx, store.NewLink{OperatorID: o.ID, Hash: domain.SecretHash(token), Purpose: domain.Reset, VerifiesAddress: true, Now: a.now()})
	}); err != nil {
		return domain.Operator{}, "", err
	}
	return o, token, a.auditEverywhere(ctx, by, domain.OperatorReset, o.ID)
}

// LinkOperator returns the operator of a one-time link, without using it.
func (a *App) LinkOperator(ctx context.Context, token string) (domain.Operator, error) {
	l, err := store.LinkAt(ctx, a.DB.Read(ctx), domain.SecretHash(token), a.now())
	if err != nil {
		return domain.Operator{}, err
	}
	return store.Operator(ctx, a.DB.Read(ctx), l.OperatorID)
}

// UseLink sets a password with a one-time link, and ends all sessions of the operator. The first link that verifies the address
// removes everything that another person could have set up before: the second factor, the browsers, the other links, and the
// grants.
func (a *App) UseLink(ctx context.Context, by domain.Origin, token, password string) (o domain.Operator, err error) {
	if o, err = a.LinkOperator(ctx, token); err != nil {
		return domain.Operator{}, err
	}
	if err := domain.CheckPassword(password, o.Email); err != nil {
		return domain.Operator{}, err
	}
	hash, err := a.Passwords.Hash(ctx, password)
	if err != nil {
		return domain.Operator{}, err
	}
	action, proven := domain.PasswordChanged, false
	by.Actor = o.ID.String()
	var ending domain.Ending
	if o, err = a.writeOperator(ctx, o.ID, func(tx pg.Tx, o *domain.Operator) error {
		l, err := store.UseLink(ctx, tx, domain.SecretHash(token), a.now())
		if err != nil {
			return err
		}
		if l.Purpose == domain.Invite {
			action = domain.OperatorJoined
		}
		if proven = l.VerifiesAddress && o.ProvenAt == nil; proven {
			ending, err = a.prove(ctx, tx, by, o)
		}
		if err == nil {
			err = store.DeleteLinks(ctx, tx, o.ID, nil, l.VerifiesAddress)
		}
		if err != nil {
			return err
		}
		o.PasswordHash = &hash
		_, err = store.EndSessions(ctx, tx, o.ID, domain.SessionID{}, nil)
		return err
	}); err != nil {
		return domain.Operator{}, err
	}
	if proven {
		if _, err := a.end(ctx, ending); err != nil {
			return domain.Operator{}, err
		}
	}
	return o, a.auditEverywhere(ctx, by, action, o.ID)
}

// prove records that an operator's address is verified, and begins the memberships that wait for it. Grants that were given
// before are marked to end.
func (a *App) prove(ctx context.Context, tx pg.Tx, by domain.Origin, o *domain.Operator) (domain.Ending, error) {
	o.ProvenAt = new(a.now())
	if err := a.forgetHolder(ctx, tx, o); err != nil {
		return domain.Ending{}, err
	}
	if err := store.BeginMemberships(ctx, tx, o.ID); err != nil {
		return domain.Ending{}, err
	}
	return a.noteEnding(ctx, tx, by, o.ID, domain.Proven, false)
}

// forgetHolder removes the sign-in data of the current holder of an account, who may not own the address.
func (a *App) forgetHolder(ctx context.Context, tx pg.Tx, o *domain.Operator) error {
	o.PasswordHash, o.TOTPSecret = nil, nil
	if err := store.SetRecoveryCodes(ctx, tx, o.ID, nil); err != nil {
		return err
	}
	if err := store.DeleteBrowsers(ctx, tx, o.ID); err != nil {
		return err
	}
	_, err := store.EndSessions(ctx, tx, o.ID, domain.SessionID{}, nil)
	return err
}

// writeOperator locks an operator, applies change, and writes the result.
func (a *App) writeOperator(ctx context.Context, id domain.OperatorID, change func(tx pg.Tx, o *domain.Operator) error) (o domain.Operator, err error) {
	err = a.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if o, err = store.OperatorForUpdate(ctx, tx, id); err != nil {
			return err
		}
		if err := change(tx, &o); err != nil {
			return err
		}
		o.UpdatedAt = a.now()
		o, err = store.UpdateOperator(ctx, tx, o)
		return err
	})
	return o, err
}

// auditEverywhere writes an audit record about an operator at each tenant that it is a member of.
func (a *App) auditEverywhere(ctx context.Context, by domain.Origin, action string, id domain.OperatorID) error {
	all, err := store.MembershipsOf(ctx, a.DB.Read(ctx), id)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(x, y domain.MemberTenant) int { return x.CreatedAt.Compare(y.CreatedAt) })
	for _, m := range all {
		err := a.inTenant(ctx, m.TenantID, func(ctx context.Context, tx pg.Tx) error {
			return a.audit(ctx, tx, by, change{action, id.String(), nil, nil})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// inTenant runs fn in a transaction of a whole tenant, whose row is locked, so all audited writes of one tenant are serialized.
func (a *App) inTenant(ctx context.Context, tenant ids.Tenant, fn func(ctx context.Context, tx pg.Tx) error) error {
	return a.DB.Tx(scope(ctx, tenant, caller.Live), func(ctx context.Context, tx pg.Tx) error {
		if _, err := store.TenantForUpdate(ctx, tx); err != nil {
			return err
		}
		return fn(ctx, tx)
	})
}
