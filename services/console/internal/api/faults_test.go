package api_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"holdfast.dev/libs/forms"

	"holdfast.dev/services/console/internal/domain"
)

// depths returns the paths of fields and of all their nested fields, and of one field that no form contains.
func depths(fields []forms.Field) []string {
	out := []string{"nowhere", "nowhere.0.inner"}
	var walk func(f forms.Field, at string)
	walk = func(f forms.Field, at string) {
		out = append(out, at)
		for _, sub := range f.Fields {
			walk(sub, at+"."+sub.Name)
		}
		if f.Items != nil {
			walk(*f.Items, at+".0")
			walk(*f.Items, at+".1")
		}
		if domain.InputOf(f) == domain.HoursInput {
			for _, day := range domain.Weekdays {
				out = append(out, at+"."+day, at+"."+day+".0", at+"."+day+".0.0", at+"."+day+".1.1")
			}
		} else if len(f.Fields) == 0 && f.Items == nil && (f.Kind == "object" || f.Kind == "") { // with arbitrary names
			out = append(out, at+".room", at+".0", at+".room.inner")
		}
	}
	for _, f := range fields {
		walk(f, f.Name)
	}
	return out
}

// shower returns the innermost input of a page whose name is a path or a prefix of it; "" if there is none.
func shower(doc *html.Node, path string) string {
	names := map[string]bool{}
	for _, n := range all(doc, "input", "textarea", "select") {
		if attr(n, "type") != "hidden" {
			name := attr(n, "name")
			for names[name] = true; strings.Contains(name, "."); names[name] = true { // a group of inputs has the common part of their names
				name = name[:strings.LastIndexByte(name, '.')]
			}
		}
	}
	for ; path != ""; path = path[:max(strings.LastIndexByte(path, '.'), 0)] {
		if names[path] && !strings.HasSuffix(path, ".0") && !strings.HasSuffix(path, ".1") { // a row cannot show an error itself
			return path
		}
	}
	return ""
}

// messageAt returns the message next to an input of a page.
func messageAt(doc *html.Node, name string) string {
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && attr(n, "id") == "wrong-"+name {
			return textOf(n)
		}
	}
	return ""
}

// inputOf returns the name of the input of a field in the form of a path.
func inputOf(path, field string) string {
	if name := domain.InstantInputs[field]; name != "" && strings.HasPrefix(path, "/bookings/") {
		return name
	}
	return field
}

// TestEachFaultIsShown checks that each form shows the error of each field, at every depth: next to the input of the field or of
// one that contains it, else above the form.
func TestEachFaultIsShown(t *testing.T) {
	t.Parallel()
	checked := map[string]int{}
	for _, route := range newPlatform(t, options{}).routes() {
		method, path, _ := strings.Cut(route, " ")
		if method != http.MethodPost || slices.Contains(reads, route) {
			continue
		}
		p := newPlatform(t, options{})
		p.lax = true
		at := address("alpha", "test", path)
		form := p.changedForm(at)
		p.forget()
		p.post("owner", at, form)
		op := parts().operations[p.only(t).ID]
		for _, broken := range depths(op.Body) {
			checked[path]++
			says := "Broken at " + broken + "."
			p.setResponse(op.ID, refusal(http.StatusUnprocessableEntity, "invalid_request", map[string][]string{broken: {says}}))
			w := p.post("owner", at, form)
			doc := parse(t, w.Body.String())
			once := strings.Count(textOf(doc), says) == 1 || strings.Count(textOf(doc), says) == 2 && strings.Contains(alerts(doc), says) && messageAt(doc, shower(doc, inputOf(path, broken))) == says
			if w.Code != http.StatusUnprocessableEntity || !once {
				t.Errorf("%s, %s: %d, said %d times: %s", path, broken, w.Code, strings.Count(textOf(doc), says), alerts(doc))
				continue
			}
			name := shower(doc, inputOf(path, broken))
			if name == "" {
				if !strings.Contains(alerts(doc), says) {
					t.Errorf("%s, %s: not above the form", path, broken)
				}
				continue
			}
			if note := messageAt(doc, name); note != says {
				t.Errorf("%s, %s: not next to %s", path, broken, name)
			}
		}
	}
	if len(checked) < 60 || checked["/units/new"] < 30 {
		t.Errorf("%d forms, %d fields of a unit", len(checked), checked["/units/new"])
	}
}

// TestRefusedFormsMoveTheFocus checks that a refused form has a summary of its errors that takes the focus and links to the inputs,
// and that the title of the document states the failure.
func TestRefusedFormsMoveTheFocus(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	path := where + "units/new"
	form := p.fill("owner", path, url.Values{"name": {"Boat"}, "opening_hours.mon": {"noon"}, "opening_hours.always": nil})
	if fresh := parse(t, p.get("owner", path).Body.String()); strings.Contains(textOf(all(fresh, "title")[0]), "Error") || alerts(fresh) != "" {
		t.Errorf("a new form has errors: %q", alerts(fresh))
	}
	doc := parse(t, p.post("owner", path, form).Body.String())
	if title := textOf(all(doc, "title")[0]); title != "Error: New unit · Holdfast" {
		t.Errorf("the title is %q", title)
	}
	var summaries []*html.Node
	for _, n := range all(doc, "div", "p") {
		if attr(n, "role") == "alert" {
			summaries = append(summaries, n)
		}
	}
	if len(summaries) != 1 || attr(summaries[0], "tabindex") != "-1" || !slices.ContainsFunc(summaries[0].Attr, func(a html.Attribute) bool { return a.Key == "autofocus" }) {
		t.Fatalf("%d summaries", len(summaries))
	}
	links := all(summaries[0], "a")
	if len(links) != 1 || attr(links[0], "href") != "#in-opening_hours.mon" || !strings.HasPrefix(textOf(links[0]), "Monday: Must be times") || attr(named(doc, "opening_hours.mon"), "id") != "in-opening_hours.mon" {
		t.Errorf("the summary is %q", textOf(summaries[0]))
	}
	for _, n := range all(doc, "input", "select", "textarea") { // each input can be the target of a link
		if name := attr(n, "name"); attr(n, "type") != "hidden" && attr(n, "type") != "search" && attr(n, "type") != "checkbox" && name != "language" && name != "theme" && name != "q" && attr(n, "id") == "" {
			t.Errorf("%s has no id", name)
		}
	}
	p.setResponse("createUnit", refusal(http.StatusConflict, "limit_reached", nil))
	form.Set("opening_hours.mon", "9-17")
	if doc := parse(t, p.post("owner", path, form).Body.String()); alerts(doc) == "" || len(all(doc, "title")) == 0 || !strings.HasPrefix(textOf(all(doc, "title")[0]), "Error: ") {
		t.Errorf("another refusal: %q", alerts(doc))
	}
}

// TestFurtherFaultsAreAboveTheForm checks that a field shows its first error and that the other errors are above the form, up to a
// maximum number.
func TestFurtherFaultsAreAboveTheForm(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	faults := map[string][]string{"metadata.hall": {"One, it is.", "Two, it is."}, "metadata.room": {"Three, it is."}, "notes": {"Four, it is."}}
	p.setResponse("updateBooking", refusal(http.StatusUnprocessableEntity, "invalid_request", faults))
	path := address("alpha", "test", "/bookings/:id/edit")
	form := p.fill("owner", path, url.Values{"notes": {"x"}, "metadata": {`{"hall": "1", "room": "2"}`}})
	doc := parse(t, p.post("owner", path, form).Body.String())
	if note, above := messageAt(doc, "metadata"), alerts(doc); note != "One, it is." || above != "Check your input Notes: Four, it is. Metadata: One, it is. Metadata: Two, it is. Metadata: Three, it is." {
		t.Errorf("next to %q, above %q", note, above)
	}
	many := map[string][]string{}
	for i := range 500 {
		many["x"+strings.Repeat("y", i)] = []string{"Bad, it is."}
	}
	p.setResponse("updateBooking", refusal(http.StatusUnprocessableEntity, "invalid_request", many))
	if above := alerts(parse(t, p.post("owner", path, form).Body.String())); strings.Count(above, "Bad, it is.") != 20 || !strings.Contains(above, "and 480 more") {
		t.Errorf("%q", above)
	}
}

// TestFaultsOfLinesBehindAnEmptyRow checks that the error of a line is next to the submitted line, even if the form has an empty
// row before it.
func TestFaultsOfLinesBehindAnEmptyRow(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.setResponse("createInvoice", refusal(http.StatusUnprocessableEntity, "invalid_request", map[string][]string{"line_items.0.quantity": {"Too many, it is."}}))
	form := p.fill("owner", where+"invoices/new", url.Values{
		"customer_id": {"cu_01k00000000000000000000001"}, "line_items.1.description": {"Towel"}, "line_items.1.quantity": {"9"}, "line_items.1.unit_amount": {"3.50"},
	})
	for range 2 {
		doc := parse(t, p.post("owner", where+"invoices/new", form).Body.String())
		form = formOf(t, doc, where+"invoices/new")
		if messageAt(doc, "line_items.0.quantity") == "" || form.Get("line_items.0.description") != "Towel" || form.Get("line_items.0.quantity") != "9" || form.Get("line_items.1.description") != "" {
			t.Errorf("%v", form)
		}
		form.Del("form")
	}
	form.Set("line_items.0.quantity", "")
	p.forget()
	doc := parse(t, p.post("owner", where+"invoices/new", form).Body.String())
	if note := messageAt(doc, "line_items.0.quantity"); note != "Is required." || len(p.written()) != 0 {
		t.Errorf("a row without its quantity is sent: %d calls", len(p.written()))
	}
}

// TestFaultsOfFilters checks that a list with invalid filters shows the error in place of its rows and preserves the entered
// filters.
func TestFaultsOfFilters(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.lax = true
	for i := range domain.Resources {
		r := &domain.Resources[i]
		for _, name := range r.Filters {
			p.setResponse(r.List, func(c call) response {
				if c.Query.Has(name) && c.Query.Get(name) != "true" { // the call for the list, not the one for the choices
					return refusal(http.StatusUnprocessableEntity, "invalid_request", map[string][]string{name: {"It is wrong."}})(c)
				}
				return response{http.StatusOK, map[string]any{"data": []any{}, "has_more": false}}
			})
			w := p.get("owner", where+r.Name+"?"+name+"=2027-01-02T03:04")
			doc := parse(t, w.Body.String())
			if w.Code != http.StatusUnprocessableEntity || !strings.Contains(alerts(doc), ": It is wrong.") || named(doc, name) == nil {
				t.Errorf("%s of %s: %d: %s", name, r.Name, w.Code, alerts(doc))
			}
		}
	}
}
