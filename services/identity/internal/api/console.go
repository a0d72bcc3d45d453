package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/proto"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

const (
	operatorKind   = "operator" // of the callers that the console signs
	maxConsoleBody = 64 << 10   // bytes
)

// mountConsole registers the calls that the console makes in the name of an operator. Where they are and which permission they need is the
// contract's.
func (a *API) mountConsole(e *gin.Engine) error {
	calls, err := contract.Forms(proto.InternalIdentity)
	if err != nil {
		return err
	}
	for id, h := range map[string]consoleCall{
		"listApiKeys": a.listKeys, "createApiKey": a.createKey, "rotateApiKey": a.rotateKey, "revokeApiKey": a.revokeKey,
		"listMembers": a.listMembers, "inviteMember": a.inviteMember, "changeMember": a.changeMember, "removeMember": a.removeMember,
		"listApps": a.listApps, "createApp": a.createApp, "updateApp": a.updateApp, "deleteApp": a.deleteApp,
		"listGrants": a.listGrants, "revokeGrant": a.revokeGrant,
		"listAudit":   a.listAudit, // of one object; the rest needs ReadAudit
		"verifyAudit": a.verifyAudit, "updateTenant": a.updateTenant,
		"listViews": a.listViews, "saveView": a.saveView, "deleteView": a.deleteView,
	} {
		call, ok := calls[id]
		if !ok {
			return fmt.Errorf("the contract of the internal calls has no operation %s", id)
		}
		path := strings.ReplaceAll(call.Path, "{id}", ":id")
		e.Handle(call.Method, path, a.Server.Internal(a.permitted(domain.Permission(call.Permission), idempotent(call.Secret, h)), "console"))
	}
	return nil
}

// asker is the operator in whose name the console calls, a member of the caller's tenant.
type asker struct {
	domain.Membership
	caller.Caller
}

// origin is what the audit log notes of the call.
func (m asker) origin() domain.Origin {
	return domain.Origin{Actor: m.Credential, Source: "console:" + m.RequestID}
}

// home is the tenant and the mode of the call.
func (m asker) home() store.Home { return store.Home{TenantID: m.Tenant, Livemode: m.Live()} }

// permitted calls h when the caller is an operator whose role at the caller's tenant has the permission now.
func (a *API) permitted(needs domain.Permission, h consoleCall) httpx.Handler {
	return func(c *gin.Context) error {
		ctx := c.Request.Context()
		from := caller.FromContext(ctx)
		id, err := ids.Parse[domain.OperatorPrefix](from.Credential)
		if err != nil || from.Kind != operatorKind {
			return domain.ErrPermission.WithCause(err)
		}
		m, err := a.App.Permit(ctx, id, needs)
		if err != nil {
			return err
		}
		return h(c, asker{m, from})
	}
}

// bodyOf reads a JSON body, which has no other fields than those of T.
func bodyOf[T any](c *gin.Context) (body T, err error) {
	d := json.NewDecoder(io.LimitReader(c.Request.Body, maxConsoleBody))
	d.DisallowUnknownFields()
	err = d.Decode(&body)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return body, apperr.Field(wrong.Field, "Must not be a JSON %s.", wrong.Value).WithCause(err)
	}
	if err != nil {
		return body, apperr.Field("body", "Must be a JSON object of the form that the contract states.").WithCause(err)
	}
	return body, nil
}

// created answers 201 with v.
func created(c *gin.Context, v any) error {
	body, err := contract.Encode(v)
	if err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusCreated, "", body)
}
