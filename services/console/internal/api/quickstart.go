package api

import (
	"net/http"
	"slices"

	"holdfast.dev/proto"

	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
)

// quickCalls are the operations in the quick start.
var quickCalls = []string{"createCustomer", "listBookings", "streamEvents"}

// quickStart shows a developer's first call, with the address of this platform.
func quickStart(p *page) error { return p.showQuickStart("") }

func (p *page) showQuickStart(key string) error {
	out := pages.QuickStartView{Base: p.server.PublicURL + "/api/v1", Docs: p.server.PublicURL + "/docs", Mode: string(p.workspace.Mode), Key: key}
	if p.can("createApiKey") {
		out.Make = p.workspace.Path("quickstart")
	}
	return p.show(http.StatusOK, pages.QuickStart(p.frame(""), out))
}

// quickKey creates a key for the calls of the quick start, and shows them with it.
func quickKey(p *page) error {
	if !p.can("createApiKey") {
		return domain.ErrForbidden
	}
	if !p.requireRecentSignIn() {
		return nil
	}
	var scopes []string
	for _, id := range quickCalls {
		scopes = append(scopes, p.server.Operations[id].Scopes...)
	}
	for _, t := range proto.EventTypes { // the stream shows all
		scopes = append(scopes, t.Scope)
	}
	slices.Sort(scopes)
	o, err := p.submit(domain.Request{Operation: "createApiKey", Body: map[string]any{"name": p.T("page_quickstart"), "scopes": slices.Compact(scopes)}})
	if err != nil {
		return p.showAgain(err, quickStart)
	}
	return p.showQuickStart(o.Text("secret"))
}
