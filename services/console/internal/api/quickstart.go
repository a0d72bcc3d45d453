package api

import (
	"net/http"
	"slices"

	"holdfast.dev/proto"

	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
)

// quickCalls are the operations that the quick start calls.
var quickCalls = []string{"createCustomer", "listBookings", "streamEvents"}

// quickStart is the first call of a developer, with the address of this platform.
func quickStart(v *visit) error { return v.showQuickStart("") }

func (v *visit) showQuickStart(key string) error {
	out := pages.QuickStartView{Base: v.s.PublicURL + "/api/v1", Docs: v.s.PublicURL + "/docs", Mode: string(v.w.Mode), Key: key}
	if v.may("createApiKey") {
		out.Make = v.w.Path("quickstart")
	}
	return v.show(http.StatusOK, pages.QuickStart(v.frame(""), out))
}

// quickKey makes a key for the calls of the quick start, and shows them with it.
func quickKey(v *visit) error {
	if !v.may("createApiKey") {
		return domain.ErrForbidden
	}
	if !v.recent() {
		return nil
	}
	var scopes []string
	for _, id := range quickCalls {
		scopes = append(scopes, v.s.Operations[id].Scopes...)
	}
	for _, t := range proto.EventTypes { // the stream shows all
		scopes = append(scopes, t.Scope)
	}
	slices.Sort(scopes)
	o, err := v.submit(domain.Request{Operation: "createApiKey", Body: map[string]any{"name": v.T("page_quickstart"), "scopes": slices.Compact(scopes)}})
	if err != nil {
		return v.again(err, quickStart)
	}
	return v.showQuickStart(o.Text("secret"))
}
