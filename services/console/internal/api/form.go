package api

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/forms"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/web"

	"holdfast.dev/services/console/internal/app"
	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
	"holdfast.dev/services/console/internal/view"
)

// mostChoices is how many resources of a kind a form offers, which is the maximum number for a tenant.
const mostChoices = 2_000

const optionBytes = 60 // of a name in the choices of a form

// form is the form that a request submits and the one that its page shows.
type form struct {
	*session

	posted url.Values // the form that a POST sends
	draft  url.Values // what was entered into the page's form earlier; nil if nothing
	once   string     // the Idempotency-Key of the page's forms; "": each rendering gets a new one
}

// formKey binds forms to the session. Their tokens are valid as long as the session, because filling in a form can take hours.
func (f *form) formKey() web.FormKey {
	return web.FormKey{Secret: f.token, About: "holdfast console form"}
}

// readForm rejects a form from another site and a form without this session's token.
func (f *form) readForm() (err error) {
	f.posted, err = f.server.site.ReadForm(f.c.Writer, f.r, httpx.MaxBody)
	switch {
	case errors.Is(err, web.ErrFormTooLarge):
		return httpx.ErrTooLarge.WithCause(err)
	case errors.Is(err, web.ErrFormMalformed):
		return fmt.Errorf("%w: %w", domain.ErrStaleForm, err)
	case err != nil:
		return err
	}
	if form := f.posted.Get("form"); !f.formKey().Valid(form[strings.LastIndexByte(form, '.')+1:], f.server.Now()) {
		return domain.ErrStaleForm
	}
	domain.RestoreIDs(f.posted)
	if lang := f.posted.Get("lang"); lang != "" { // numbers are parsed and shown in the language in which they were entered
		f.Text = f.server.Messages.For(lang, f.Lang)
	}
	return nil
}

// reader returns a reader that converts forms to bodies in the tenant's time zone and currency, and in the language of the page.
func (f *form) reader() domain.Reader {
	return domain.Reader{Zone: f.Zone, Currency: f.workspace.Tenant.Currency, Notation: domain.Notation{Point: f.T("decimal_point"), Group: f.T("digit_group")}}
}

// fields returns the fields of an operation's body, in the order of names.
func (f *form) fields(operation string, names []string) []forms.Field {
	form := f.server.Operations[operation]
	out := make([]forms.Field, 0, len(names))
	for _, name := range names {
		field := form.Field(name)
		if field.Name == "" {
			field = domain.FormFields[name]
		}
		if field.Name != "" {
			out = append(out, field)
		}
	}
	return out
}

// choosable are the resources that forms offer, by the kind in a field's name.
var choosable = map[string]string{"service": "services", "unit": "units", "package": "packages", "endpoint": "endpoints"}

// choices returns the choices for the fields: resources, types of events, scopes. Kinds that the role cannot see are omitted.
func (f *form) choices(fields []forms.Field) (view.Choices, error) {
	out := view.Choices{}
	for _, field := range fields {
		switch field.Name {
		case "event_types", "types", "type":
			out[field.Name] = f.eventTypes(field)
		case "scopes":
			out[field.Name] = f.scopeOptions()
		case "overlap_seconds":
			for _, seconds := range []string{"0", "3600", "86400", "604800"} {
				out[field.Name] = append(out[field.Name], view.Option{Value: seconds, Text: f.T("overlap_" + seconds)})
			}
		}
		kinds := []string{domain.ResourceKind(field.Name)}
		if field.Name == "applies_to" {
			kinds = []string{"service", "package"}
		}
		for _, kind := range kinds {
			r := domain.ResourceNamed(choosable[kind])
			if r == nil || out[kind] != nil || !f.can(r.List) {
				continue
			}
			list, err := f.resourceOptions(r)
			if err != nil {
				return out, err
			}
			out[kind] = list
		}
	}
	return out, nil
}

// resourceOptions returns the active resources of a kind, by name.
func (f *form) resourceOptions(r *domain.Resource) ([]view.Option, error) {
	active := url.Values{"active": {"true"}}
	if r.Name == "endpoints" {
		active = url.Values{"status": {"enabled"}}
	}
	rows, err := f.app.All(f.r.Context(), r.List, active, mostChoices)
	if err != nil {
		return nil, err
	}
	out := []view.Option{}
	for _, o := range rows {
		out = append(out, view.Option{Value: o.Text("id"), Text: domain.Short(r.TitleOf(o), optionBytes)})
	}
	slices.SortFunc(out, func(a, b view.Option) int { return strings.Compare(a.Text, b.Text) })
	return out, nil
}

// addSelected adds the current values of a form to the choices, such as an inactive unit. Otherwise submitting the form would
// remove them.
func (f *form) addSelected(choices view.Choices, fields []forms.Field, form url.Values) {
	for _, field := range fields {
		names := []string{field.Name}
		if field.Name == "applies_to" {
			names = []string{field.Name + ".service_ids", field.Name + ".package_ids"}
		}
		for _, name := range names {
			kind := domain.ResourceKind(strings.TrimPrefix(name, "applies_to."))
			for _, id := range form[name] {
				r := domain.ResourceOf(id)
				if r == nil || r.Name != choosable[kind] || slices.ContainsFunc(choices[kind], func(o view.Option) bool { return o.Value == id }) {
					continue
				}
				text := cmp.Or(f.app.Names.Of(f.r.Context(), []string{id})[id], id)
				choices[kind] = append(choices[kind], view.Option{Value: id, Text: text})
			}
		}
	}
}

// nameCustomers shows the names of customers in place of their ids.
func (f *form) nameCustomers(inputs []view.Input) {
	for i := range inputs {
		in := &inputs[i]
		if r := domain.ResourceOf(in.Value); in.Kind != domain.CustomerInput || r == nil || r.Name != "customers" {
			continue
		}
		if name := f.app.Names.Of(f.r.Context(), []string{in.Value})[in.Value]; name != "" {
			in.ID, in.Value = in.Value, name
		}
	}
}

// scopeOptions returns the scopes of the operator's role, grouped by resource.
func (f *form) scopeOptions() []view.Option {
	out := make([]view.Option, 0, len(f.workspace.Tenant.Scopes))
	for _, s := range f.workspace.Tenant.Scopes {
		out = append(out, view.Option{Value: s, Text: s})
	}
	slices.SortStableFunc(out, func(a, b view.Option) int { return strings.Compare(scopeOf(a.Value), scopeOf(b.Value)) })
	return out
}

// scopeOf returns the resource of a scope: bookings for read:bookings, payments for payments:read.
func scopeOf(scope string) string {
	a, b, _ := strings.Cut(scope, ":")
	if a == "read" || a == "write" {
		return b
	}
	return a
}

// eventTypes returns the types of events that a field can name. If the field accepts a value for all types, it is included.
func (f *form) eventTypes(field forms.Field) []view.Option {
	enum := field.Enum
	if field.Items != nil {
		enum = field.Items.Enum
	}
	out := make([]view.Option, 0, len(enum))
	for _, one := range enum {
		text := one
		if one == "*" {
			text = f.T("all_events")
		}
		out = append(out, view.Option{Value: one, Text: text})
	}
	return out
}

// mostFaults is the maximum number of errors without an input that a page shows.
const mostFaults = 20

// faults returns the field errors of an error, in the operator's language.
func (f *form) faults(err error) []view.Fault {
	e := apperr.As(err)
	if err == nil || e.Code == apperr.ErrMismatch.Code { // verdict reports a mismatch
		return nil
	}
	out := make([]view.Fault, 0, len(e.Fields))
	for _, fault := range e.Fields {
		if name := domain.InstantInputs[fault.Field]; name != "" && f.Resource == "bookings" {
			fault.Field = name
		}
		out = append(out, view.Fault{Path: fault.Field, Text: pages.Translate(f.Text, fault.Message)})
	}
	return out
}

// summary describes the errors of fields that no input shows, each with its field's name.
func (f *form) summary(faults []view.Fault) []string {
	var out []string
	for i, fault := range faults {
		if i == mostFaults {
			return append(out, f.T("more_count", "Count", len(faults)-i))
		}
		name, _, _ := strings.Cut(fault.Path, ".")
		out = append(out, domain.Short(f.Label(name), optionBytes)+": "+fault.Text)
	}
	return out
}

// splitFaults returns the error of one entered field and the errors of all other fields. Both are "" for any other error.
func (f *form) splitFaults(err error, field string) (wrong, others string) {
	if !app.Refused(err) {
		return "", ""
	}
	in := []view.Input{{Name: field}}
	others = strings.Join(f.summary(view.AssignFaults(in, f.faults(err))), " ")
	if in[0].Wrong == "" && others == "" {
		others = f.explain(apperr.As(err))
	}
	return in[0].Wrong, others
}

// verdict describes the error of a submitted form, for the top of the form.
func (f *form) verdict(err error) string {
	e := apperr.As(err)
	switch {
	case app.Unknown(err) && (e.Kind == apperr.BadGateway || e.Kind == apperr.RateLimited):
		return f.explain(e) + " " + f.T("outcome_unknown")
	case app.Unknown(err):
		return f.T("outcome_unknown")
	case e.Code == apperr.ErrMismatch.Code:
		return f.T("form_used")
	case len(e.Fields) == 0:
		return f.explain(e)
	}
	return ""
}
