package api

import (
	"encoding/json"
	"io"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/rest"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/view"
)

const maxClock = 1024 // bytes of the body

// setTestClock moves the clock of the caller's own tenant, in test mode only.
func (a *API) setTestClock(c *gin.Context) error {
	ctx := c.Request.Context()
	from := caller.FromContext(ctx)
	id, err := ids.Parse[ids.TenantPrefix](c.Param("id"))
	switch {
	case err != nil || id != from.Tenant:
		return domain.ErrTenantNotFound
	case from.Mode != caller.Test:
		return apperr.ErrMode
	}
	at, err := clockOf(c.Request.Body)
	if err != nil {
		return err
	}
	by := domain.Origin{Actor: from.Credential, Source: "bookings:" + from.RequestID}
	t, _, err := a.App.SetClock(ctx, by, id, at)
	if err != nil {
		return err
	}
	return rest.Object(c, view.InternalTenant(t))
}

// clockOf reads the body's now, which must be given: nil stands for null.
func clockOf(r io.Reader) (*time.Time, error) {
	var body struct {
		Now json.RawMessage `json:"now"`
	}
	invalid := apperr.Field("now", "Must be given, as an RFC 3339 date and time or null.")
	if err := json.NewDecoder(io.LimitReader(r, maxClock)).Decode(&body); err != nil || len(body.Now) == 0 {
		return nil, invalid.WithCause(err)
	}
	var at *time.Time
	if err := json.Unmarshal(body.Now, &at); err != nil {
		return nil, invalid.WithCause(err)
	}
	return at, nil
}
