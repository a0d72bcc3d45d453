package api

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/services/console/internal/app"
	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
	"holdfast.dev/services/console/internal/view"
)

// relatedRows is how many rows of another list the page of a resource shows.
const relatedRows = 10

// detailPage shows one resource with what can be done with it, what belongs to it and what has happened to it.
func detailPage(r *domain.Resource) page {
	return func(v *visit) error {
		id := v.c.Param("id")
		o, err := v.app.Get(v.r.Context(), r, id)
		if err != nil {
			return err
		}
		out := pages.DetailView{Resource: r, ID: id, Title: r.TitleOf(o), Actions: v.actions(r, o)}
		var fields []string
		for _, s := range r.Sections {
			fields = append(fields, s.Fields...)
		}
		values := v.values(fields, o)
		if o.Text("status") != "" {
			out.Status = values.Of(o, "status")
		}
		for _, s := range r.Sections {
			out.Sections = append(out.Sections, v.section(values, o, s)...)
		}
		if r.Update != "" && v.may(r.Update) {
			out.Edit = v.w.Path(r.Name + "/" + id + "/edit")
		}
		if r.PDF != "" {
			out.PDF = v.w.Path(r.Name + "/" + id + "/pdf")
		}
		if err := v.belongings(&out); err != nil {
			return err
		}
		v.live = r.Events
		return v.show(http.StatusOK, pages.Detail(v.frame(""), out))
	}
}

// belongings adds what belongs to a resource, its deliveries and what has happened to it.
func (v *visit) belongings(out *pages.DetailView) (err error) {
	if out.Related, err = v.related(out.Resource, out.ID); err != nil {
		return err
	}
	if out.Resource.Name == "endpoints" {
		if out.Extra, err = v.deliveries(out.ID); err != nil {
			return err
		}
	}
	out.Timeline, err = v.timeline(out.Resource, out.ID)
	return err
}

// section is a group of values; one without any value is left out.
func (v *visit) section(values view.Values, o domain.Object, s domain.Section) []pages.SectionView {
	out := pages.SectionView{Name: s.Name}
	any := false
	for _, name := range s.Fields {
		one := values.Of(o, name)
		any = any || one.Kind != view.Nothing
		if one.Kind == view.Paid && v.may("reverseInvoicePayment") {
			one.Href = v.w.Path("invoices/" + o.Text("id"))
		}
		if one.Kind != view.Nothing || s.Name != "times" {
			out.Values = append(out.Values, one)
		}
	}
	if !any {
		return nil
	}
	return []pages.SectionView{out}
}

// actions are what the role may do with a resource: what its state allows, and why it does not allow the rest.
func (v *visit) actions(r *domain.Resource, o domain.Object) []pages.ActionView {
	var out []pages.ActionView
	for _, a := range r.Actions {
		if !v.may(a.Operation) {
			continue
		}
		one := pages.ActionView{Name: a.Name, Danger: a.Danger, Href: v.actionAddress(r, a, o.Text("id"))}
		if status := o.Text("status"); !a.AllowedIn(status) {
			one.Href, one.Why = "", v.T("only_when", "Status", v.statusWords(a.From))
		}
		if a.Fixed["status"] != "" && a.Fixed["status"] == o.Text("status") {
			continue
		}
		out = append(out, one)
	}
	return out
}

// timelineRows is how many events the page of a resource shows, the newest.
const timelineRows = 20

// timeline are the newest events of a resource with the fields that they changed, for a role that may read events.
func (v *visit) timeline(r *domain.Resource, id string) ([]pages.TimelineItem, error) {
	if !r.Events || !v.may("listEvents") {
		return nil, nil
	}
	list, err := v.app.List(v.r.Context(), "listEvents", url.Values{"object_id": {id}, "limit": {strconv.Itoa(timelineRows)}})
	if app.Unanswered(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	values := v.values(nil)
	out := make([]pages.TimelineItem, 0, len(list.Data))
	for _, e := range list.Data {
		before := e.Object("data").Object("previous_attributes")
		fields := make([]string, 0, len(before))
		for _, name := range slices.Sorted(maps.Keys(before)) {
			fields = append(fields, v.Label(name))
		}
		out = append(out, pages.TimelineItem{
			At: values.Of(e, "created_at").Text, Action: e.Text("type"), What: strings.Join(fields, ", "), Href: v.w.Path("events/" + e.Text("id")),
		})
	}
	return out, nil
}

func (v *visit) statusWords(list []string) string {
	words := make([]string, len(list))
	for i, s := range list {
		words[i] = v.Word(s)
	}
	return strings.Join(words, ", ")
}

// actionAddress is that of the action's form; of one that makes another resource it is that resource's.
func (v *visit) actionAddress(r *domain.Resource, a domain.Action, id string) string {
	if !a.Page {
		return v.w.Path(r.Name + "/" + id + "/" + a.Name)
	}
	for _, other := range domain.Resources {
		if other.Create == a.Operation {
			return v.w.Path(other.Name+"/new") + "?" + url.Values{a.Body: {id}}.Encode()
		}
	}
	return ""
}

// related are the lists of what belongs to a resource. One that the role may not see is left out.
func (v *visit) related(r *domain.Resource, id string) ([]pages.RelatedView, error) {
	var out []pages.RelatedView
	for _, rel := range r.Related {
		other := domain.ResourceNamed(rel.Resource)
		if !v.may(other.List) {
			continue
		}
		query := url.Values{rel.Filter: {id}}
		all := v.w.Path(other.Name) + "?" + query.Encode()
		query.Set("limit", "10")
		list, err := v.app.List(v.r.Context(), other.List, query)
		if app.Unanswered(err) {
			continue // the page shows the rest
		}
		if err != nil {
			return nil, err
		}
		if len(list.Data) > 0 {
			out = append(out, pages.RelatedView{Resource: other, Rows: v.rows(other, list.Data[:min(len(list.Data), relatedRows)]), All: all, More: list.HasMore})
		}
	}
	return out, nil
}
