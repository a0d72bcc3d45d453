package api

import (
	"cmp"
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

// detailPage shows one resource with its actions, its related resources, and its history.
func detailPage(r *domain.Resource) handler {
	return func(p *page) error {
		p.Resource = r.Name
		id := p.c.Param("id")
		o, err := p.app.Get(p.r.Context(), r, id)
		if err != nil {
			return err
		}
		out := pages.DetailView{Resource: r, ID: id, Title: r.TitleOf(o), Actions: p.actions(r, o)}
		var fields []string
		for _, s := range r.Sections {
			fields = append(fields, s.Fields...)
		}
		values := p.values(fields, o)
		if o.Text("status") != "" {
			out.Status = values.Of(o, "status")
		}
		for _, s := range r.Sections {
			out.Sections = append(out.Sections, p.section(values, o, s)...)
		}
		if r.Name == "packages" {
			out.Links = append(out.Links, pages.LinkView{Text: p.T("page_prices"), Href: p.workspace.Path("prices") + "?" + url.Values{"package_id": {id}}.Encode()})
		}
		if r.Update != "" && p.can(r.Update) {
			out.Edit = p.workspace.Path(r.Name + "/" + id + "/edit")
		}
		if r.PDF != "" {
			out.PDF = p.workspace.Path(r.Name + "/" + id + "/pdf")
		}
		if err := p.addDetails(&out, o); err != nil {
			return err
		}
		p.live = r.Events
		return p.show(http.StatusOK, pages.Detail(p.frame(""), out))
	}
}

// addDetails adds the related resources, the deliveries, and the history of a resource.
func (p *page) addDetails(out *pages.DetailView, o domain.Object) error {
	out.Requests = p.requestsAbout(out.ID)
	return app.RunConcurrently(
		func() (err error) { out.Related, err = p.related(out.Resource, out.ID); return err },
		func() (err error) { out.Timeline, err = p.timeline(out.Resource, o); return err },
		func() (err error) {
			if out.Resource.Name == "endpoints" {
				out.Extra, err = p.deliveries(out.ID)
			}
			return err
		},
	)
}

// section returns a group of values. A group without any value is omitted.
func (s *session) section(values view.Values, o domain.Object, section domain.Section) []pages.SectionView {
	out := pages.SectionView{Name: section.Name}
	any := false
	for _, name := range section.Fields {
		one := values.Of(o, name)
		any = any || one.Kind != view.Nothing
		if one.Kind == view.Paid && s.can("reverseInvoicePayment") {
			one.Href = s.workspace.Path("invoices/" + o.Text("id"))
		}
		if one.Kind != view.Nothing || section.Name != "times" && name != "rounding_amount" {
			out.Values = append(out.Values, one)
		}
	}
	if !any {
		return nil
	}
	return []pages.SectionView{out}
}

// actions returns the actions that the role can run on a resource. An action that the resource's state does not allow has the
// reason.
func (s *session) actions(r *domain.Resource, o domain.Object) []pages.ActionView {
	var out []pages.ActionView
	for _, a := range r.Actions {
		if !s.can(a.Operation) {
			continue
		}
		one := pages.ActionView{Name: a.Name, Danger: a.Danger, Href: s.actionAddress(r, a, o.Text("id"))}
		if one.Why = s.refusal(&a, o); one.Why != "" {
			one.Href = ""
		}
		if a.Fixed["status"] != "" && a.Fixed["status"] == o.Text("status") {
			continue
		}
		out = append(out, one)
	}
	return out
}

// refusal returns why the state of a resource does not allow an action, or "" if it does.
func (s *session) refusal(a *domain.Action, o domain.Object) string {
	switch {
	case !a.AllowedIn(o.Text("status")):
		return s.T("only_when", "Status", s.statusTexts(a.From))
	case a.Unless != "" && o.Text(a.Unless) != "":
		return s.T("only_without_quote")
	case a.Started && !domain.Started(o, s.workspace.Now(s.server.Now())):
		return s.T("only_when_started")
	}
	return ""
}

// requestsAbout returns the address of the API requests about a resource, or "" if the role cannot see them.
func (s *session) requestsAbout(id string) string {
	if !s.can("listRequestLogs") {
		return ""
	}
	return s.workspace.Path("requests") + "?" + url.Values{"object_id": {id}}.Encode()
}

// timelineRows is how many lines the timeline of a resource has, newest first.
const timelineRows = 20

// timelineChain is how many other resources of the same chain the timeline includes.
const timelineChain = 5

// chained are the fields that refer to resources of the same transaction: the lead of a quote, the invoices of a booking.
var chained = []string{"lead_id", "quote_id", "quote_ids", "booking_id", "converted_booking_id", "invoice_id", "invoice_ids"}

// timeline returns the history of a resource and its chain: its events with the fields that they changed, and the actors from the
// audit log.
func (s *session) timeline(r *domain.Resource, o domain.Object) ([]pages.TimelineItem, error) {
	if !r.Events {
		return nil, nil
	}
	objectIDs := []string{o.Text("id")}
	for _, name := range chained {
		if id := o.Text(name); id != "" {
			objectIDs = append(objectIDs, id)
		}
		objectIDs = append(objectIDs, o.Texts(name)...)
	}
	lines, err := s.app.Timeline(s.r.Context(), objectIDs[:min(len(objectIDs), timelineChain+1)], s.can("listEvents"), timelineRows)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, l := range lines {
		names = append(names, l.Actor, l.Object)
	}
	nameOf := s.app.Names.Of(s.r.Context(), names)
	out := make([]pages.TimelineItem, 0, len(lines))
	for _, l := range lines {
		one := pages.TimelineItem{At: s.DateTime(l.At), Action: l.Action, Who: cmp.Or(nameOf[l.Actor], s.Actor(l.Actor))}
		fields := make([]string, 0, len(l.Fields))
		for _, name := range l.Fields {
			fields = append(fields, s.Label(name))
		}
		one.What = strings.Join(fields, ", ")
		if l.Event != "" {
			one.Href = s.workspace.Path("events/" + l.Event)
		}
		if other := domain.ResourceOf(l.Object); l.Object != objectIDs[0] && other != nil && s.can(other.Get) {
			one.Of, one.OfHref = cmp.Or(nameOf[l.Object], l.Object), s.workspace.Path(other.Name+"/"+l.Object)
		}
		out = append(out, one)
	}
	return out, nil
}

// actionAddress returns the address of the action's form. For an action that creates another resource, it is the form of that
// resource.
func (s *session) actionAddress(r *domain.Resource, a domain.Action, id string) string {
	if !a.Page {
		return s.workspace.Path(r.Name + "/" + id + "/" + a.Name)
	}
	for _, other := range domain.Resources {
		if other.Create == a.Operation {
			query := url.Values{a.Body: {id}}
			for name, value := range a.Fixed {
				query.Set(name, value)
			}
			return s.workspace.Path(other.Name+"/new") + "?" + query.Encode()
		}
	}
	return ""
}

// related returns the lists of the resources related to a resource. Lists that the role cannot see are omitted.
func (s *session) related(r *domain.Resource, id string) ([]pages.RelatedView, error) {
	lists, calls := make([]pages.RelatedView, len(r.Related)), make([]func() error, len(r.Related))
	for i, rel := range r.Related {
		calls[i] = func() error {
			other := domain.ResourceNamed(rel.Resource)
			if !s.can(other.List) {
				return nil
			}
			query := url.Values{rel.Filter: {id}}
			all := s.workspace.Path(other.Name) + "?" + query.Encode()
			query.Set("limit", strconv.Itoa(relatedRows))
			list, err := s.app.List(s.r.Context(), other.List, query)
			if app.Unanswered(err) {
				return nil // the page shows the rest
			}
			lists[i] = pages.RelatedView{Resource: other, Rows: s.rows(other, list.Data[:min(len(list.Data), relatedRows)]), All: all, More: list.HasMore}
			return err
		}
	}
	err := app.RunConcurrently(calls...)
	return slices.DeleteFunc(lists, func(l pages.RelatedView) bool { return len(l.Rows) == 0 }), err
}
