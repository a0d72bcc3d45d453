package command

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestALoopOfPages checks that each command that reads all pages ends with an error if the list does not go on.
func TestALoopOfPages(t *testing.T) {
	platform := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		cursor := r.URL.Query().Get("cursor")
		if strings.HasPrefix(r.URL.Path, "/empty") {
			cursor = ""
		} else if cursor == "" {
			cursor = "a"
		}
		_, _ = w.Write([]byte(`{"data":[{"id":"x"}],"has_more":true,"next_cursor":"` + cursor + `"}`))
	}))
	defer platform.Close()
	t.Setenv("HOLDFAST_API_KEY", "svc_test_key")
	for _, base := range []string{"/same/v1", "/empty/v1"} {
		t.Setenv("HOLDFAST_BASE_URL", platform.URL+base)
		for _, args := range [][]string{{"bookings", "list", "--all"}, {"units", "list", "--all", "-o", "table"}, {"export", "--folder", t.TempDir()}} {
			a, out := newApp()
			if code := a.Run(t.Context(), args); code != exitError || !strings.Contains(out.String(), errNoNewCursor.Error()) {
				t.Errorf("%s %v: %d %s", base, args, code, out)
			}
		}
	}
}
