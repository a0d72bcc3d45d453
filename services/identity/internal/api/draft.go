package api

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
)

var draftKey = regexp.MustCompile(`^[0-9A-Za-z-]{16,120}$`)

// saveDraft keeps what an operator has entered into a form.
func (a *API) saveDraft(c *gin.Context) error {
	key := c.Param("key")
	if !draftKey.MatchString(key) {
		return domain.ErrDraftNotFound
	}
	raw, err := io.ReadAll(io.LimitReader(c.Request.Body, 2*domain.MaxDraft))
	if err != nil {
		return err
	}
	if len(raw) == 2*domain.MaxDraft {
		return domain.ErrDraftTooLarge
	}
	var body internalapi.NewDraft
	if err := json.Unmarshal(raw, &body); err != nil || body.Page == "" || body.Values == nil {
		return apperr.Field("values", "Must be given beside page in a JSON object.").WithCause(err)
	}
	if err := a.App.SaveDraft(c.Request.Context(), body.Proof, key, domain.Draft{Page: body.Page, Values: body.Values}); err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusNoContent, "", nil)
}

// lookupDraft answers what an operator has entered into a form.
func (a *API) lookupDraft(c *gin.Context) error {
	id, err := domain.ParseOperatorID(c.Query("operator"))
	if err != nil {
		return domain.ErrDraftNotFound
	}
	d, err := a.App.Draft(c.Request.Context(), id, c.Param("key"))
	if err != nil {
		return err
	}
	return rest.Object(c, internalapi.Draft{Page: d.Page, Values: d.Values})
}
