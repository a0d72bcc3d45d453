package api

import (
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"holdfast.dev/libs/forms"
	"holdfast.dev/libs/obs"

	"holdfast.dev/services/console/internal/app"
	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
	"holdfast.dev/services/console/internal/view"
)

// listPage shows a list with its filters.
func listPage(r *domain.Resource) handler {
	return func(p *page) error {
		if !p.sees(r) {
			return domain.ErrForbidden
		}
		p.Resource = r.Name
		filters := p.filters(r)
		query, err := p.listQuery(r, filters)
		if err != nil {
			return err
		}
		var list domain.List
		var saved []pages.SavedView
		var choices view.Choices
		var faults []string
		err = app.RunConcurrently(
			func() (err error) {
				list, err = p.app.List(p.r.Context(), r.List, query)
				if faults = p.summary(p.faults(err)); len(faults) > 0 {
					return nil
				}
				return err
			},
			func() error { saved = p.savedViews(r); return nil },
			func() (err error) { choices, err = p.choices(filters); return err },
		)
		if err != nil {
			return err
		}
		given := p.filterValues(filters)
		out := pages.ListView{
			Resource: r, Columns: r.Columns, Rows: p.rows(r, list.Data), Filtered: len(given) > 0, Paged: p.r.URL.Query().Has("cursor"),
			CanMake: r.New != nil && p.can(r.Create), Values: given, Views: saved, Links: p.listLinks(r), Faults: faults,
		}
		out.Filters = p.filterInputs(filters, given, choices)
		if list.HasMore {
			out.Next = list.NextCursor
		}
		if p.server.Operations[r.List].CSV {
			out.CSV = p.workspace.Path(r.Name+".csv") + "?" + given.Encode()
		}
		p.live = r.Events && !out.Paged
		status := http.StatusOK
		if len(faults) > 0 {
			status = http.StatusUnprocessableEntity
		}
		return p.show(status, pages.List(p.frame(""), out))
	}
}

// listLinks returns links from a list to other views of the same data.
func (s *session) listLinks(r *domain.Resource) []pages.LinkView {
	switch r.Name {
	case "leads":
		return []pages.LinkView{{Text: s.T("board"), Href: s.workspace.Path("board")}}
	case "refunds":
		return []pages.LinkView{{Text: s.T("page_owed-refunds"), Href: s.workspace.Path("owed-refunds")}}
	case "holiday-rules":
		return []pages.LinkView{{Text: s.T("page_prices"), Href: s.workspace.Path("prices")}}
	}
	return nil
}

// savedViews returns the operator's saved views of a list. If identity does not respond, there are none.
func (s *session) savedViews(r *domain.Resource) []pages.SavedView {
	if len(r.Filters) == 0 {
		return nil
	}
	list, err := s.app.List(s.r.Context(), "listViews", url.Values{"list": {r.Name}})
	if err != nil {
		obs.Add(s.r.Context(), slog.String("views", err.Error()))
	}
	var out []pages.SavedView
	for _, o := range list.Data {
		out = append(out, pages.SavedView{ID: o.Text("id"), Name: o.Text("name"), Href: s.workspace.Path(r.Name) + "?" + o.Text("query")})
	}
	return out
}

// saveView saves the filters of a list under a name.
func saveView(p *page) error {
	r := domain.ResourceNamed(p.posted.Get("list"))
	if r == nil {
		return domain.ErrNotFound
	}
	query, err := url.ParseQuery(p.posted.Get("query"))
	if err != nil {
		return domain.ErrStaleForm
	}
	_, err = p.submit(domain.Request{Operation: "saveView", Body: map[string]any{"list": r.Name, "name": strings.TrimSpace(p.posted.Get("name")), "query": query.Encode()}})
	if err != nil {
		return err
	}
	query.Set("done", "view_saved")
	return p.redirect(p.workspace.Path(r.Name) + "?" + query.Encode())
}

func deleteView(p *page) error {
	r := domain.ResourceNamed(p.posted.Get("list"))
	if r == nil {
		return domain.ErrNotFound
	}
	if _, err := p.submit(domain.Request{Operation: "deleteView", Params: []string{p.c.Param("id")}}); err != nil {
		return err
	}
	return p.done(r.Name, "view_deleted")
}

// filters returns the query parameters by which a list can be filtered.
func (s *session) filters(r *domain.Resource) []forms.Field {
	return s.queryFields(r.List, r.Filters...)
}

// queryFields returns the query parameters of an operation, in the order of names.
func (s *session) queryFields(operation string, names ...string) []forms.Field {
	out := make([]forms.Field, 0, len(names))
	for _, name := range names {
		out = append(out, s.server.Operations[operation].Param(name))
	}
	return out
}

// filterValues returns the filters of this page that have a value.
func (s *session) filterValues(filters []forms.Field) url.Values {
	out := url.Values{}
	for _, f := range filters {
		if text := strings.TrimSpace(s.r.URL.Query().Get(f.Name)); text != "" {
			out.Set(f.Name, text)
		}
	}
	return out
}

// listQuery returns the query of the API for this page.
func (s *session) listQuery(r *domain.Resource, filters []forms.Field) (url.Values, error) {
	out := s.filterValues(filters)
	for _, f := range filters {
		if text := out.Get(f.Name); text != "" && domain.InputOf(f) == domain.DatetimeInput {
			at, err := time.ParseInLocation("2006-01-02T15:04", text, s.Zone)
			if err != nil {
				out.Del(f.Name)
				continue
			}
			out.Set(f.Name, at.Format(time.RFC3339))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.r.URL.Query())) { // other pages link to filters that the form does not show
		if !out.Has(name) && s.server.Operations[r.List].Param(name).Name != "" && name != "limit" && name != "expand" {
			if text := s.r.URL.Query().Get(name); text != "" {
				out.Set(name, text)
			}
		}
	}
	for name, value := range r.ListQuery {
		if name != "expand" || s.canExpand(value) {
			out.Set(name, value)
		}
	}
	return out, nil
}

// canExpand reports whether the role can see the expanded resources of a list.
func (s *session) canExpand(what string) bool { return s.workspace.Has([]string{"read:" + what + "s"}) }

// filterInputs returns the inputs of filters. Each can be left empty.
func (s *session) filterInputs(filters []forms.Field, given url.Values, choices view.Choices) []view.Input {
	out := s.Inputs(filters, given, choices)
	for i, in := range out {
		if in.Kind == domain.ChoicesInput || in.Kind == domain.CheckInput || in.Kind == domain.ChoiceInput {
			out[i].Options = s.filterOptions(in)
		}
	}
	return out
}

// filterOptions returns the choices of a filter that accepts one of several values.
func (s *session) filterOptions(in view.Input) []view.Option {
	any := view.Option{Value: "", Text: s.T("any")}
	if in.Kind == domain.CheckInput {
		return []view.Option{any, {Value: "true", Text: s.T("yes")}, {Value: "false", Text: s.T("no")}}
	}
	if in.Kind == domain.ChoiceInput && len(in.Options) > 0 && in.Options[0].Value == "" {
		in.Options = in.Options[1:]
	}
	return append([]view.Option{any}, in.Options...)
}

// byteOrderMark marks a file as UTF-8. Without it spreadsheet programs assume a legacy code page.
const byteOrderMark = "\ufeff"

// exportCSV streams a list as CSV.
func exportCSV(r *domain.Resource) handler {
	return func(p *page) error {
		query, err := p.listQuery(r, p.filters(r))
		if err != nil {
			return err
		}
		for _, name := range []string{"cursor", "limit", "expand"} {
			query.Del(name)
		}
		leave, err := p.server.downloads.Take(p.auth)
		if err != nil {
			return err
		}
		defer leave()
		return p.download(domain.Request{Operation: r.List, Query: query}, "text/csv", r.Name+".csv", "attachment", byteOrderMark)
	}
}

// pdf forwards a document.
func pdf(r *domain.Resource) handler {
	return func(p *page) error {
		id := p.c.Param("id")
		return p.download(domain.Request{Operation: r.PDF, Params: []string{id}}, "application/pdf", id+".pdf", "inline", "")
	}
}

// download writes a prefix and then forwards a service's response.
func (p *page) download(r domain.Request, accept, name, disposition, prefix string) error {
	body, mediaType, err := p.app.Services.Open(p.r.Context(), r, accept)
	if err != nil {
		return err
	}
	defer body.Close()
	return p.sendFile(mediaType, disposition+`; filename="`+name+`"`, io.MultiReader(strings.NewReader(prefix), body))
}

// sendFile responds with a file, which the browser shows on its own without running anything.
func (p *page) sendFile(mediaType, disposition string, content io.Reader) error {
	p.server.site.Guard(p.c.Writer)
	h := p.c.Writer.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Content-Disposition", disposition)
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox") // the browser's own viewer shows it
	p.c.Writer.WriteHeader(http.StatusOK)
	if _, err := io.Copy(p.c.Writer, content); err != nil {
		panic(http.ErrAbortHandler) // an interrupted list must not look complete
	}
	return nil
}

// suggestCustomers returns the customers whose names begin with the entered text.
func suggestCustomers(p *page) error {
	q := strings.TrimSpace(p.r.URL.Query().Get("customer_id"))
	var out []view.Option
	if len(q) > 1 && len(q) <= 200 {
		list, err := p.app.List(p.r.Context(), "listCustomers", url.Values{"q": {q}, "limit": {"10"}})
		if err != nil {
			return err
		}
		out = customerOptions(list.Data)
	}
	return p.show(http.StatusOK, pages.Options(out))
}

// customerOptions returns suggestions of customers: their names and addresses, and also the ids of customers who have the same.
func customerOptions(list []domain.Object) []view.Option {
	texts, times := make([]string, len(list)), map[string]int{}
	for i, o := range list {
		texts[i] = strings.Trim(o.Text("name")+", "+o.First("email", "phone"), ", ")
		times[texts[i]]++
	}
	out := make([]view.Option, len(list))
	for i, o := range list {
		if out[i].Value = texts[i]; times[texts[i]] > 1 || o.First("email", "phone") == "" {
			out[i].Value += " " + o.Text("id")
		}
	}
	return out
}
