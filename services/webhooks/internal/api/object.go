package api

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/webhooks/internal/store"
)

// objectEvents is the limit in proto/internal/webhooks.yaml.
const objectEvents = 250

// eventsOfObjects responds with one page of the events about some objects.
func (a *API) eventsOfObjects(c *gin.Context) error {
	ctx := c.Request.Context()
	objects := httpx.Query(c).List("object_ids")
	r := store.ObjectRange{Objects: objects, MaxRows: objectEvents, MaxBytes: page.MaxBytes}
	if cursor := httpx.Query(c).String("cursor"); cursor != "" {
		object, event, _ := strings.Cut(cursor, ".")
		i, after := slices.Index(objects, object), (*ids.Event)(nil)
		if id, err := ids.Parse[ids.EventPrefix](event); err == nil {
			after = &id
		}
		if i < 0 || after == nil {
			return apperr.Field("cursor", "Must be the next of a previous response for the same IDs.")
		}
		r.Objects, r.After = objects[i:], after
	}
	list, more, err := store.EventsOfObjects(ctx, a.DB.Read(ctx), r, a.Now())
	if err != nil {
		return err
	}
	out := internalapi.EventsOfObjects{Data: make([]json.RawMessage, len(list))}
	for i, e := range list {
		out.Data[i] = e.Body
	}
	if more {
		last := list[len(list)-1]
		out.Next = last.ObjectID + "." + last.ID.String()
	}
	return rest.Object(c, out)
}
