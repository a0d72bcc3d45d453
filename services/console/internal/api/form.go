package api

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/obs"

	"holdfast.dev/services/console/internal/app"
	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
	"holdfast.dev/services/console/internal/view"
)

// mostChoices is how many resources of a kind a form offers: as many as a tenant may have.
const mostChoices = 2_000

const optionBytes = 60 // of a name that a form offers

// reader turns forms into bodies in the tenant's time zone and currency, and in the language of the page.
func (v *visit) reader() domain.Reader {
	return domain.Reader{Zone: v.Zone, Currency: v.w.Tenant.Currency, Notation: domain.Notation{Point: v.T("decimal_point"), Group: v.T("digit_group")}}
}

// fields are those of an operation's body, in the order of names.
func (v *visit) fields(operation string, names []string) []contract.Field {
	form := v.s.Operations[operation]
	out := make([]contract.Field, 0, len(names))
	for _, name := range names {
		if f := form.Field(name); f.Name != "" {
			out = append(out, f)
		}
	}
	return out
}

// choosable are the resources that forms offer, by the kind in a field's name.
var choosable = map[string]string{"service": "services", "unit": "units", "package": "packages"}

// choices are what the fields may name: resources, types of events, scopes. A kind that the role may not see is left out.
func (v *visit) choices(fields []contract.Field) (view.Choices, error) {
	out := view.Choices{}
	for _, f := range fields {
		switch f.Name {
		case "event_types", "types", "type":
			out[f.Name] = v.eventTypes(f)
		case "scopes":
			out[f.Name] = v.scopeOptions()
		case "overlap_seconds":
			for _, seconds := range []string{"0", "3600", "86400", "604800"} {
				out[f.Name] = append(out[f.Name], view.Option{Value: seconds, Text: v.T("overlap_" + seconds)})
			}
		}
		kinds := []string{domain.Chosen(f.Name)}
		if f.Name == "applies_to" {
			kinds = []string{"service", "package"}
		}
		for _, kind := range kinds {
			r := domain.ResourceNamed(choosable[kind])
			if r == nil || out[kind] != nil || !v.may(r.List) {
				continue
			}
			list, err := v.resourceOptions(r)
			if err != nil {
				return out, err
			}
			out[kind] = list
		}
	}
	return out, nil
}

// resourceOptions are the active resources of a kind, by name.
func (v *visit) resourceOptions(r *domain.Resource) ([]view.Option, error) {
	rows, err := v.app.All(v.r.Context(), r.List, url.Values{"active": {"true"}}, mostChoices)
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

// chosen adds to the choices what a form has chosen already, such as a unit that is not active: else sending the form would remove it.
func (v *visit) chosen(choices view.Choices, fields []contract.Field, form url.Values) {
	for _, f := range fields {
		names := []string{f.Name}
		if f.Name == "applies_to" {
			names = []string{f.Name + ".service_ids", f.Name + ".package_ids"}
		}
		for _, name := range names {
			kind := domain.Chosen(strings.TrimPrefix(name, "applies_to."))
			for _, id := range form[name] {
				r := domain.ResourceOf(id)
				if r == nil || r.Name != choosable[kind] || slices.ContainsFunc(choices[kind], func(o view.Option) bool { return o.Value == id }) {
					continue
				}
				text := cmp.Or(v.app.Names.Of(v.r.Context(), []string{id})[id], id)
				choices[kind] = append(choices[kind], view.Option{Value: id, Text: text})
			}
		}
	}
}

// scopeOptions are the scopes of the operator's role, those of a resource beside each other.
func (v *visit) scopeOptions() []view.Option {
	out := make([]view.Option, 0, len(v.w.Tenant.Scopes))
	for _, s := range v.w.Tenant.Scopes {
		out = append(out, view.Option{Value: s, Text: s})
	}
	slices.SortStableFunc(out, func(a, b view.Option) int { return strings.Compare(scopeOf(a.Value), scopeOf(b.Value)) })
	return out
}

// scopeOf is the resource of a scope: bookings of read:bookings, payments of payments:read.
func scopeOf(scope string) string {
	a, b, _ := strings.Cut(scope, ":")
	if a == "read" || a == "write" {
		return b
	}
	return a
}

// eventTypes are the types of events that a field may name; one that takes every type at once offers that too.
func (v *visit) eventTypes(f contract.Field) []view.Option {
	enum := f.Enum
	if f.Items != nil {
		enum = f.Items.Enum
	}
	out := make([]view.Option, 0, len(enum))
	for _, one := range enum {
		text := one
		if one == "*" {
			text = v.T("all_events")
		}
		out = append(out, view.Option{Value: one, Text: text})
	}
	return out
}

// ask shows a form with the values of form and what is wrong with them. What no input shows is above the form.
func (v *visit) ask(status int, out pages.FormView, fields []contract.Field, form url.Values, faults []view.Fault, problem string) error {
	choices, err := v.choices(fields)
	if err != nil && v.form == nil {
		return err
	}
	if err != nil { // what was typed matters more than what else could be chosen
		obs.Add(v.r.Context(), slog.String("error", err.Error()))
	}
	if v.draft != nil {
		form, v.once = v.draft, v.r.URL.Query().Get("once")
		if version, err := strconv.ParseInt(v.draft.Get("version"), 10, 64); err == nil {
			out.Version = version
		}
	}
	v.chosen(choices, fields, form)
	out.Inputs = v.Inputs(fields, form, choices)
	out.Faults = v.summary(view.Place(out.Inputs, faults))
	return v.show(status, pages.Form(v.frame(problem), out))
}

// mostFaults is how many faults a page shows that no input shows.
const mostFaults = 20

// faults are what an error says of fields, in the operator's language.
func (v *visit) faults(err error) []view.Fault {
	e := apperr.As(err)
	if err == nil || e.Code == apperr.ErrMismatch.Code { // verdict says what a mismatch means
		return nil
	}
	out := make([]view.Fault, 0, len(e.Fields))
	for _, f := range e.Fields {
		out = append(out, view.Fault{Path: f.Field, Text: pages.Translate(v.Text, f.Message)})
	}
	return out
}

// summary says what is wrong with fields that no input shows, each with its field's name.
func (v *visit) summary(faults []view.Fault) []string {
	var out []string
	for i, f := range faults {
		if i == mostFaults {
			return append(out, v.T("more_count", "Count", len(faults)-i))
		}
		name, _, _ := strings.Cut(f.Path, ".")
		out = append(out, domain.Short(v.Label(name), optionBytes)+": "+f.Text)
	}
	return out
}

// wrongOf is what an error says of a field that was entered, and of everything else; both are "" for another error.
func (v *visit) wrongOf(err error, field string) (wrong, others string) {
	if !app.Refused(err) {
		return "", ""
	}
	in := []view.Input{{Name: field}}
	others = strings.Join(v.summary(view.Place(in, v.faults(err))), " ")
	if in[0].Wrong == "" && others == "" {
		others = v.explain(apperr.As(err))
	}
	return in[0].Wrong, others
}

// refused shows the form again when err is a verdict on what was entered, or leaves open whether it took effect, with the values that were sent.
func (v *visit) refused(err error, out pages.FormView, fields []contract.Field) error {
	e := apperr.As(err)
	verdicts := []apperr.Kind{apperr.Invalid, apperr.Conflict, apperr.PreconditionFailed, apperr.NotFound, apperr.BadRequest, apperr.TooLarge}
	if !app.Unknown(err) && !slices.Contains(verdicts, e.Kind) {
		return err
	}
	problem := v.verdict(err)
	if e.Code == "slot_unavailable" {
		problem = strings.TrimSpace(problem + " " + v.clash())
	}
	return v.ask(httpx.StatusOf(e.Kind), out, fields, domain.RowsFirst(fields, v.form), v.faults(err), problem)
}

// newForm is the form that makes a resource.
func (v *visit) newForm(r *domain.Resource) (pages.FormView, []contract.Field) {
	address := v.w.Path(r.Name + "/new")
	if q := v.query(); len(q) > 0 {
		address += "?" + q.Encode()
	}
	fields := slices.DeleteFunc(v.fields(r.Create, r.New), func(f contract.Field) bool {
		return r.Name != "refunds" && slices.Contains(linked, f.Name) && !v.r.URL.Query().Has(f.Name)
	})
	return pages.FormView{Title: v.T("new_" + r.Name), Action: address, Back: v.w.Path(r.Name), Button: v.T("save")}, fields
}

// linked are the fields that a form has only when the page that leads to it fills them in.
var linked = []string{"lead_id", "booking_id"}

// newPage shows the form that makes a resource. The query has values that it begins with.
func newPage(r *domain.Resource) page {
	return func(v *visit) error {
		if !v.may(r.Create) {
			return domain.ErrForbidden
		}
		if r.Fresh && !v.recent() {
			return nil
		}
		out, fields := v.newForm(r)
		form := url.Values{}
		for _, f := range fields {
			if f.Kind == "boolean" && (f.Name == "active" || f.Name == "visible") {
				form.Set(f.Name, "true")
			}
			if given := v.r.URL.Query()[f.Name]; len(given) > 0 {
				form[f.Name] = given
			}
		}
		if err := v.customerOfLead(form); err != nil {
			return err
		}
		return v.ask(http.StatusOK, out, fields, form, nil, "")
	}
}

// customerOfLead fills in the customer of a lead: by its id when the lead has one, else by the lead's e-mail address.
func (v *visit) customerOfLead(form url.Values) error {
	if form.Get("lead_id") == "" || form.Get("customer_id") != "" || !v.may("getLead") {
		return nil
	}
	lead, err := v.app.Do(v.r.Context(), domain.Request{Operation: "getLead", Params: []string{form.Get("lead_id")}})
	if app.Refused(err) {
		return nil // the form says what is wrong with the lead
	}
	form.Set("customer_id", lead.First("customer_id", "email"))
	return err
}

// madeOfLead makes the customer of a lead for a form that names the lead by its e-mail address, which no customer has. It is "" for any other.
func (v *visit) madeOfLead(ctx context.Context, body map[string]any, given string) (string, error) {
	id, ok := body["lead_id"].(string)
	if !ok || !v.may("createCustomer") {
		return "", nil
	}
	lead, err := v.app.Do(ctx, domain.Request{Operation: "getLead", Params: []string{id}})
	if err != nil || lead.Text("email") == "" || !strings.EqualFold(lead.Text("email"), given) {
		return "", err
	}
	person := map[string]any{}
	for _, name := range []string{"first_name", "last_name", "email", "phone", "company"} {
		if s := lead.Text(name); s != "" {
			person[name] = s
		}
	}
	made, err := v.app.Submit(ctx, domain.Request{Operation: "createCustomer", Body: person, Key: v.once + "-customer"})
	return made.Text("id"), err
}

// create makes a resource. The form's key makes a second click harmless.
func create(r *domain.Resource) page {
	return func(v *visit) error {
		if r.Fresh && v.may(r.Create) && !v.recent() {
			return nil
		}
		out, fields := v.newForm(r)
		body, err := v.reader().Body(fields, v.form)
		if err == nil {
			err = v.namedCustomer(v.r.Context(), body)
		}
		var made domain.Object
		if err == nil {
			for name, value := range body { // a create takes no null where nothing is the default
				if value == nil {
					delete(body, name)
				}
			}
			made, err = v.submit(domain.Request{Operation: r.Create, Body: body})
		}
		if err != nil {
			return v.refused(err, out, fields)
		}
		if v.s.Operations[r.Create].Secret {
			return v.secret(r, made)
		}
		return v.done(r.Name+"/"+made.Text("id"), "saved")
	}
}

// editForm is the form that changes a resource.
func (v *visit) editForm(r *domain.Resource, o domain.Object) (pages.FormView, []contract.Field) {
	address := v.w.Path(r.Name + "/" + o.Text("id"))
	return pages.FormView{Title: v.T("edit_what", "Name", r.TitleOf(o)), Action: address + "/edit", Back: address, Button: v.T("save"), Version: o.Version()}, v.fields(r.Update, r.Edit)
}

func editPage(r *domain.Resource) page {
	return func(v *visit) error {
		if !v.may(r.Update) {
			return domain.ErrForbidden
		}
		if r.Fresh && !v.recent() {
			return nil
		}
		o, err := v.app.Get(v.r.Context(), r, v.c.Param("id"))
		if err != nil {
			return err
		}
		out, fields := v.editForm(r, o)
		v.once += fmt.Sprintf("-v%d", o.Version()) // once more for the next version
		return v.ask(http.StatusOK, out, fields, v.reader().Form(fields, o), nil, "")
	}
}

// update sends what the form has changed, for the version that it showed.
func update(r *domain.Resource) page {
	return func(v *visit) error {
		ctx, id := v.r.Context(), v.c.Param("id")
		o, err := v.app.Get(ctx, r, id)
		if err != nil {
			return err
		}
		out, fields := v.editForm(r, o)
		if r.Fresh && !v.recent() {
			return nil
		}
		version, err := v.sentVersion(o)
		if err != nil {
			return err
		}
		out.Version = version
		body, err := v.reader().Changes(fields, v.form, o)
		if err == nil {
			err = v.namedCustomer(ctx, body)
		}
		if err == nil && len(body) > 0 {
			_, err = v.submit(domain.Request{Operation: r.Update, Params: []string{id}, Body: body, Version: version})
		}
		if err != nil {
			return v.refused(err, out, fields)
		}
		v.app.Names.Forget(ctx, id)
		return v.done(r.Name+"/"+id, "saved")
	}
}

// namedCustomer puts the id of a customer in place of an e-mail address or a name that only one customer has.
func (v *visit) namedCustomer(ctx context.Context, body map[string]any) error {
	given, ok := body["customer_id"].(string)
	if !ok || domain.ResourceOf(given) != nil {
		return nil
	}
	given = strings.TrimSpace(v.form.Get("customer_id"))
	filter := "q"
	if strings.Contains(given, "@") {
		filter = "email"
	}
	list, err := v.app.List(ctx, "listCustomers", url.Values{filter: {given}, "limit": {"2"}})
	if err != nil {
		return err
	}
	if len(list.Data) == 0 {
		made, err := v.madeOfLead(ctx, body, given)
		if body["customer_id"] = made; made != "" || err != nil {
			return err
		}
	}
	if len(list.Data) != 1 {
		return apperr.Field("customer_id", "%s", v.T("customer_unclear", "Count", len(list.Data)))
	}
	body["customer_id"] = list.Data[0].Text("id")
	return nil
}
