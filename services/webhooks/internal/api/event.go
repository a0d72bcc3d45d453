package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/app"
	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
)

// getEvent answers one event.
func (a *API) getEvent(c *gin.Context) error {
	ctx := c.Request.Context()
	e, err := a.event(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	if err := app.MayRead(ctx, []string{e.Type}); err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusOK, "", e.Body)
}

// listEvents answers one page of events.
func (a *API) listEvents(c *gin.Context) error {
	ctx, q := c.Request.Context(), httpx.Query(c)
	types := q.List("type")
	object := q.String("object_id")
	if err := app.MayRead(ctx, shownTypes(types, object)); err != nil {
		return err
	}
	req, err := a.Pages.Parse(ctx, q, "listEvents")
	if err != nil {
		return err
	}
	rows, err := store.Events(ctx, req.Reader(ctx, a.DB), store.EventFilter{Types: types, ObjectID: object}, req, a.Now())
	if err != nil {
		return err
	}
	return page.Send(c, a.Pages, req, rows, func(e domain.StoredEvent) page.Place {
		return page.Place{ID: e.ID.UUID(), Created: e.ID.Time(), Updated: e.UpdatedAt}
	}, func(e domain.StoredEvent) json.RawMessage { return e.Body })
}

// resources maps the prefix of an object's id to the first word of the event types about such objects.
var resources = map[string]string{
	"bk": "booking", "cu": "customer", "ld": "lead", "qt": "quote", "inv": "invoice", "pi": "payment",
}

// shownTypes returns the types that a list may show: the types of the filter, else those of the one object, else all.
func shownTypes(types []string, objectID string) []string {
	if len(types) > 0 {
		return types
	}
	prefix, _, _ := strings.Cut(objectID, "_")
	resource := resources[prefix]
	if resource == "" {
		return []string{domain.Every}
	}
	var out []string
	for _, t := range app.AllTypes() {
		if strings.HasPrefix(t, resource+".") {
			out = append(out, t)
		}
	}
	return out
}

// event reads an event of the caller's. When it is not found, the error is a 404, or a 403 when the event is of the other mode.
func (a *API) event(ctx context.Context, param string) (domain.StoredEvent, error) {
	id, err := domain.ParseEventID(param)
	if err != nil {
		return domain.StoredEvent{}, err
	}
	find := func(ctx context.Context, q pg.Q) error {
		_, err := store.Event(ctx, q, id, a.Now())
		return err
	}
	e, err := store.Event(ctx, a.DB.Read(ctx), id, a.Now())
	if errors.Is(err, domain.ErrEventNotFound) {
		err = pg.NotFoundOrOtherMode(ctx, a.DB, find)
	}
	return e, err
}

// eventExists returns the error of event.
func (a *API) eventExists(ctx context.Context, id string) error {
	_, err := a.event(ctx, id)
	return err
}
