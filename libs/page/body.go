package page

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
)

// Place is where a row stands in the two orders of a list.
type Place struct {
	ID               [16]byte
	Created, Updated time.Time
}

// Body is the answer of a list: rows, read through Where.Page with one more than the limit where another page
// follows, each in its public shape.
func Body[T, V any](c *Codec, r Request, rows []T, place func(T) Place, shape func(T) V) ([]byte, error) {
	more := len(rows) > r.Limit
	if more {
		rows = rows[:r.Limit]
	}
	data := make([]json.RawMessage, len(rows))
	for i, row := range rows {
		body, err := httpx.Encode(shape(row))
		if err != nil {
			return nil, err //nolint:wrapcheck // says what it is
		}
		data[i] = body
	}
	next := ""
	if more {
		next = c.Next(r, r.position(place(rows[len(rows)-1])))
	}
	return httpx.ListBody(data, more, next), nil
}

// Send answers a list with Body.
func Send[T, V any](c *gin.Context, pages *Codec, r Request, rows []T, place func(T) Place, shape func(T) V) error {
	body, err := Body(pages, r, rows, place, shape)
	if err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusOK, "", body) //nolint:wrapcheck // an answer
}

func (r Request) position(p Place) Position {
	if r.Updated {
		return Position{At: p.Updated, ID: p.ID}
	}
	return Position{At: p.Created, ID: p.ID}
}
