package app

import (
	"context"
	"errors"
	"slices"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

// linkDigits is how many random digits a one-time link has: 190 bits.
const linkDigits = 32

// Invitation says whom to invite to a tenant.
type Invitation struct {
	Tenant            ids.Tenant
	Email, Name, Role string
}

// InviteOperator makes an operator a member of a tenant. The token is that of the link with which it sets its password; it is "" for
// somebody who has one already. Inviting again whoever has not accepted yet makes a new link, which ends the one before.
func (a *App) InviteOperator(ctx context.Context, by domain.Origin, in Invitation) (o domain.Operator, token string, err error) {
	email, invalid := domain.CheckEmail(in.Email)
	role, unknown := domain.ParseRole(in.Role)
	if err := apperr.Join(invalid, domain.CheckOperatorName(in.Name), unknown); err != nil {
		return domain.Operator{}, "", err
	}
	err = a.inTenant(ctx, in.Tenant, func(ctx context.Context, tx pg.Tx) error {
		o, err = store.InsertOperator(ctx, tx, domain.Operator{ID: domain.NewOperatorID(), Email: email, Name: in.Name, CreatedAt: a.now()})
		if err != nil {
			return err
		}
		m, err := member(ctx, tx, o.ID)
		if err != nil {
			return err
		}
		if m != nil && o.PasswordHash != nil {
			return apperr.Field("email", "%s is a member already, as %s.", o.Email, m.Role)
		}
		if err := a.setMember(ctx, tx, by, domain.OperatorInvited, o, m, &role); err != nil || o.PasswordHash != nil {
			return err
		}
		token = apikey.Random(linkDigits)
		return store.SetLink(ctx, tx, o.ID, domain.SecretHash(token), domain.Invite, a.now().Add(domain.LinkLifetime))
	})
	return o, token, err
}

// SetRole changes an operator's role at a tenant, on the next request of the apps that act for it too.
func (a *App) SetRole(ctx context.Context, by domain.Origin, tenant ids.Tenant, email, name string) (published bool, err error) {
	role, err := domain.ParseRole(name)
	if err != nil {
		return false, err
	}
	return a.changeMember(ctx, by, tenant, email, domain.OperatorRole, &role)
}

// RemoveOperator ends an operator's membership of a tenant, and the grants that it gave there.
func (a *App) RemoveOperator(ctx context.Context, by domain.Origin, tenant ids.Tenant, email string) (published bool, err error) {
	return a.changeMember(ctx, by, tenant, email, domain.OperatorLeft, nil)
}

func (a *App) changeMember(ctx context.Context, by domain.Origin, tenant ids.Tenant, email, action string, role *domain.Role) (published bool, err error) {
	err = a.inTenant(ctx, tenant, func(ctx context.Context, tx pg.Tx) error {
		o, err := store.OperatorByEmail(ctx, tx, email)
		if err != nil {
			return err
		}
		m, err := member(ctx, tx, o.ID)
		if err != nil {
			return err
		}
		if m == nil {
			return domain.ErrOperatorNotFound
		}
		return a.setMember(ctx, tx, by, action, o, m, role)
	})
	if err != nil {
		return false, err
	}
	return a.publish(ctx, tenant), nil
}

// setMember writes a membership: was is nil for a new one, role for one that ends. A tenant keeps an owner who can act.
func (a *App) setMember(ctx context.Context, tx pg.Tx, by domain.Origin, action string, o domain.Operator, was *domain.Membership, role *domain.Role) error {
	if was != nil && role != nil && was.Role == *role {
		return nil
	}
	m := domain.Membership{OperatorID: o.ID, CreatedAt: a.now()}
	if was != nil {
		m.CreatedAt, m.Role = was.CreatedAt, was.Role
	}
	if role != nil {
		m.Role = *role
	} else {
		m.EndedAt = new(a.now())
	}
	if err := store.SetMember(ctx, tx, m); err != nil {
		return err
	}
	if was != nil && was.Role == domain.Owner && o.DisabledAt == nil {
		if n, err := store.CountOwners(ctx, tx); err != nil || n == 0 {
			return orElse(err, domain.ErrLastOwner)
		}
	}
	if err := store.InvalidateGrants(ctx, tx, nil, &o.ID); err != nil {
		return err
	}
	return a.audit(ctx, tx, by, change{action, o.ID.String(), view.RoleForAudit(was), view.RoleForAudit(&m)})
}

// member returns the present membership of an operator at the caller's tenant, nil without one.
func member(ctx context.Context, tx pg.Tx, id domain.OperatorID) (*domain.Membership, error) {
	m, err := store.Member(ctx, tx, id)
	if errors.Is(err, domain.ErrOperatorNotFound) || err == nil && m.EndedAt != nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &m, nil
}

// RoleOf returns the role of an operator at the caller's tenant. It is ErrOperatorNotFound for one that is no member now, or may not sign in.
func (a *App) RoleOf(ctx context.Context, id domain.OperatorID) (domain.Role, error) {
	m, err := store.Member(ctx, a.DB.Read(ctx), id)
	if err != nil {
		return "", err
	}
	o, err := store.Operator(ctx, a.DB.Read(ctx), id)
	if err != nil {
		return "", err
	}
	if m.EndedAt != nil || o.DisabledAt != nil {
		return "", domain.ErrOperatorNotFound
	}
	return m.Role, nil
}

// Members returns the operators of a tenant, by address.
func (a *App) Members(ctx context.Context, tenant ids.Tenant) ([]domain.Member, error) {
	ctx = scope(ctx, tenant, caller.Live)
	return store.Members(ctx, a.DB.Read(ctx))
}

// DisableOperator ends the sessions of an operator and every grant that it gave, wherever it is a member; it cannot sign in any more.
func (a *App) DisableOperator(ctx context.Context, by domain.Origin, email string) (o domain.Operator, published bool, err error) {
	o, err = store.OperatorByEmail(ctx, a.DB.Read(ctx), email)
	if err != nil {
		return domain.Operator{}, false, err
	}
	if o, err = a.writeOperator(ctx, o.ID, func(tx pg.Tx, o *domain.Operator) error {
		if o.DisabledAt == nil {
			o.DisabledAt = new(a.now())
		}
		_, err := store.EndSessions(ctx, tx, o.ID, domain.SessionID{}, nil)
		return err
	}); err != nil {
		return domain.Operator{}, false, err
	}
	published, err = a.revokeAll(ctx, by, o.ID, domain.Disabled)
	if err != nil {
		return domain.Operator{}, false, err
	}
	return o, published, a.auditEverywhere(ctx, by, domain.OperatorDisabled, o.ID)
}

// EraseOperator disables an operator, ends its memberships and deletes what is held of it as a person; its id stays in grants and audit logs.
// After a death in the middle it is called again. A tenant may lose its last owner by it: another one is invited then.
func (a *App) EraseOperator(ctx context.Context, by domain.Origin, email string) (o domain.Operator, published bool, err error) {
	if o, published, err = a.DisableOperator(ctx, by, email); err != nil {
		return domain.Operator{}, false, err
	}
	all, err := store.MembershipsOf(ctx, a.DB.Read(ctx), o.ID)
	if err != nil {
		return domain.Operator{}, false, err
	}
	for _, m := range all {
		ok, err := a.RemoveOperator(ctx, by, m.TenantID, email)
		if err != nil {
			return domain.Operator{}, false, err
		}
		published = published && ok
	}
	err = a.DB.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error { return store.EraseOperator(ctx, tx, o.ID, a.now()) })
	return o, published, err
}

// EnableOperator lets a disabled operator sign in again. The grants stay revoked.
func (a *App) EnableOperator(ctx context.Context, by domain.Origin, email string) (domain.Operator, error) {
	o, err := store.OperatorByEmail(ctx, a.DB.Read(ctx), email)
	if err != nil {
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

// ResetOperator makes the token of a link with which an operator sets a new password. Its old one works until then. With factor the
// second factor is taken away too, for somebody who has lost it.
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
		return store.SetLink(ctx, tx, o.ID, domain.SecretHash(token), domain.Reset, a.now().Add(domain.LinkLifetime))
	}); err != nil {
		return domain.Operator{}, "", err
	}
	return o, token, a.auditEverywhere(ctx, by, domain.OperatorReset, o.ID)
}

// LinkOperator returns whom a one-time link is for, without using it.
func (a *App) LinkOperator(ctx context.Context, token string) (domain.Operator, error) {
	l, err := store.LinkAt(ctx, a.DB.Read(ctx), domain.SecretHash(token), a.now())
	if err != nil {
		return domain.Operator{}, err
	}
	return store.Operator(ctx, a.DB.Read(ctx), l.OperatorID)
}

// UseLink sets a password by a one-time link, and ends all sessions of the operator.
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
	action := domain.PasswordChanged
	if o, err = a.writeOperator(ctx, o.ID, func(tx pg.Tx, o *domain.Operator) error {
		l, err := store.UseLink(ctx, tx, domain.SecretHash(token), a.now())
		if err != nil {
			return err
		}
		if l.Purpose == domain.Invite {
			action = domain.OperatorJoined
		}
		o.PasswordHash = &hash
		_, err = store.EndSessions(ctx, tx, o.ID, domain.SessionID{}, nil)
		return err
	}); err != nil {
		return domain.Operator{}, err
	}
	by.Actor = o.ID.String()
	return o, a.auditEverywhere(ctx, by, action, o.ID)
}

// writeOperator locks an operator, changes and writes it.
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

// inTenant runs fn in a transaction of a tenant as a whole, whose row is locked: all audited writes of one tenant take turns.
func (a *App) inTenant(ctx context.Context, tenant ids.Tenant, fn func(ctx context.Context, tx pg.Tx) error) error {
	return a.DB.Tx(scope(ctx, tenant, caller.Live), func(ctx context.Context, tx pg.Tx) error {
		if _, err := store.TenantForUpdate(ctx, tx); err != nil {
			return err
		}
		return fn(ctx, tx)
	})
}

func orElse(err, other error) error {
	if err != nil {
		return err
	}
	return other
}
