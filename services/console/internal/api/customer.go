package api

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"holdfast.dev/libs/apperr"

	"holdfast.dev/services/console/internal/app"
	"holdfast.dev/services/console/internal/domain"
)

// customerOfLead sets the customer of a lead: by its id if the lead has one, else by the lead's e-mail address or telephone number.
func (f *form) customerOfLead(form url.Values) error {
	if form.Get("lead_id") == "" || form.Get("customer_id") != "" || !f.can("getLead") {
		return nil
	}
	lead, err := f.app.Do(f.r.Context(), domain.Request{Operation: "getLead", Params: []string{form.Get("lead_id")}})
	if app.Refused(err) {
		return nil // the form shows the error of the lead
	}
	form.Set("customer_id", lead.First("customer_id", "email", "phone"))
	return err
}

// createCustomerOfLead creates the customer of a lead if the form identifies the lead by its e-mail address or telephone number, and no
// customer has it. It returns "" for any other form.
func (f *form) createCustomerOfLead(ctx context.Context, body map[string]any, given string) (string, error) {
	id, ok := body["lead_id"].(string)
	if !ok || !f.can("createCustomer") {
		return "", nil
	}
	lead, err := f.app.Do(ctx, domain.Request{Operation: "getLead", Params: []string{id}})
	if known := lead.First("email", "phone"); err != nil || known == "" || !strings.EqualFold(known, given) {
		return "", err
	}
	person := map[string]any{}
	for _, name := range []string{"first_name", "last_name", "email", "phone", "company"} {
		if s := lead.Text(name); s != "" {
			person[name] = s
		}
	}
	created, err := f.app.Submit(ctx, domain.Request{Operation: "createCustomer", Body: person, Key: f.once + "-customer"})
	return created.Text("id"), err
}

// resolveCustomer replaces an e-mail address, a telephone number or a unique customer name with the customer's id.
func (f *form) resolveCustomer(ctx context.Context, body map[string]any) error {
	given, ok := body["customer_id"].(string)
	if !ok || domain.ResourceOf(given) != nil {
		return nil
	}
	given = strings.TrimSpace(f.posted.Get("customer_id"))
	name, filter := "", "q"
	if i := strings.LastIndex(given, ", "); i >= 0 { // a suggestion: the name and an address
		name, given = given[:i], given[i+len(", "):]
	}
	switch {
	case strings.Contains(given, "@"):
		filter = "email"
	case given != "" && strings.Trim(given, "0123456789+()/-. ") == "":
		filter = "phone"
	default:
		name, given = "", strings.TrimSpace(f.posted.Get("customer_id"))
	}
	list, err := f.app.List(ctx, "listCustomers", url.Values{filter: {given}, "limit": {"10"}})
	if err != nil {
		return err
	}
	if name != "" {
		list.Data = slices.DeleteFunc(list.Data, func(o domain.Object) bool { return o.Text("name") != name })
	}
	if len(list.Data) == 0 {
		created, err := f.createCustomerOfLead(ctx, body, given)
		if body["customer_id"] = created; created != "" || err != nil {
			return err
		}
	}
	if len(list.Data) != 1 {
		return apperr.Field("customer_id", "%s", f.T("customer_unclear", "Count", len(list.Data)))
	}
	body["customer_id"] = list.Data[0].Text("id")
	return nil
}
