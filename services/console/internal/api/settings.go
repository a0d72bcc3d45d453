package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/contract"

	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
	"holdfast.dev/services/console/internal/view"
)

// settings are the pages that change the tenant, with their fields.
var settings = map[string][]string{
	"business": {"name", "timezone", "country", "currency", "legal_name", "address", "tax_id", "invoice_prefix", "invoice_year"},
	"policy": {
		"auto_confirm", "confirm_on_deposit", "hold_ttl_minutes", "min_notice_minutes", "max_advance_days", "refund_rules", "auto_refund", "refund_late_payments",
	},
}

// tenant returns the settings of the tenant, with those of its booking policy beside the others.
func (v *visit) tenant() (domain.Object, error) {
	o, err := v.app.Do(v.r.Context(), domain.Request{Operation: "lookupTenant", Params: []string{v.w.Tenant.ID.String()}})
	for name, value := range o.Object("booking_policy") {
		o[name] = value
	}
	return o, err
}

func (v *visit) settingsForm(name string) (pages.FormView, []contract.Field) {
	out := pages.FormView{Title: v.T("page_" + name), Action: v.w.Path(name), Back: v.w.Path("today"), Button: v.T("save")}
	if name == "policy" {
		out.Try = v.T("preview")
	}
	return out, v.fields("updateTenant", settings[name])
}

func settingsPage(name string) page {
	return func(v *visit) error {
		if !v.may("updateTenant") {
			return domain.ErrForbidden
		}
		if !v.recent() {
			return nil
		}
		o, err := v.tenant()
		if err != nil {
			return err
		}
		out, fields := v.settingsForm(name)
		if name == "policy" {
			out.Preview = v.policy(o)
		}
		return v.ask(http.StatusOK, out, fields, v.reader().Form(fields, o), nil, "")
	}
}

// saveSettings sends what the form has changed; a form that is only tried is shown again with what it would mean.
func saveSettings(name string) page {
	return func(v *visit) error {
		if !v.may("updateTenant") {
			return domain.ErrForbidden
		}
		if !v.form.Has("try") && !v.recent() {
			return nil
		}
		o, err := v.tenant()
		if err != nil {
			return err
		}
		out, fields := v.settingsForm(name)
		body, err := v.reader().Changes(fields, v.form, o)
		if err == nil && v.form.Has("try") {
			if out.Preview, err = v.tried(fields); err == nil {
				return v.ask(http.StatusOK, out, fields, v.form, nil, "")
			}
		}
		if err == nil && len(body) > 0 {
			_, err = v.submit(domain.Request{Operation: "updateTenant", Body: body})
		}
		if err != nil {
			return v.refused(err, out, fields)
		}
		return v.done(name, "saved")
	}
}

// tried says what the booking policy of a form would mean.
func (v *visit) tried(fields []contract.Field) ([]string, error) {
	body, err := v.reader().Body(fields, v.form)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	var o domain.Object
	if err := domain.Decode(raw, &o); err != nil {
		return nil, err
	}
	return v.policy(o), nil
}

// policy says what a booking policy means for a booking that is made now.
func (v *visit) policy(o domain.Object) []string {
	now := v.w.Now(v.s.Now())
	hold, held := o.Int("hold_ttl_minutes")
	var out []string
	switch {
	case o.Bool("auto_confirm"):
		out = append(out, v.T("policy_confirmed"))
	case held:
		out = append(out, v.T("policy_held", "Time", v.DateTime(now.Add(time.Duration(hold)*time.Minute))))
	default:
		out = append(out, v.T("policy_waits"))
	}
	if o.Bool("confirm_on_deposit") {
		out = append(out, v.T("policy_deposit"))
	}
	if n, ok := o.Int("min_notice_minutes"); ok {
		out = append(out, v.T("policy_notice", "Time", v.DateTime(now.Add(time.Duration(n)*time.Minute))))
	}
	if n, ok := o.Int("max_advance_days"); ok {
		out = append(out, v.T("policy_advance", "Day", v.Day(now.AddDate(0, 0, int(n)).Format(time.DateOnly))))
	}
	rules := o.Objects("refund_rules")
	for _, rule := range rules {
		hours, _ := rule.Int("hours_before")
		percent, _ := rule.Int("percent")
		out = append(out, v.T("policy_refund", "Hours", hours, "Percent", percent))
	}
	if len(rules) > 0 && o.Bool("auto_refund") {
		out = append(out, v.T("policy_auto_refund"))
	}
	if o.Bool("refund_late_payments") {
		out = append(out, v.T("policy_late"))
	}
	return out
}

// gatewayFields are the keys of an account at a payment gateway.
var gatewayFields = []string{"publishable_key", "secret_key", "webhook_secret"}

// gatewayForm is the form that connects an account, with the one that is connected.
func (v *visit) gatewayForm() (pages.FormView, []contract.Field, error) {
	out := pages.FormView{
		Title: v.T("page_gateway"), Action: v.w.Path("gateway"), Back: v.w.Path("today"), Button: v.T("connect"), Preview: []string{v.T("gateway_none"), v.T("gateway_keys")},
	}
	fields := v.fields("connectGatewayAccount", gatewayFields)
	o, err := v.app.Do(v.r.Context(), domain.Request{Operation: "getGatewayAccount"})
	var e *apperr.Error
	if errors.As(err, &e) && e.Kind == apperr.NotFound {
		return out, fields, nil
	}
	if err != nil {
		return out, nil, err
	}
	o["webhook_url"], o["webhook_events"] = v.s.PublicURL+o.Text("webhook_path"), v.T("gateway_events_ok")
	out.Preview = []string{v.T("gateway_keys")}
	switch o.Text("events") {
	case "missing":
		o["webhook_events"], out.Preview = v.T("gateway_events_missing"), append([]string{v.T("gateway_events_missing_todo")}, out.Preview...)
	case "late":
		o["webhook_events"], out.Preview = v.T("gateway_events_late"), append([]string{v.T("gateway_events_late_todo")}, out.Preview...)
	}
	values := v.values(nil)
	for _, name := range []string{"provider", "account", "country", "publishable_key", "webhook_url", "webhook_events", "created_at"} {
		out.Facts = append(out.Facts, values.Of(o, name))
	}
	out.Links = []pages.LinkView{{Text: v.T("disconnect"), Href: v.w.Path("gateway/disconnect"), Danger: true}}
	return out, fields, nil
}

func gatewayPage(v *visit) error {
	if !v.may("connectGatewayAccount") {
		return domain.ErrForbidden
	}
	if !v.recent() {
		return nil
	}
	out, fields, err := v.gatewayForm()
	if err != nil {
		return err
	}
	return v.ask(http.StatusOK, out, fields, url.Values{}, nil, "")
}

func connectGateway(v *visit) error {
	if !v.may("connectGatewayAccount") {
		return domain.ErrForbidden
	}
	if !v.recent() {
		return nil
	}
	out, fields, err := v.gatewayForm()
	if err != nil {
		return err
	}
	body, err := v.reader().Body(fields, v.form)
	if err == nil {
		_, err = v.submit(domain.Request{Operation: "connectGatewayAccount", Body: body})
	}
	if err != nil {
		return v.refused(err, out, fields)
	}
	return v.done("gateway", "connected")
}

// disconnectForm is the form that asks before the account is disconnected.
func (v *visit) disconnectForm() (pages.FormView, error) {
	out, _, err := v.gatewayForm()
	out.Action, out.Back, out.Button, out.Danger = v.w.Path("gateway/disconnect"), v.w.Path("gateway"), v.T("disconnect"), true
	out.Preview, out.Links = []string{v.T("gateway_end")}, nil
	return out, err
}

func disconnectPage(v *visit) error {
	if !v.may("disconnectGatewayAccount") {
		return domain.ErrForbidden
	}
	if !v.recent() {
		return nil
	}
	out, err := v.disconnectForm()
	if err != nil {
		return err
	}
	return v.ask(http.StatusOK, out, nil, nil, nil, "")
}

func disconnectGateway(v *visit) error {
	if !v.may("disconnectGatewayAccount") {
		return domain.ErrForbidden
	}
	if !v.recent() {
		return nil
	}
	if _, err := v.submit(domain.Request{Operation: "disconnectGatewayAccount"}); err != nil {
		return v.again(err, disconnectPage)
	}
	return v.done("gateway", "disconnected")
}

// verifyAudit follows the hash chain of the audit log and shows what it found.
func verifyAudit(v *visit) error {
	o, err := v.app.Do(v.r.Context(), domain.Request{Operation: "verifyAudit"})
	if err != nil {
		return err
	}
	records, _ := o.Int("records")
	last, _ := o.Object("head").Int("sequence")
	out := pages.VerdictView{Back: v.w.Path("audit"), Text: v.T("chain_holds", "Count", records), Facts: []view.Value{
		{Label: v.Label("sequence"), Kind: view.Plain, Text: strconv.FormatInt(last, 10)}, {Label: v.Label("hash"), Kind: view.Code, Text: o.Object("head").Text("hash")},
	}}
	if broken := o.Text("broken"); broken != "" {
		out.Broken, out.Text = true, v.T("chain_broken", "What", broken)
	}
	return v.show(http.StatusOK, pages.Verdict(v.frame(""), out))
}
