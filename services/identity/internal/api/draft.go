package api

import (
	"net/http"
	"regexp"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
)

var draftKey = regexp.MustCompile(`^[0-9A-Za-z-]{16,120}$`)

// saveDraft stores an operator's input in a form.
func (a *API) saveDraft(c *gin.Context) error {
	key := c.Param("key")
	if !draftKey.MatchString(key) {
		return domain.ErrDraftNotFound
	}
	body, err := httpx.Body[internalapi.NewDraft](c)
	if err != nil {
		return err
	}
	if err := a.App.SaveDraft(c.Request.Context(), body.Proof, key, domain.Draft{Page: body.Page, Values: body.Values}); err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusNoContent, "", nil)
}

// lookupDraft returns an operator's input in a form.
func (a *API) lookupDraft(c *gin.Context) error {
	id, err := domain.ParseOperatorID(httpx.Query(c).String("operator"))
	if err != nil {
		return domain.ErrDraftNotFound
	}
	d, err := a.App.Draft(c.Request.Context(), id, c.Param("key"))
	if err != nil {
		return err
	}
	return rest.Object(c, internalapi.Draft{Page: d.Page, Values: d.Values})
}
