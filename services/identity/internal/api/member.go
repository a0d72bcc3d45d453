package api

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/obs"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

func (a *API) listMembers(c *gin.Context, _ asker) error {
	ctx := c.Request.Context()
	members, err := store.Members(ctx, a.DB.Read(ctx))
	if err != nil {
		return err
	}
	return rest.Object(c, view.Members(members[:min(len(members), domain.MemberPlaces.Most)]))
}

func (a *API) inviteMember(c *gin.Context, by asker) error {
	body, err := httpx.Body[internalapi.NewMember](c)
	if err != nil {
		return err
	}
	ctx := c.Request.Context()
	in := app.Invitation{Tenant: by.Tenant, Email: body.Email, Name: body.Name, Role: body.Role, Asker: by.OperatorID}
	var o domain.Operator
	var token string
	out := internalapi.InvitedMember{}
	res, err := a.once(c, by, caller.Live, func(ctx context.Context, tx pg.Tx) (any, error) {
		var err error
		if o, token, err = a.App.InviteOperatorIn(ctx, tx, by.origin(), in); err != nil {
			return nil, err
		}
		m, err := store.PresentMember(ctx, tx, o.ID)
		out = a.invited(m, token)
		return out, err
	})
	if err != nil {
		return err
	}
	if out.Delivery == internalapi.DeliveryMailed { // this request created the invitation: a repetition sends no second message
		if err := a.App.MailInvitation(context.WithoutCancel(ctx), o, token); err != nil {
			obs.Add(ctx, slog.String("error", err.Error()))
			out.Delivery = internalapi.DeliveryFailed
			return created(c, out)
		}
	}
	return httpx.Send(c, res)
}

// invited returns the response to an invitation.
func (a *API) invited(m domain.Member, token string) internalapi.InvitedMember {
	out := internalapi.InvitedMember{Member: view.Member(m), Delivery: internalapi.DeliveryNone}
	switch {
	case token == "":
	case a.App.Mailer == nil:
		out.Delivery, out.LinkToken = internalapi.DeliveryByHand, &token
	default:
		out.Delivery = internalapi.DeliveryMailed
	}
	return out
}

func (a *API) changeMember(c *gin.Context, by asker) error {
	id, err := domain.ParseOperatorID(c.Param("id"))
	if err != nil {
		return err
	}
	body, err := httpx.Body[internalapi.MemberRole](c)
	if err != nil {
		return err
	}
	ctx := c.Request.Context()
	if _, err := a.App.SetRole(ctx, by.origin(), by.member(id), body.Role); err != nil {
		return err
	}
	m, err := store.PresentMember(ctx, a.DB.Read(ctx), id)
	if err != nil {
		return err
	}
	return rest.Object(c, view.Member(m))
}

func (a *API) removeMember(c *gin.Context, by asker) error {
	id, err := domain.ParseOperatorID(c.Param("id"))
	if err != nil {
		return err
	}
	if _, err := a.App.RemoveOperator(c.Request.Context(), by.origin(), by.member(id)); err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusNoContent, "", nil)
}

// member identifies the member that the operator requests to change.
func (m asker) member(id domain.OperatorID) app.MemberRef {
	return app.MemberRef{Tenant: m.Tenant, ID: id, Asker: m.OperatorID}
}
