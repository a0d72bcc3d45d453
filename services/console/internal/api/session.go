package api

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"

	"holdfast.dev/services/console/internal/app"
	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
	"holdfast.dev/services/console/internal/view"
)

// session is a request of an operator's browser, with the signed-in operator.
type session struct {
	view.Format

	server    *Server
	app       *app.App
	c         *gin.Context
	r         *http.Request
	token     string           // of the session's cookie
	auth      *domain.Session  // the session of the token; nil until it is found
	workspace domain.Workspace // zero outside a workspace
}

// signedIn returns the session of the browser's cookie, or domain.ErrNoSession.
func (s *session) signedIn() (*domain.Session, error) {
	find := s.app.Services.Session
	switch {
	case s.token == "":
		return nil, domain.ErrNoSession
	case s.c.FullPath() == livePath: // a browser requests it repeatedly, even without an active user
		find = s.app.Services.WatchSession
	}
	return find(s.r.Context(), s.token, httpx.RequestID(s.c))
}

// proof returns the proof by which identity recognizes forms of the operator's pages; "" on a page without a session.
func (s *session) proof() string {
	if s.auth == nil {
		return ""
	}
	return s.auth.FormProof
}

// operator returns the id of the signed-in operator; "" on a page without a session.
func (s *session) operator() string {
	if s.auth == nil {
		return ""
	}
	return s.auth.Operator.ID
}

// can reports whether the role can make a call.
func (s *session) can(operation string) bool {
	return s.workspace.Can(s.server.Operations[operation])
}

// sees reports whether the role can see the list of a resource.
func (s *session) sees(r *domain.Resource) bool {
	return s.can(r.List) && (r.Needs == "" || s.workspace.HasPermission(r.Needs))
}

// address returns the address of the page, with its query. If a form was sent to an address without a page, it returns the nearest
// page above it.
func (s *session) address() string {
	path, route, ok := s.r.URL.EscapedPath(), s.c.FullPath(), true
	for s.r.Method == http.MethodPost && s.server.shown[strings.TrimPrefix(route, workspaces)] == nil && route != "/admin" && route != "" {
		path, route, ok = path[:strings.LastIndexByte(path, '/')], route[:strings.LastIndexByte(route, '/')], false
	}
	if !ok || s.r.URL.RawQuery == "" {
		return path
	}
	return path + "?" + s.r.URL.RawQuery
}

// pageQuery returns the query of the page without the key of its forms and the marker of stored input.
func (s *session) pageQuery() url.Values {
	q := s.r.URL.Query()
	q.Del("once")
	q.Del("draft")
	return q
}

// values returns the values of objects, with the names of the resources that their fields refer to.
func (s *session) values(fields []string, objects ...domain.Object) view.Values {
	var ids []string
	for _, o := range objects {
		for _, name := range fields {
			switch {
			case strings.HasSuffix(name, "_id") && o.Object(strings.TrimSuffix(name, "_id")) == nil:
				ids = append(ids, o.Text(name))
			case strings.HasSuffix(name, "_ids"):
				ids = append(ids, o.Texts(name)...)
			case name == "actor", name == "object":
				ids = append(ids, o.Text(name))
			case name == "applies_to":
				ids = append(append(ids, o.Object(name).Texts("service_ids")...), o.Object(name).Texts("package_ids")...)
			}
		}
	}
	slices.Sort(ids)
	nameOf := s.app.Names.Of(s.r.Context(), slices.Compact(ids))
	return view.Values{Format: s.Format, Path: s.workspace.Path, NameOf: func(id string) string { return nameOf[id] }}
}

// rows converts resources to rows of their list.
func (s *session) rows(r *domain.Resource, data []domain.Object) []pages.RowView {
	values := s.values(r.Columns, data...)
	rows := make([]pages.RowView, len(data))
	for i, o := range data {
		if r.HasPage() {
			rows[i].Href = s.workspace.Path(r.Name + "/" + o.Text("id"))
		}
		for _, name := range r.Columns {
			rows[i].Values = append(rows[i].Values, values.Of(o, name))
		}
	}
	return rows
}

func (s *session) statusTexts(list []string) string {
	texts := make([]string, len(list))
	for i, status := range list {
		texts[i] = s.Word(status)
	}
	return strings.Join(texts, ", ")
}

// explain describes an error in the operator's language. For an error without a text, it returns the API's message.
func (s *session) explain(e *apperr.Error) string {
	if text, ok := s.Find("error_" + e.Code); ok {
		return text
	}
	return e.Message
}
