package api

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/forms"

	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
	"holdfast.dev/services/console/internal/view"
)

// facts are the fields of a resource that the form of an action shows.
var facts = map[string][]string{
	"bookings":     {"status", "customer_id", "event_local_date", "event_start_time", domain.LastDay, "unit_id", "gross_amount", "amount_paid"},
	"customers":    {"name", "email", "phone"},
	"leads":        {"status", "first_name", "last_name", "email", "phone"},
	"quotes":       {"status", "customer_id", "event_local_date", "event_start_time", "unit_id", "total_amount", "deposit_amount"},
	"invoices":     {"status", "customer_id", "total_amount", "amount_paid", "amount_credited", "amount_due"},
	"payments":     {"status", "amount", "amount_capturable", "booking_id"},
	"owed-refunds": {"status", "booking_id", "cause", "remaining_amount", "failure"},
	"endpoints":    {"url", "status"},
	"events":       {"type", "object", "created_at"},
	"feeds":        {"name"},
	"keys":         {"name", "id", "scopes"},
	"apps":         {"name", "id"},
	"grants":       {"app", "operator_id", "scopes"},
	"members":      {"name", "email", "role"},
}

// actionForm is the form that requests confirmation of an action and describes its effect.
func (f *form) actionForm(r *domain.Resource, a *domain.Action, o domain.Object) (pages.FormView, []forms.Field) {
	address := f.workspace.Path(r.Name + "/" + o.Text("id"))
	out := pages.FormView{
		Title: f.T("action_"+a.Name) + ": " + r.TitleOf(o), Action: address + "/" + a.Name, Back: address, Button: f.T("action_" + a.Name), Danger: a.Danger, Version: o.Version(),
	}
	values := f.values(facts[r.Name], o)
	for _, name := range facts[r.Name] {
		if one := values.Of(o, name); one.Kind != view.Nothing {
			out.Facts = append(out.Facts, one)
		}
	}
	for _, id := range []string{"preview_" + r.Name + "_" + a.Name, "preview_" + r.Name + "_" + a.Name + "_2", "preview_" + r.Name + "_" + a.Name + "_3"} {
		if text, ok := f.Find(id); ok {
			out.Preview = append(out.Preview, text)
		}
	}
	fields := f.fields(a.Operation, a.Fields)
	for i := range fields {
		fields[i].Required = fields[i].Required || slices.Contains(a.Required, fields[i].Name)
	}
	return out, fields
}

func actionPage(r *domain.Resource, a *domain.Action) handler {
	return func(p *page) error {
		if !p.can(a.Operation) {
			return domain.ErrForbidden
		}
		o, err := p.app.Get(p.r.Context(), r, p.c.Param("id"))
		if err != nil {
			return err
		}
		if a.Fresh && !p.requireRecentSignIn() {
			return nil
		}
		out, fields := p.actionForm(r, a, o)
		return p.showForm(http.StatusOK, out, fields, p.initialValues(a, o), nil, p.refusal(a, o))
	}
}

// initialValues returns the initial values of an action's form, such as the full amount due for a payment.
func (f *form) initialValues(a *domain.Action, o domain.Object) url.Values {
	form := url.Values{}
	switch a.Operation {
	case "rotateApiKey":
		form.Set("overlap_seconds", "86400")
	case "changeMember":
		form.Set("role", o.Text("role"))
	}
	if _, ok := o.Money("amount_due"); ok && a.Operation == "recordInvoicePayment" {
		form = f.reader().Form([]forms.Field{f.server.Operations[a.Operation].Field("amount")}, domain.Object{"amount": o["amount_due"]})
	}
	return form
}

// act runs an action with the version of the resource that the form showed.
func act(r *domain.Resource, a *domain.Action) handler {
	return func(p *page) error {
		ctx, id := p.r.Context(), p.c.Param("id")
		if a.Fresh && !p.requireRecentSignIn() {
			return nil
		}
		o, err := p.app.Get(ctx, r, id)
		if err != nil {
			return err
		}
		out, fields := p.actionForm(r, a, o)
		in, err := p.actionRequest(r, a, fields)
		if err != nil {
			return p.refused(err, out, fields)
		}
		if in.Version, err = p.postedVersion(o); err != nil {
			return err
		}
		result, err := p.submit(in)
		if errors.Is(err, apperr.ErrVersion) { // the form shows the current state and version of the resource
			err = domain.ErrChanged
		}
		if err != nil {
			return p.refused(err, out, fields)
		}
		p.app.Names.Forget(ctx, id)
		switch {
		case a.Secret:
			return p.showSecret(r, result)
		case p.server.Operations[a.Operation].Method == http.MethodDelete:
			return p.done(r.Name, "deleted")
		}
		return p.done(r.Name+"/"+id, a.Name)
	}
}

// postedVersion returns the version of a resource that the form showed; 0 for a resource without versions.
func (f *form) postedVersion(o domain.Object) (int64, error) {
	version, err := strconv.ParseInt(f.posted.Get("version"), 10, 64)
	if err != nil && o.Version() != 0 {
		return 0, domain.ErrStaleForm
	}
	return version, nil
}

func (f *form) actionRequest(r *domain.Resource, a *domain.Action, fields []forms.Field) (domain.Request, error) {
	op := f.server.Operations[a.Operation]
	in := domain.Request{Operation: a.Operation}
	body, err := f.reader().Body(fields, f.posted)
	if err != nil {
		return in, err
	}
	for _, name := range a.Required { // the operation would use a default
		if body[name] == nil {
			return in, apperr.Field(name, "Is required.")
		}
	}
	if err := f.resolveCustomer(f.r.Context(), body); err != nil {
		return in, err
	}
	for name, value := range body {
		if value == nil {
			delete(body, name)
		}
	}
	for name, value := range a.Fixed {
		body[name] = value
	}
	if a.Body != "" {
		body[a.Body] = f.c.Param("id")
	}
	if len(op.PathParams) > 0 {
		in.Params = []string{f.c.Param("id")}
	}
	if op.HasBody {
		in.Body = body
	}
	return in, nil
}

// showSecret shows a secret that is displayed only once.
func (p *page) showSecret(r *domain.Resource, o domain.Object) error {
	secret := o.First("secret", "url")
	if member := o.Object("member"); member != nil {
		if delivery := o.Text("delivery"); delivery != "by_hand" {
			return p.done(r.Name, "invited_"+delivery)
		}
		o, secret = member, p.server.PublicURL+"/oauth/link/"+o.Text("link_token")
	}
	text, ok := p.Find("secret_" + r.Name)
	if !ok {
		text = p.T("secret_once")
	}
	out := pages.SecretView{Title: r.TitleOf(o), Text: text, Secret: secret, Back: p.workspace.Path(r.Name + "/" + o.Text("id"))}
	if r.Name == "keys" {
		out.Try = p.server.PublicURL + "/api/v1"
	}
	return p.show(http.StatusOK, pages.Secret(p.frame(""), out))
}
