package view

import (
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
)

// Feed returns the public body of a calendar feed in the caller's mode.
func Feed(f domain.Feed, mode api.Mode) api.CalendarFeed {
	return api.CalendarFeed{
		Id: f.ID.String(), Object: api.CalendarFeedObjectCalendarFeed, Name: f.Name, UnitId: idOrNull(f.UnitID),
		IncludeDetails: f.IncludeDetails, CreatedBy: textOrNull(&f.CreatedBy), Mode: mode, Version: f.Version, CreatedAt: f.CreatedAt.UTC(), UpdatedAt: f.UpdatedAt.UTC(),
	}
}

// FeedWithURL returns the public body of a new feed, including its address.
func FeedWithURL(f domain.FeedWithURL, mode api.Mode) api.CalendarFeedWithUrl {
	return api.CalendarFeedWithUrl{
		Id: f.ID.String(), Object: api.CalendarFeedWithUrlObjectCalendarFeed, Name: f.Name, UnitId: idOrNull(f.UnitID),
		IncludeDetails: f.IncludeDetails, CreatedBy: textOrNull(&f.CreatedBy), Url: f.URL, Mode: mode, Version: f.Version,
		CreatedAt: f.CreatedAt.UTC(), UpdatedAt: f.UpdatedAt.UTC(),
	}
}
