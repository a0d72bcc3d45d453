package app

import (
	"context"
	"errors"
	"fmt"
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

// mailTimeout limits the time for sending an invitation, because the inviting operator waits for it.
const mailTimeout = 8 * time.Second

// Invitation specifies whom to invite to a tenant.
type Invitation struct {
	Tenant            ids.Tenant
	Email, Name, Role string
	FirstOwner        bool              // refuse it while an owner of the tenant can sign in
	Asker             domain.OperatorID // the operator whose role must allow it; zero for the command line, which has all permissions
}

// InviteOperator makes an operator a member of a tenant. It returns the token of the link with which the operator sets a password,
// or "" if the operator already has one. A repeated invitation, before the first one is accepted, creates a new link that replaces
// the tenant's previous one. If an operator of another tenant has not verified their address, the membership begins when the link
// is used.
func (a *App) InviteOperator(ctx context.Context, by domain.Origin, in Invitation) (o domain.Operator, token string, err error) {
	err = a.DB.Tx(scope(ctx, in.Tenant, caller.Live), func(ctx context.Context, tx pg.Tx) error {
		o, token, err = a.InviteOperatorIn(ctx, tx, by, in)
		return err
	})
	return o, token, err
}

// InviteOperatorAs is InviteOperator in a transaction of the platform.
func (a *App) InviteOperatorAs(ctx context.Context, tx pg.Tx, by domain.Origin, in Invitation) (o domain.Operator, token string, err error) {
	err = pg.As(ctx, tx, caller.FromContext(scope(ctx, in.Tenant, caller.Live)), func(ctx context.Context, tx pg.Tx) error {
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
	if in.FirstOwner {
		there, err := store.OwnerCanSignIn(ctx, tx)
		if err == nil && there {
			err = domain.ErrOwnerPresent
		}
		if err != nil {
			return domain.Operator{}, "", err
		}
	}
	o, err = store.InsertOperator(ctx, tx, domain.Operator{ID: domain.NewOperatorID(), Email: email, Name: in.Name, CreatedAt: a.now()})
	if err != nil {
		return domain.Operator{}, "", err
	}
	m, err := member(ctx, tx, o.ID)
	if err != nil {
		return domain.Operator{}, "", err
	}
	if err := checkChange(ctx, tx, in.Asker, m, role); err != nil {
		return domain.Operator{}, "", err
	}
	if m != nil && !m.Waits() && o.PasswordHash != nil {
		return domain.Operator{}, "", apperr.Field("email", "%s is already a member, as %s.", o.Email, m.Role)
	}
	if err := memberRoom(ctx, tx, m); err != nil {
		return domain.Operator{}, "", err
	}
	o, waits, err := a.admit(ctx, tx, in, o)
	if err != nil {
		return domain.Operator{}, "", err
	}
	waits = waits && (m == nil || m.Waits()) // an active membership stays active
	if err := a.setMember(ctx, tx, by, memberChange{domain.OperatorInvited, o, m, &role, waits}); err != nil || o.PasswordHash != nil && !waits {
		return o, "", err
	}
	token, err = a.inviteLink(ctx, tx, in, o.ID)
	return o, token, err
}

// admit determines how an operator, whose row is locked, becomes a member. An operator with a verified address becomes a member
// immediately. Any other operator can belong to only one tenant. While they are a member elsewhere, the membership is pending, and
// the error is ErrUnproven if the link would not verify the address. An account that previously belonged to another tenant is
// reset, because that tenant may have chosen its password.
func (a *App) admit(ctx context.Context, tx pg.Tx, in Invitation, o domain.Operator) (_ domain.Operator, waits bool, err error) {
	if o.ProvenAt != nil {
		return o, false, nil
	}
	places, err := store.Places(ctx, tx, o.ID)
	if err != nil {
		return o, false, err
	}
	elsewhere := domain.OtherTenantsOf(in.Tenant, places)
	switch {
	case elsewhere.Member && !a.verifiesAddress(in):
		return o, false, domain.ErrUnproven
	case elsewhere.Member:
		return o, true, nil
	case !elsewhere.Known:
		return o, false, nil
	}
	if err := a.forgetHolder(ctx, tx, &o); err != nil {
		return o, false, err
	}
	if err := store.DeleteLinks(ctx, tx, o.ID, nil, false); err != nil {
		return o, false, err
	}
	o.Name, o.UpdatedAt = in.Name, a.now()
	o, err = store.UpdateOperator(ctx, tx, o)
	return o, false, err
}

// verifiesAddress reports whether the link of an invitation verifies the address: it is mailed there, or the command line creates it.
func (a *App) verifiesAddress(in Invitation) bool { return in.Asker.IsZero() || a.Mailer != nil }

// inviteLink creates the link of an invitation.
func (a *App) inviteLink(ctx context.Context, tx pg.Tx, in Invitation, id domain.OperatorID) (token string, err error) {
	if !in.Asker.IsZero() && a.Mailer != nil {
		if err := a.countInvitation(ctx, tx, in.Tenant); err != nil {
			return "", err
		}
	}
	token = apikey.Random(linkDigits)
	return token, store.SetLink(ctx, tx, store.NewLink{
		OperatorID: id, TenantID: &in.Tenant, Hash: domain.SecretHash(token), Purpose: domain.Invite, VerifiesAddress: a.verifiesAddress(in), Now: a.now(),
	})
}

// countInvitation returns a 422 if the tenant must wait before it can send another message.
func (a *App) countInvitation(ctx context.Context, tx pg.Tx, tenant ids.Tenant) error {
	_, wait, err := store.Attempt(ctx, tx, byTenant, domain.SecretHash(tenant.String()), domain.InviteThrottle, a.now())
	if err != nil || wait == 0 {
		return err
	}
	return quota.ErrReached.WithField("email").WithMessage("More than %d people were invited within a day. You can send the next invitation in %s.",
		domain.InviteThrottle.Free, wait.Round(time.Second))
}

// MailInvitation sends an operator the link of an invitation to the caller's tenant. The operator is a member even if sending
// fails.
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

// memberRoom returns a 422 if the tenant has no room for a new member.
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

// checkChange returns ErrPermission unless the role of the requesting operator allows the change of a membership. The role "" ends
// the membership. The zero id stands for the command line. The tenant's row is locked, so no role changes in the meantime.
func checkChange(ctx context.Context, tx pg.Tx, asker domain.OperatorID, was *domain.Membership, to domain.Role) error {
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
	if !m.Role.CanChange(from, to) {
		return domain.ErrPermission
	}
	return nil
}

// MemberRef identifies a member of a tenant by its address or, for Asker, by its id.
type MemberRef struct {
	Tenant ids.Tenant
	Email  string
	ID     domain.OperatorID
	Asker  domain.OperatorID // whose role must allow the change; zero for the command line, which has all permissions
}

// operator finds the operator, whether they are currently a member or not.
func (r MemberRef) operator(ctx context.Context, tx pg.Tx) (domain.Operator, error) {
	if r.Email != "" {
		return store.OperatorByEmail(ctx, tx, r.Email)
	}
	return store.Operator(ctx, tx, r.ID)
}

// SetRole changes an operator's role at a tenant. The change also applies to the next request of the apps that act for the
// operator.
func (a *App) SetRole(ctx context.Context, by domain.Origin, of MemberRef, name string) (published bool, err error) {
	role, err := domain.ParseRole(name)
	if err != nil {
		return false, err
	}
	return a.changeMember(ctx, by, of, domain.OperatorRole, &role)
}

// RemoveOperator ends an operator's membership of a tenant, and the grants that they gave there.
func (a *App) RemoveOperator(ctx context.Context, by domain.Origin, of MemberRef) (published bool, err error) {
	return a.changeMember(ctx, by, of, domain.OperatorLeft, nil)
}

// RemoveOwnerAs is RemoveOperator in a transaction of the platform, for an owner, whom it returns as they were before. It returns
// ErrOperatorNotFound for anybody else. The caller must publish the invalidations afterwards.
func (a *App) RemoveOwnerAs(ctx context.Context, tx pg.Tx, by domain.Origin, tenant ids.Tenant, id domain.OperatorID) (owner domain.Member, err error) {
	err = pg.As(ctx, tx, caller.FromContext(scope(ctx, tenant, caller.Live)), func(ctx context.Context, tx pg.Tx) error {
		if _, err := store.TenantForUpdate(ctx, tx); err != nil {
			return err
		}
		if owner, err = store.PresentMember(ctx, tx, id); err != nil {
			return err
		}
		if owner.Role != domain.Owner {
			return domain.ErrOperatorNotFound
		}
		return a.changeMemberIn(ctx, tx, by, MemberRef{Tenant: tenant, ID: id}, domain.OperatorLeft, nil)
	})
	return owner, err
}

// OwnerPage returns at most limit owners of a tenant after one, by ID, and whether there are more.
func (a *App) OwnerPage(ctx context.Context, tenant ids.Tenant, after domain.OperatorID, limit int) (list []domain.Member, more bool, err error) {
	ctx = scope(ctx, tenant, caller.Live)
	list, err = store.OwnerPage(ctx, a.DB.Read(ctx), after, limit+1)
	more = len(list) > limit
	return list[:min(len(list), limit)], more, err
}

func (a *App) changeMember(ctx context.Context, by domain.Origin, of MemberRef, action string, role *domain.Role) (published bool, err error) {
	err = a.inTenant(ctx, of.Tenant, func(ctx context.Context, tx pg.Tx) error { return a.changeMemberIn(ctx, tx, by, of, action, role) })
	if err != nil {
		return false, err
	}
	return a.publish(ctx, of.Tenant), nil
}

// changeMemberIn is changeMember in a transaction that has locked the tenant's row.
func (a *App) changeMemberIn(ctx context.Context, tx pg.Tx, by domain.Origin, of MemberRef, action string, role *domain.Role) error {
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
	if err := checkChange(ctx, tx, of.Asker, m, to); err != nil {
		return err
	}
	return a.setMember(ctx, tx, by, memberChange{action, o, m, role, role != nil && m.Waits()})
}

// memberChange is a change of a membership. was is nil for a new membership, role is nil for one that ends.
type memberChange struct {
	action   string
	operator domain.Operator
	was      *domain.Membership
	role     *domain.Role
	waits    bool // it begins when the address is verified
}

// setMember writes a membership. It ensures that the tenant always has an owner who can act.
func (a *App) setMember(ctx context.Context, tx pg.Tx, by domain.Origin, c memberChange) error {
	id := c.operator.ID
	if c.was != nil && c.role != nil && c.was.Role == *c.role && c.was.Waits() == c.waits {
		return nil
	}
	m := domain.Membership{OperatorID: id, CreatedAt: a.now()}
	if c.was != nil {
		m.CreatedAt, m.Role = c.was.CreatedAt, c.was.Role
	}
	if c.role != nil {
		m.Role = *c.role
	} else if err := a.leave(ctx, tx, by, id); err != nil {
		return err
	}
	if c.role == nil || c.waits {
		m.EndedAt = new(a.now())
	}
	if c.waits {
		m.InvitedAt = m.EndedAt
	}
	if err := store.SetMember(ctx, tx, m); err != nil {
		return err
	}
	if c.was != nil && !c.was.Waits() && c.was.Role == domain.Owner && c.operator.DisabledAt == nil {
		if err := ownerRemains(ctx, tx, c.operator); err != nil {
			return err
		}
	}
	if err := store.InvalidateGrants(ctx, tx, nil, &id); err != nil {
		return err
	}
	return a.audit(ctx, tx, by, change{c.action, id.String(), view.RoleForAudit(c.was), view.RoleForAudit(&m)})
}

// ownerRemains returns ErrLastOwner if a tenant that lost an owner has none, or lost the last one who can sign in.
func ownerRemains(ctx context.Context, tx pg.Tx, lost domain.Operator) error {
	if lost.PasswordHash != nil {
		there, err := store.OwnerCanSignIn(ctx, tx)
		if err != nil || !there {
			return orElse(err, domain.ErrLastOwner)
		}
		return nil
	}
	n, err := store.CountOwners(ctx, tx)
	if err != nil || n == 0 {
		return orElse(err, domain.ErrLastOwner)
	}
	return nil
}

// leave ends everything of an operator at a tenant except the membership: saved views, the links of the invitation, and grants.
// Otherwise a later membership would restore them.
func (a *App) leave(ctx context.Context, tx pg.Tx, by domain.Origin, id domain.OperatorID) error {
	if err := store.DeleteViews(ctx, tx, id); err != nil {
		return err
	}
	tenant := caller.FromContext(ctx).Tenant
	if err := store.DeleteLinks(ctx, tx, id, &tenant, true); err != nil {
		return err
	}
	ended, err := store.EndGrants(ctx, tx, id, domain.Left, a.now())
	if err != nil {
		return err
	}
	for _, g := range ended {
		if err := a.audit(ctx, tx, by, change{domain.GrantRevoked, g.String(), nil, map[string]any{"reason": domain.Left}}); err != nil {
			return err
		}
	}
	return nil
}

// member returns the active or pending membership of an operator at the caller's tenant, or nil if there is none.
func member(ctx context.Context, tx pg.Tx, id domain.OperatorID) (*domain.Membership, error) {
	m, err := store.Member(ctx, tx, id)
	if errors.Is(err, domain.ErrOperatorNotFound) || err == nil && m.EndedAt != nil && !m.Waits() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &m, nil
}

// present returns the active membership of an operator at the caller's tenant, or nil if there is none.
func present(ctx context.Context, tx pg.Tx, id domain.OperatorID) (*domain.Membership, error) {
	m, err := member(ctx, tx, id)
	if err != nil || m == nil || m.Waits() {
		return nil, err
	}
	return m, nil
}

// Members returns the operators of a tenant, by address.
func (a *App) Members(ctx context.Context, tenant ids.Tenant) ([]domain.Member, error) {
	ctx = scope(ctx, tenant, caller.Live)
	return store.Members(ctx, a.DB.Read(ctx))
}

// Permit returns the membership of an operator at the caller's tenant. It returns ErrPermission if the operator has none now, is
// disabled, or has a role that lacks the permission. "" requires no permission.
func (a *App) Permit(ctx context.Context, id domain.OperatorID, needs domain.Permission) (domain.Membership, error) {
	m, err := store.ActiveMember(ctx, a.DB.Read(ctx), id)
	if errors.Is(err, domain.ErrOperatorNotFound) {
		return domain.Membership{}, domain.ErrPermission.WithCause(err)
	}
	if err == nil && needs != "" && !m.Role.Can(needs) {
		return domain.Membership{}, domain.ErrPermission
	}
	return m, err
}

// SaveView saves a view of a member of the tenant. It replaces the query of an existing view with the same list and name.
func (a *App) SaveView(ctx context.Context, tenant ids.Tenant, operator domain.OperatorID, in domain.SavedView) (v domain.SavedView, err error) {
	if err := in.Check(); err != nil {
		return domain.SavedView{}, err
	}
	in.ID, in.CreatedAt = domain.NewViewID(), a.now()
	err = a.inTenant(ctx, tenant, func(ctx context.Context, tx pg.Tx) error {
		if m, err := present(ctx, tx, operator); err != nil || m == nil { // the operator may have left since the permission check
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
