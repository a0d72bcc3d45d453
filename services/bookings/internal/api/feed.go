package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// readCustomers is the scope that a feed with customer names requires in addition to its own scope.
const readCustomers = "read:customers"

// feeds defines how the handlers read and show a calendar feed.
func (a *API) feeds() rest.Collection[ids.ID[domain.FeedPrefix], domain.Feed] {
	return rest.Collection[ids.ID[domain.FeedPrefix], domain.Feed]{
		Parse: ids.Parse[domain.FeedPrefix],
		DB:    a.DB, Idempotency: a.Idempotency, Path: "calendar-feeds", NotFound: domain.ErrFeedNotFound, Load: store.Feed,
		Show: func(f domain.Feed, mode api.Mode) rest.Response {
			return rest.Response{ID: f.ID.String(), Version: f.Version, Body: view.Feed(f, mode)}
		},
	}
}

// newFeeds defines how the handlers show a new feed, including its address.
func (a *API) newFeeds() rest.Collection[ids.ID[domain.FeedPrefix], domain.FeedWithURL] {
	return rest.Collection[ids.ID[domain.FeedPrefix], domain.FeedWithURL]{
		Parse: ids.Parse[domain.FeedPrefix],
		DB:    a.DB, Idempotency: a.Idempotency, Path: "calendar-feeds", NotFound: domain.ErrFeedNotFound,
		Load: func(ctx context.Context, q pg.Q, id domain.FeedID) (domain.FeedWithURL, error) {
			f, err := store.Feed(ctx, q, id)
			return domain.FeedWithURL{Feed: f}, err
		},
		Show: func(f domain.FeedWithURL, mode api.Mode) rest.Response {
			return rest.Response{ID: f.ID.String(), Version: f.Version, Body: view.FeedWithURL(f, mode)}
		},
	}
}

func (a *API) createFeed(c *gin.Context) error {
	return rest.Create(c, a.newFeeds(), fromFeedCreate, rest.None, func(ctx context.Context, tx pg.Tx, in domain.FeedInput) (domain.FeedWithURL, error) {
		if in.IncludeDetails && !caller.FromContext(ctx).Has(readCustomers) {
			return domain.FeedWithURL{}, httpx.MissingScope(readCustomers)
		}
		return a.Feeds.Create(ctx, tx, in)
	})
}

func (a *API) getFeed(c *gin.Context) error { return rest.Get(c, a.feeds()) }

func (a *API) deleteFeed(c *gin.Context) error { return rest.Delete(c, a.feeds(), a.Feeds.Delete) }

func (a *API) listFeeds(c *gin.Context) error {
	unit, none := rest.FilterID[domain.UnitPrefix](httpx.Query(c), "unit_id")
	return page.Serve(c, a.Pages, a.DB, func(ctx context.Context, db pg.Q, r page.Request) (page.Rows[domain.Feed], error) {
		if none {
			return page.Rows[domain.Feed]{}, nil
		}
		return store.Feeds(ctx, db, unit, r)
	}, func(f domain.Feed) page.SortKey {
		return page.SortKey{ID: f.ID.UUID(), Created: f.CreatedAt, Updated: f.UpdatedAt}
	}, view.Feed)
}

// getCalendar returns the calendar of a token. Its entity tag is weak, because it identifies the content of the calendar and not
// its bytes.
func (a *API) getCalendar(c *gin.Context) error {
	body, err := a.Feeds.Calendar(c.Request.Context(), calendarToken(c.Param("token")))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	return httpx.Text(c, view.CalendarType, `W/"`+hex.EncodeToString(sum[:16])+`"`, body)
}

// calendarExists returns the 404 for an address that belongs to no feed.
func (a *API) calendarExists(ctx context.Context, file string) error {
	_, err := a.Feeds.Open(ctx, calendarToken(file))
	return err
}

// calendarToken returns the token in the last segment of an address, or "" if there is none.
func calendarToken(file string) string {
	token, _ := strings.CutSuffix(file, ".ics")
	if token == file {
		return ""
	}
	return token
}

func fromFeedCreate(b api.CalendarFeedCreate) domain.FeedInput {
	return domain.FeedInput{
		Name: b.Name, UnitID: patch.FromNullable(b.UnitId).Pointer(), IncludeDetails: b.IncludeDetails != nil && *b.IncludeDetails,
	}
}
