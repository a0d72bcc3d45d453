package api

import (
	"net/http"

	"holdfast.dev/services/console/internal/pages"
)

// quickStart is the first call of a developer, with the address of this platform.
func quickStart(v *visit) error {
	return v.show(http.StatusOK, pages.QuickStart(v.frame(""), pages.QuickStartView{
		Base: v.s.PublicURL + "/api/v1", Docs: v.s.PublicURL + "/docs", Keys: v.w.Path("keys"), MayKeys: v.may("createApiKey"), Mode: string(v.w.Mode),
	}))
}
