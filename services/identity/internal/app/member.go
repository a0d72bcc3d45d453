package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/quota"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

// mailTimeout bounds the sending of an invitation, whose sender waits for it.
const mailTimeout = 8 * time.Second

// Invitation says whom to invite to a tenant.
type Invitation struct {
	Tenant            ids.Tenant
	Email, Name, Role string
	Asker             domain.OperatorID // whose role must allow it; zero for the command line, which may do all
}

// InviteOperator makes an operator a member of a tenant. The token is that of the link with which it sets its password; it is "" for
// somebody who has one already. Inviting again whoever has not accepted yet makes a new link, which ends the one before.
func (a *App) InviteOperator(ctx context.Context, by domain.Origin, in Invitation) (o domain.Operator, token string, err error) {
	err = a.DB.Tx(scope(ctx, in.Tenant, caller.Live), func(ctx context.Context, tx pg.Tx) error {
		o, token, err = a.InviteOperatorIn(ctx, tx, by, in)
		return err
	})
	return o, token, err
}

// InviteOperatorIn is InviteOperator in a transaction of the tenant and of live mode.
func (a *App) InviteOperatorIn(ctx context.Context, tx pg.Tx, by domain.Origin, in Invitation) (o domain.Operator, token string, err error) {
	email, invalid := domain.CheckEmail(in.Email)
	role, unknown := domain.ParseRole(in.Role)
	if err := apperr.Join(invalid, domain.CheckOperatorName(in.Name), unknown); err != nil {
		return domain.Operator{}, "", err
	}
	if _, err := store.TenantForUpdate(ctx, tx); err != nil {
		return domain.Operator{}, "", err
	}
	o, err = store.InsertOperator(ctx, tx, domain.Operator{ID: domain.NewOperatorID(), Email: email, Name: in.Name, CreatedAt: a.now()})
	if err != nil {
		return domain.Operator{}, "", err
	}
	m, err := member(ctx, tx, o.ID)
	if err != nil {
		return domain.Operator{}, "", err
	}
	if err := mayChange(ctx, tx, in.Asker, m, role); err != nil {
		return domain.Operator{}, "", err
	}
	if m != nil && o.PasswordHash != nil {
		return domain.Operator{}, "", apperr.Field("email", "%s is a member already, as %s.", o.Email, m.Role)
	}
	if err := memberRoom(ctx, tx, m); err != nil {
		return domain.Operator{}, "", err
	}
	if err := a.setMember(ctx, tx, by, domain.OperatorInvited, o, m, &role); err != nil || o.PasswordHash != nil {
		return o, "", err
	}
	token, err = a.inviteLink(ctx, tx, in, o.ID)
	return o, token, err
}

// inviteLink makes the link of somebody without a password. An operator who is to hand it over gets none for a member of another tenant:
// whoever has the link sets the password, which would open that tenant to somebody of this one.
func (a *App) inviteLink(ctx context.Context, tx pg.Tx, in Invitation, id domain.OperatorID) (token string, err error) {
	switch {
	case in.Asker.IsZero():
	case a.Mailer != nil:
		if err := a.countInvitation(ctx, tx, in.Tenant); err != nil {
			return "", err
		}
	default:
		all, err := store.MembershipsOf(ctx, tx, id)
		elsewhere := func(m domain.MemberTenant) bool { return m.TenantID != in.Tenant }
		if err != nil || slices.ContainsFunc(all, elsewhere) {
			return "", err
		}
	}
	token = apikey.Random(linkDigits)
	return token, store.SetLink(ctx, tx, id, domain.SecretHash(token), domain.Invite, a.now().Add(domain.LinkLifetime))
}

// countInvitation returns the 422 where the tenant has to wait before one more message is sent.
func (a *App) countInvitation(ctx context.Context, tx pg.Tx, tenant ids.Tenant) error {
	_, wait, err := store.Attempt(ctx, tx, byTenant, domain.SecretHash(tenant.String()), domain.InviteThrottle, a.now())
	if err != nil || wait == 0 {
		return err
	}
	return quota.ErrReached.WithField("email").WithMessage("More than %d people were invited within a day: the next message can be sent in %s.",
		domain.InviteThrottle.Free, wait.Round(time.Second))
}

// MailInvitation sends an operator the link of an invitation to the caller's tenant. The operator is a member, whether or not the message
// is taken.
func (a *App) MailInvitation(ctx context.Context, o domain.Operator, token string) error {
	t, err := store.Tenant(ctx, a.DB.Read(ctx))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, mailTimeout)
	defer cancel()
	subject := domain.InviteSubject(t.Name)
	if err := a.Mailer.Send(ctx, o.Email, subject, domain.LinkMessage(subject, domain.LinkURL(a.AuthURL, token))); err != nil {
		return fmt.Errorf("mail an invitation: %w", err)
	}
	return nil
}

// memberRoom returns the 422 where the tenant has no place for a new member.
func memberRoom(ctx context.Context, tx pg.Tx, was *domain.Membership) error {
	if was != nil {
		return nil
	}
	there, err := store.CountMembers(ctx, tx)
	if err != nil {
		return err
	}
	return domain.MemberPlaces.Room(there)
}

// mayChange returns ErrPermission unless the role of the operator who asks allows the change of a membership; "" ends it. The zero id asks
// for the command line. The tenant's row is locked, so no role changes meanwhile.
func mayChange(ctx context.Context, tx pg.Tx, asker domain.OperatorID, was *domain.Membership, to domain.Role) error {
	if asker.IsZero() {
		return nil
	}
	m, err := store.ActiveMember(ctx, tx, asker)
	if errors.Is(err, domain.ErrOperatorNotFound) {
		return domain.ErrPermission.WithCause(err)
	}
	if err != nil {
		return err
	}
	var from domain.Role
	if was != nil {
		from = was.Role
	}
	if !m.Role.MayChange(from, to) {
		return domain.ErrPermission
	}
	return nil
}

// MemberRef names a member of a tenant by its address or, for Asker, by its id.
type MemberRef struct {
	Tenant ids.Tenant
	Email  string
	ID     domain.OperatorID
	Asker  domain.OperatorID // whose role must allow the change; zero for the command line, which may do all
}

// operator finds the member, present or not.
func (r MemberRef) operator(ctx context.Context, tx pg.Tx) (domain.Operator, error) {
	if r.Email != "" {
		return store.OperatorByEmail(ctx, tx, r.Email)
	}
	return store.Operator(ctx, tx, r.ID)
}

// SetRole changes an operator's role at a tenant, on the next request of the apps that act for it too.
func (a *App) SetRole(ctx context.Context, by domain.Origin, of MemberRef, name string) (published bool, err error) {
	role, err := domain.ParseRole(name)
	if err != nil {
		return false, err
	}
	return a.changeMember(ctx, by, of, domain.OperatorRole, &role)
}

// RemoveOperator ends an operator's membership of a tenant, and the grants that it gave there.
func (a *App) RemoveOperator(ctx context.Context, by domain.Origin, of MemberRef) (published bool, err error) {
	return a.changeMember(ctx, by, of, domain.OperatorLeft, nil)
}

func (a *App) changeMember(ctx context.Context, by domain.Origin, of MemberRef, action string, role *domain.Role) (published bool, err error) {
	err = a.inTenant(ctx, of.Tenant, func(ctx context.Context, tx pg.Tx) error {
		o, err := of.operator(ctx, tx)
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
		var to domain.Role
		if role != nil {
			to = *role
		}
		if err := mayChange(ctx, tx, of.Asker, m, to); err != nil {
			return err
		}
		return a.setMember(ctx, tx, by, action, o, m, role)
	})
	if err != nil {
		return false, err
	}
	return a.publish(ctx, of.Tenant), nil
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
		if err := store.DeleteViews(ctx, tx, o.ID); err != nil {
			return err
		}
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

// Members returns the operators of a tenant, by address.
func (a *App) Members(ctx context.Context, tenant ids.Tenant) ([]domain.Member, error) {
	ctx = scope(ctx, tenant, caller.Live)
	return store.Members(ctx, a.DB.Read(ctx))
}

// Permit returns the membership of an operator at the caller's tenant, or ErrPermission when it has none now, is disabled, or its role lacks
// the permission; "" needs none.
func (a *App) Permit(ctx context.Context, id domain.OperatorID, needs domain.Permission) (domain.Membership, error) {
	m, err := store.ActiveMember(ctx, a.DB.Read(ctx), id)
	if errors.Is(err, domain.ErrOperatorNotFound) {
		return domain.Membership{}, domain.ErrPermission.WithCause(err)
	}
	if err == nil && needs != "" && !m.Role.May(needs) {
		return domain.Membership{}, domain.ErrPermission
	}
	return m, err
}

// SaveView saves a view of a member of the tenant. One of the same list and name gets the query.
func (a *App) SaveView(ctx context.Context, tenant ids.Tenant, operator domain.OperatorID, in domain.SavedView) (v domain.SavedView, err error) {
	if err := in.Check(); err != nil {
		return domain.SavedView{}, err
	}
	in.ID, in.CreatedAt = domain.NewViewID(), a.now()
	err = a.inTenant(ctx, tenant, func(ctx context.Context, tx pg.Tx) error {
		if m, err := member(ctx, tx, operator); err != nil || m == nil { // it may have left since it was permitted
			return orElse(err, domain.ErrPermission)
		}
		inList, inAll, err := store.CountViews(ctx, tx, operator, in)
		if err != nil {
			return err
		}
		if err := domain.ViewRoom(inList, inAll); err != nil {
			return err
		}
		v, err = store.PutView(ctx, tx, operator, in)
		return err
	})
	return v, err
}

// DeleteView deletes a view of a member of the tenant.
func (a *App) DeleteView(ctx context.Context, tenant ids.Tenant, operator domain.OperatorID, id domain.ViewID) error {
	return a.DB.Tx(scope(ctx, tenant, caller.Live), func(ctx context.Context, tx pg.Tx) error { return store.DeleteView(ctx, tx, operator, id) })
}

func orElse(err, other error) error {
	if err != nil {
		return err
	}
	return other
}
