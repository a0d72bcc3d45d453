package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/webhooks/internal/app"
	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
)

// events returns the collection with which the handlers find an event.
func (a *API) events() rest.Collection[ids.ID[ids.EventPrefix], domain.StoredEvent] {
	return rest.Collection[ids.ID[ids.EventPrefix], domain.StoredEvent]{
		Parse: ids.Parse[ids.EventPrefix],
		DB:    a.DB, Idempotency: a.Idempotency, NotFound: domain.ErrEventNotFound,
		Load: func(ctx context.Context, q pg.Q, id ids.Event) (domain.StoredEvent, error) {
			return store.Event(ctx, q, id, a.Now())
		},
	}
}

// getEvent responds with one event, whose body is stored in its public form.
func (a *API) getEvent(c *gin.Context) error {
	ctx := c.Request.Context()
	e, err := a.events().Read(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	if err := app.CheckRead(ctx, []string{e.Type}); err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusOK, "", e.Body)
}

// listEvents responds with one page of events.
func (a *API) listEvents(c *gin.Context) error {
	q := httpx.Query(c)
	f := store.EventFilter{Types: q.List("type"), ObjectID: q.String("object_id")}
	if err := app.CheckRead(c.Request.Context(), shownTypes(f.Types, f.ObjectID)); err != nil {
		return err
	}
	return page.Serve(c, a.Pages, a.DB, func(ctx context.Context, db pg.Q, r page.Request) (page.Rows[domain.StoredEvent], error) {
		return store.Events(ctx, db, f, r, a.Now())
	}, func(e domain.StoredEvent) page.SortKey {
		return page.SortKey{ID: e.ID.UUID(), Created: e.ID.Time(), Updated: e.UpdatedAt}
	}, func(e domain.StoredEvent, _ api.Mode) json.RawMessage { return e.Body })
}

// resources maps the prefix of an object's id to the first word of the event types about such objects.
var resources = map[string]string{
	"bk": "booking", "cu": "customer", "ld": "lead", "qt": "quote", "inv": "invoice", "pi": "payment",
}

// shownTypes returns the types that a list can contain: the types of the filter, otherwise those of the one object, otherwise all.
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
