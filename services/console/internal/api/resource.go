package api

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/forms"

	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
	"holdfast.dev/services/console/internal/view"
)

// newForm returns the form that creates a resource.
func (f *form) newForm(r *domain.Resource) (pages.FormView, []forms.Field) {
	f.Resource = r.Name
	address := f.workspace.Path(r.Name + "/new")
	if q := f.pageQuery(); len(q) > 0 {
		address += "?" + q.Encode()
	}
	given := f.r.URL.Query()
	fields := slices.DeleteFunc(f.fields(r.Create, r.New), func(field forms.Field) bool {
		if r.Name == "refunds" { // a payment is refunded through the gateway
			return field.Name == "method" && given.Has("payment_intent_id")
		}
		return slices.Contains(linked, field.Name) && !given.Has(field.Name)
	})
	return pages.FormView{Title: f.T("new_" + r.Name), Action: address, Back: f.workspace.Path(r.Name), Button: f.T("save")}, fields
}

// withoutUnit adds a box to the form of a booking that would hold no unit. It returns an error until the operator has checked it.
func (f *form) withoutUnit(out *pages.FormView, missing bool) error {
	if !missing {
		return nil
	}
	const name = "without_unit"
	out.Further = append(out.Further, view.Input{Name: name, Kind: domain.CheckInput, Label: f.T("without_unit"), Value: f.posted.Get(name)})
	if f.posted.Get(name) == "true" {
		return nil
	}
	return apperr.Field(name, "%s", f.T("without_unit_warning"))
}

// linked are the fields that a form has only if the linking page sets them.
var linked = []string{"lead_id", "booking_id"}

// newPage shows the form that creates a resource. The query contains its initial values.
func newPage(r *domain.Resource) handler {
	return func(p *page) error {
		if !p.can(r.Create) {
			return domain.ErrForbidden
		}
		if r.Fresh && !p.requireRecentSignIn() {
			return nil
		}
		out, fields := p.newForm(r)
		form := url.Values{}
		for _, f := range fields {
			if f.Kind == "boolean" && (f.Name == "active" || f.Name == "visible") {
				form.Set(f.Name, "true")
			}
			if given := p.r.URL.Query()[f.Name]; len(given) > 0 {
				form[f.Name] = given
			}
		}
		if err := p.customerOfLead(form); err != nil {
			return err
		}
		return p.showForm(http.StatusOK, out, fields, form, nil, "")
	}
}

// create creates a resource. The form's key makes a second click harmless.
func create(r *domain.Resource) handler {
	return func(p *page) error {
		if r.Fresh && p.can(r.Create) && !p.requireRecentSignIn() {
			return nil
		}
		out, fields := p.newForm(r)
		body, err := p.reader().Body(fields, p.posted)
		if err == nil {
			err = apperr.Join(p.reader().SetLastDay(body, p.posted, nil), p.withoutUnit(&out, body["unit_id"] == nil && (body["package_id"] != nil || body["service_id"] != nil) && r.Name == "bookings"), p.resolveCustomer(p.r.Context(), body))
		}
		var created domain.Object
		if err == nil {
			maps.DeleteFunc(body, func(_ string, value any) bool { return value == nil }) // a create does not accept null where null is not the default
			created, err = p.submit(domain.Request{Operation: r.Create, Body: body})
		}
		if err != nil {
			return p.refused(err, out, fields)
		}
		if p.server.Operations[r.Create].Secret {
			return p.showSecret(r, created)
		}
		return p.done(r.Name+"/"+created.Text("id"), "saved")
	}
}

// editForm returns the form that changes a resource.
func (f *form) editForm(r *domain.Resource, o domain.Object) (pages.FormView, []forms.Field) {
	f.Resource = r.Name
	address := f.workspace.Path(r.Name + "/" + o.Text("id"))
	return pages.FormView{Title: f.T("edit_what", "Name", r.TitleOf(o)), Action: address + "/edit", Back: address, Button: f.T("save"), Version: o.Version()}, f.fields(r.Update, r.Edit)
}

func editPage(r *domain.Resource) handler {
	return func(p *page) error {
		if !p.can(r.Update) {
			return domain.ErrForbidden
		}
		if r.Fresh && !p.requireRecentSignIn() {
			return nil
		}
		o, err := p.app.Get(p.r.Context(), r, p.c.Param("id"))
		if err != nil {
			return err
		}
		out, fields := p.editForm(r, o)
		p.once += fmt.Sprintf("-v%d", o.Version()) // a new key for the next version
		return p.showForm(http.StatusOK, out, fields, p.reader().Form(fields, o), nil, "")
	}
}

// update sends the changes of the form for the version that the form showed.
func update(r *domain.Resource) handler {
	return func(p *page) error {
		ctx, id := p.r.Context(), p.c.Param("id")
		o, err := p.app.Get(ctx, r, id)
		if err != nil {
			return err
		}
		out, fields := p.editForm(r, o)
		if r.Fresh && !p.requireRecentSignIn() {
			return nil
		}
		version, err := p.postedVersion(o)
		if err != nil {
			return err
		}
		out.Version = version
		body, err := p.reader().Changes(fields, p.posted, o)
		if err == nil {
			unit, named := body["unit_id"]
			err = apperr.Join(p.reader().SetLastDay(body, p.posted, o), p.withoutUnit(&out, named && unit == nil && r.Name == "bookings"), p.resolveCustomer(ctx, body))
		}
		if err == nil && len(body) > 0 {
			_, err = p.submit(domain.Request{Operation: r.Update, Params: []string{id}, Body: body, Version: version})
		}
		if err != nil {
			return p.refused(err, out, fields)
		}
		p.app.Names.Forget(ctx, id)
		return p.done(r.Name+"/"+id, "saved")
	}
}
