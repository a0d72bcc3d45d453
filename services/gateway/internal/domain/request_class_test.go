package domain_test

import (
	"testing"

	"holdfast.dev/services/gateway/internal/domain"
)

func TestRequestClass(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method string
		status int
		sent   string
		want   string
	}{
		{"GET", 200, "application/json", domain.ClassRead},
		{"HEAD", 200, "application/json", domain.ClassRead},
		{"GET", 404, "application/json", domain.ClassRead},
		{"GET", 200, "text/csv; charset=utf-8", domain.ClassExport},
		{"GET", 200, "text/event-stream", domain.ClassStream},
		{"POST", 201, "application/json", domain.ClassWrite},
		{"PATCH", 422, "application/json", domain.ClassWrite},
		{"DELETE", 204, "", domain.ClassWrite},
		{"POST", 200, "text/event-stream", domain.ClassWrite},
		{"GET", 401, "application/json", domain.ClassInvalid},
		{"POST", 401, "application/json", domain.ClassInvalid},
		{"GET", 403, "application/json", domain.ClassRejected},
		{"POST", 429, "application/json", domain.ClassRejected},
		{"GET", 500, "application/json", domain.ClassRead},
	} {
		if got := domain.RequestClass(c.method, c.status, c.sent); got != c.want {
			t.Errorf("%s %d %s: %s, want %s", c.method, c.status, c.sent, got, c.want)
		}
	}
}
