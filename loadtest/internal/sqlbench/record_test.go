package sqlbench

import (
	"errors"
	"testing"
)

func TestRoundTripsComeFromTheLineOfTheRoute(t *testing.T) {
	t.Parallel()
	const log = `not json
{"msg":"message","postgres_calls":3}
{"msg":"request","route":"/bookings","postgres_calls":7}
`
	if n, err := roundTrips(log, "/bookings"); err != nil || n != 7 {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := roundTrips(log, "/units"); !errors.Is(err, errRecord) {
		t.Errorf("another route: %v", err)
	}
}
