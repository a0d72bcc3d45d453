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

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/obs"

	"holdfast.dev/services/console/internal/app"
	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
	"holdfast.dev/services/console/internal/view"
)

// listPage shows a list with its filters.
func listPage(r *domain.Resource) page {
	return func(v *visit) error {
		if !v.sees(r) {
			return domain.ErrForbidden
		}
		filters := v.filters(r)
		query, err := v.listQuery(r, filters)
		if err != nil {
			return err
		}
		var list domain.List
		var saved []pages.SavedView
		var choices view.Choices
		var faults []string
		err = app.Together(
			func() (err error) {
				list, err = v.app.List(v.r.Context(), r.List, query)
				if faults = v.summary(v.faults(err)); len(faults) > 0 {
					return nil
				}
				return err
			},
			func() error { saved = v.savedViews(r); return nil },
			func() (err error) { choices, err = v.choices(filters); return err },
		)
		if err != nil {
			return err
		}
		given := v.given(filters)
		out := pages.ListView{
			Resource: r, Columns: r.Columns, Rows: v.rows(r, list.Data), Filtered: len(given) > 0, Paged: v.r.URL.Query().Has("cursor"),
			CanMake: r.New != nil && v.may(r.Create), Values: given, Views: saved, Links: v.listLinks(r), Faults: faults,
		}
		out.Filters = v.filterInputs(filters, given, choices)
		if list.HasMore {
			out.Next = list.NextCursor
		}
		if v.s.Operations[r.List].CSV {
			out.CSV = v.w.Path(r.Name+".csv") + "?" + given.Encode()
		}
		v.live = r.Events && !out.Paged
		status := http.StatusOK
		if len(faults) > 0 {
			status = http.StatusUnprocessableEntity
		}
		return v.show(status, pages.List(v.frame(""), out))
	}
}

// listLinks lead from a list to what shows the same in another way.
func (v *visit) listLinks(r *domain.Resource) []pages.LinkView {
	switch r.Name {
	case "leads":
		return []pages.LinkView{{Text: v.T("board"), Href: v.w.Path("board")}}
	case "refunds":
		return []pages.LinkView{{Text: v.T("page_owed-refunds"), Href: v.w.Path("owed-refunds")}}
	case "holiday-rules":
		return []pages.LinkView{{Text: v.T("page_prices"), Href: v.w.Path("prices")}}
	}
	return nil
}

// savedViews are the views of a list that the operator has saved. Without an answer there are none.
func (v *visit) savedViews(r *domain.Resource) []pages.SavedView {
	if len(r.Filters) == 0 {
		return nil
	}
	list, err := v.app.List(v.r.Context(), "listViews", url.Values{"list": {r.Name}})
	if err != nil {
		obs.Add(v.r.Context(), slog.String("views", err.Error()))
	}
	var out []pages.SavedView
	for _, o := range list.Data {
		out = append(out, pages.SavedView{ID: o.Text("id"), Name: o.Text("name"), Href: v.w.Path(r.Name) + "?" + o.Text("query")})
	}
	return out
}

// saveView keeps the filters of a list under a name.
func saveView(v *visit) error {
	r := domain.ResourceNamed(v.form.Get("list"))
	if r == nil {
		return domain.ErrNotFound
	}
	query, err := url.ParseQuery(v.form.Get("query"))
	if err != nil {
		return domain.ErrStaleForm
	}
	_, err = v.submit(domain.Request{Operation: "saveView", Body: map[string]any{"list": r.Name, "name": strings.TrimSpace(v.form.Get("name")), "query": query.Encode()}})
	if err != nil {
		return err
	}
	query.Set("done", "view_saved")
	return v.redirect(v.w.Path(r.Name) + "?" + query.Encode())
}

func deleteView(v *visit) error {
	r := domain.ResourceNamed(v.form.Get("list"))
	if r == nil {
		return domain.ErrNotFound
	}
	if _, err := v.submit(domain.Request{Operation: "deleteView", Params: []string{v.c.Param("id")}}); err != nil {
		return err
	}
	return v.done(r.Name, "view_deleted")
}

// filters are the query parameters that a list is filtered by.
func (v *visit) filters(r *domain.Resource) []contract.Field {
	return v.fieldsOfQuery(r.List, r.Filters...)
}

// fieldsOfQuery are the query parameters of an operation, in the order of names.
func (v *visit) fieldsOfQuery(operation string, names ...string) []contract.Field {
	out := make([]contract.Field, 0, len(names))
	for _, name := range names {
		out = append(out, v.s.Operations[operation].Param(name))
	}
	return out
}

// given are the filters of this page that have a value.
func (v *visit) given(filters []contract.Field) url.Values {
	out := url.Values{}
	for _, f := range filters {
		if s := strings.TrimSpace(v.r.URL.Query().Get(f.Name)); s != "" {
			out.Set(f.Name, s)
		}
	}
	return out
}

// listQuery is the query of the API for this page.
func (v *visit) listQuery(r *domain.Resource, filters []contract.Field) (url.Values, error) {
	out := v.given(filters)
	for _, f := range filters {
		if s := out.Get(f.Name); s != "" && domain.InputOf(f) == domain.DatetimeInput {
			at, err := time.ParseInLocation("2006-01-02T15:04", s, v.Zone)
			if err != nil {
				out.Del(f.Name)
				continue
			}
			out.Set(f.Name, at.Format(time.RFC3339))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.r.URL.Query())) { // links of other pages filter by what a form does not show
		if !out.Has(name) && v.s.Operations[r.List].Param(name).Name != "" && name != "limit" && name != "expand" {
			if s := v.r.URL.Query().Get(name); s != "" {
				out.Set(name, s)
			}
		}
	}
	for name, value := range r.ListQuery {
		if name != "expand" || v.expands(value) {
			out.Set(name, value)
		}
	}
	return out, nil
}

// expands reports whether the role may see what a list is expanded with.
func (v *visit) expands(what string) bool { return v.w.Has([]string{"read:" + what + "s"}) }

// filterInputs are the inputs of filters: each may be left open.
func (v *visit) filterInputs(filters []contract.Field, given url.Values, choices view.Choices) []view.Input {
	out := v.Inputs(filters, given, choices)
	for i, in := range out {
		if in.Kind == domain.ChoicesInput || in.Kind == domain.CheckInput || in.Kind == domain.ChoiceInput {
			out[i].Options = v.filterOptions(in)
		}
	}
	return out
}

// filterOptions are the choices of a filter that takes one of several values.
func (v *visit) filterOptions(in view.Input) []view.Option {
	any := view.Option{Value: "", Text: v.T("any")}
	if in.Kind == domain.CheckInput {
		return []view.Option{any, {Value: "true", Text: v.T("yes")}, {Value: "false", Text: v.T("no")}}
	}
	if in.Kind == domain.ChoiceInput && len(in.Options) > 0 && in.Options[0].Value == "" {
		in.Options = in.Options[1:]
	}
	return append([]view.Option{any}, in.Options...)
}

// may reports whether the role may make a call.
func (v *visit) may(operation string) bool {
	return v.w.Can(v.s.Operations[operation])
}

// rows turns resources into rows of their list.
func (v *visit) rows(r *domain.Resource, data []domain.Object) []pages.RowView {
	values := v.values(r.Columns, data...)
	rows := make([]pages.RowView, len(data))
	for i, o := range data {
		if r.HasPage() {
			rows[i].Href = v.w.Path(r.Name + "/" + o.Text("id"))
		}
		for _, name := range r.Columns {
			rows[i].Values = append(rows[i].Values, values.Of(o, name))
		}
	}
	return rows
}

// values knows the names of the resources to which the fields of the objects lead.
func (v *visit) values(fields []string, objects ...domain.Object) view.Values {
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
	called := v.app.Names.Of(v.r.Context(), slices.Compact(ids))
	return view.Values{Format: v.Format, Path: v.w.Path, Called: func(id string) string { return called[id] }}
}

// byteOrderMark marks a file as UTF-8. Without it spreadsheet programs assume a legacy code page.
const byteOrderMark = "\ufeff"

// exportCSV hands a list on as CSV, while it arrives.
func exportCSV(r *domain.Resource) page {
	return func(v *visit) error {
		query, err := v.listQuery(r, v.filters(r))
		if err != nil {
			return err
		}
		for _, name := range []string{"cursor", "limit", "expand"} {
			query.Del(name)
		}
		leave, err := v.s.downloads.Take(v.session)
		if err != nil {
			return err
		}
		defer leave()
		return v.download(domain.Request{Operation: r.List, Query: query}, "text/csv", r.Name+".csv", "attachment", byteOrderMark)
	}
}

// pdf hands a document on.
func pdf(r *domain.Resource) page {
	return func(v *visit) error {
		id := v.c.Param("id")
		return v.download(domain.Request{Operation: r.PDF, Params: []string{id}}, "application/pdf", id+".pdf", "inline", "")
	}
}

// download hands on what a service answers, behind a prefix.
func (v *visit) download(r domain.Request, accept, name, disposition, prefix string) error {
	body, mediaType, err := v.app.Services.Open(v.r.Context(), r, accept)
	if err != nil {
		return err
	}
	defer body.Close()
	v.s.site.Guard(v.c.Writer)
	h := v.c.Writer.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Content-Disposition", disposition+`; filename="`+name+`"`)
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox") // the browser's own viewer shows it
	v.c.Writer.WriteHeader(http.StatusOK)
	if _, err := io.Copy(v.c.Writer, io.MultiReader(strings.NewReader(prefix), body)); err != nil {
		panic(http.ErrAbortHandler) // a list that breaks off must not look whole
	}
	return nil
}

// suggestCustomers answers the customers whose names begin with what is being entered.
func suggestCustomers(v *visit) error {
	q := strings.TrimSpace(v.r.URL.Query().Get("customer_id"))
	var out []view.Option
	if len(q) > 1 && len(q) <= 200 {
		list, err := v.app.List(v.r.Context(), "listCustomers", url.Values{"q": {q}, "limit": {"10"}})
		if err != nil {
			return err
		}
		for _, o := range list.Data {
			out = append(out, view.Option{Value: o.Text("id") + " " + o.Text("name") + ", " + o.Text("email")})
		}
	}
	return v.show(http.StatusOK, pages.Options(out))
}
