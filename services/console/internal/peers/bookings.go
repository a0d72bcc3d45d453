package peers

import (
	"context"
	"net/http"
	"net/url"

	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/console/internal/domain"
)

const internal = "/internal/v1/"

// Calendar returns the bookings of a range of days.
func (s *Services) Calendar(ctx context.Context, query url.Values) (out domain.Bookings, err error) {
	err = s.Clients["bookings"].Do(ctx, http.MethodGet, internal+"calendar?"+query.Encode(), nil, &out)
	return out, err
}

// Statistics returns the totals of the days in a range.
func (s *Services) Statistics(ctx context.Context, query url.Values) (out internalapi.BookingStatistics, err error) {
	err = s.Clients["bookings"].Do(ctx, http.MethodGet, internal+"statistics?"+query.Encode(), nil, &out)
	return out, err
}
