package view

import (
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
)

// Feed is the public shape of a calendar feed; the mode is the caller's.
func Feed(f domain.Feed, mode api.Mode) api.CalendarFeed {
	return api.CalendarFeed{
		Id: f.ID.String(), Object: api.CalendarFeedObjectCalendarFeed, Name: f.Name, UnitId: idOrNull(f.UnitID),
		IncludeDetails: f.IncludeDetails, CreatedBy: textOrNull(f.CreatedBy), Mode: mode, Version: f.Version, CreatedAt: f.CreatedAt.UTC(), UpdatedAt: f.UpdatedAt.UTC(),
	}
}

// FeedWithURL is the public shape of a new feed, with its address.
func FeedWithURL(f domain.FeedWithURL, mode api.Mode) api.CalendarFeedWithUrl {
	return api.CalendarFeedWithUrl{
		Id: f.ID.String(), Object: api.CalendarFeedWithUrlObjectCalendarFeed, Name: f.Name, UnitId: idOrNull(f.UnitID),
		IncludeDetails: f.IncludeDetails, CreatedBy: textOrNull(f.CreatedBy), Url: f.URL, Mode: mode, Version: f.Version,
		CreatedAt: f.CreatedAt.UTC(), UpdatedAt: f.UpdatedAt.UTC(),
	}
}
