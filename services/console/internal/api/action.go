package api

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/contract"

	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
	"holdfast.dev/services/console/internal/view"
)

// facts are the fields that the form of an action shows of its resource.
var facts = map[string][]string{
	"bookings":     {"status", "customer_id", "event_local_date", "event_start_time", "unit_id", "total_amount", "amount_paid"},
	"customers":    {"name", "email"},
	"leads":        {"status", "first_name", "last_name", "email"},
	"quotes":       {"status", "customer_id", "event_local_date", "event_start_time", "unit_id", "total_amount", "deposit_amount"},
	"invoices":     {"status", "customer_id", "total_amount", "amount_paid", "amount_due"},
	"payments":     {"status", "amount", "amount_capturable", "booking_id"},
	"owed-refunds": {"status", "booking_id", "cause", "remaining_amount", "failure"},
	"endpoints":    {"url", "status"},
	"feeds":        {"name"},
	"keys":         {"name", "id", "scopes"},
	"apps":         {"name", "id"},
	"grants":       {"app", "operator_id", "scopes"},
	"members":      {"name", "email", "role"},
}

// actionForm is the form that asks before an action is done, and says what it will do.
func (v *visit) actionForm(r *domain.Resource, a *domain.Action, o domain.Object) (pages.FormView, []contract.Field) {
	address := v.w.Path(r.Name + "/" + o.Text("id"))
	out := pages.FormView{
		Title: v.T("action_"+a.Name) + ": " + r.TitleOf(o), Action: address + "/" + a.Name, Back: address, Button: v.T("action_" + a.Name), Danger: a.Danger, Version: o.Version(),
	}
	values := v.values(facts[r.Name], o)
	for _, name := range facts[r.Name] {
		if one := values.Of(o, name); one.Kind != view.Nothing {
			out.Facts = append(out.Facts, one)
		}
	}
	for _, id := range []string{"preview_" + r.Name + "_" + a.Name, "preview_" + r.Name + "_" + a.Name + "_2", "preview_" + r.Name + "_" + a.Name + "_3"} {
		if text, ok := v.Find(id); ok {
			out.Preview = append(out.Preview, text)
		}
	}
	return out, v.fields(a.Operation, a.Fields)
}

func actionPage(r *domain.Resource, a *domain.Action) page {
	return func(v *visit) error {
		if !v.may(a.Operation) {
			return domain.ErrForbidden
		}
		o, err := v.app.Get(v.r.Context(), r, v.c.Param("id"))
		if err != nil {
			return err
		}
		if a.Fresh && !v.recent() {
			return nil
		}
		out, fields := v.actionForm(r, a, o)
		problem := ""
		if !a.AllowedIn(o.Text("status")) {
			problem = v.T("only_when", "Status", v.statusWords(a.From))
		}
		return v.ask(http.StatusOK, out, fields, v.beginning(a, o), nil, problem)
	}
}

// beginning are the values with which the form of an action begins: the whole amount due of a payment.
func (v *visit) beginning(a *domain.Action, o domain.Object) url.Values {
	form := url.Values{}
	switch a.Operation {
	case "rotateApiKey":
		form.Set("overlap_seconds", "86400")
	case "changeMember":
		form.Set("role", o.Text("role"))
	}
	if _, ok := o.Money("amount_due"); ok && a.Operation == "recordInvoicePayment" {
		form = v.reader().Form([]contract.Field{v.s.Operations[a.Operation].Field("amount")}, domain.Object{"amount": o["amount_due"]})
	}
	return form
}

// act does an action with the version of the resource that the form showed.
func act(r *domain.Resource, a *domain.Action) page {
	return func(v *visit) error {
		ctx, id := v.r.Context(), v.c.Param("id")
		if a.Fresh && !v.recent() {
			return nil
		}
		o, err := v.app.Get(ctx, r, id)
		if err != nil {
			return err
		}
		out, fields := v.actionForm(r, a, o)
		in, err := v.actionRequest(r, a, fields)
		if err != nil {
			return v.refused(err, out, fields)
		}
		if in.Version, err = v.sentVersion(o); err != nil {
			return err
		}
		made, err := v.submit(in)
		if errors.Is(err, apperr.ErrVersion) { // the form shows the resource as it is now, and has its version
			err = domain.ErrChanged
		}
		if err != nil {
			return v.refused(err, out, fields)
		}
		v.app.Names.Forget(ctx, id)
		switch {
		case a.Secret:
			return v.secret(r, made)
		case v.s.Operations[a.Operation].Method == http.MethodDelete:
			return v.done(r.Name, "deleted")
		}
		return v.done(r.Name+"/"+id, a.Name)
	}
}

// sentVersion is the version of a resource that the form showed; 0 for a resource without versions.
func (v *visit) sentVersion(o domain.Object) (int64, error) {
	version, err := strconv.ParseInt(v.form.Get("version"), 10, 64)
	if err != nil && o.Version() != 0 {
		return 0, domain.ErrStaleForm
	}
	return version, nil
}

func (v *visit) actionRequest(r *domain.Resource, a *domain.Action, fields []contract.Field) (domain.Request, error) {
	op := v.s.Operations[a.Operation]
	in := domain.Request{Operation: a.Operation}
	body, err := v.reader().Body(fields, v.form)
	if err != nil {
		return in, err
	}
	if err := v.namedCustomer(v.r.Context(), body); err != nil {
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
		body[a.Body] = v.c.Param("id")
	}
	if len(op.PathParams) > 0 {
		in.Params = []string{v.c.Param("id")}
	}
	if op.HasBody {
		in.Body = body
	}
	return in, nil
}

// secret shows what is shown only once.
func (v *visit) secret(r *domain.Resource, o domain.Object) error {
	secret := o.First("secret", "url")
	if member := o.Object("member"); member != nil {
		if delivery := o.Text("delivery"); delivery != "by_hand" {
			return v.done(r.Name, "invited_"+delivery)
		}
		o, secret = member, v.s.PublicURL+"/oauth/link/"+o.Text("link_token")
	}
	text, ok := v.Find("secret_" + r.Name)
	if !ok {
		text = v.T("secret_once")
	}
	out := pages.SecretView{Title: r.TitleOf(o), Text: text, Secret: secret, Back: v.w.Path(r.Name + "/" + o.Text("id"))}
	if r.Name == "keys" {
		out.Try = v.s.PublicURL + "/api/v1"
	}
	return v.show(http.StatusOK, pages.Secret(v.frame(""), out))
}
