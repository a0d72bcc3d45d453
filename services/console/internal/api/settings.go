package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/forms"

	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
	"holdfast.dev/services/console/internal/view"
)

// settings are the pages that change the tenant, with their fields.
var settings = map[string][]string{
	"business": {
		"name", "timezone", "country", "currency", "legal_name", "address", "tax_id", "invoice_prefix", "invoice_year", "tax_behavior", "default_taxes",
		"locale", "bank_account_holder", "bank_account_number", "bank_code", "bank_name",
	},
	"policy": {
		"auto_confirm", "confirm_on_deposit", "hold_ttl_minutes", "min_notice_minutes", "max_advance_days", "refund_rules", "auto_refund", "refund_late_payments",
	},
}

// tenantSettings returns the settings of the tenant, including its booking policy.
func (s *session) tenantSettings() (domain.Object, error) {
	o, err := s.app.Do(s.r.Context(), domain.Request{Operation: "lookupTenant", Params: []string{s.workspace.Tenant.ID.String()}})
	for name, value := range o.Object("booking_policy") {
		o[name] = value
	}
	return o, err
}

func (f *form) settingsForm(name string, o domain.Object) (pages.FormView, []forms.Field) {
	out := pages.FormView{Title: f.T("page_" + name), Action: f.workspace.Path(name), Back: f.workspace.Path("today"), Button: f.T("save")}
	if name == "policy" {
		out.Try = f.T("preview")
	}
	if name == "business" {
		out.Logo = f.logoView(o)
	}
	return out, f.fields("updateTenant", settings[name])
}

func settingsPage(name string) handler {
	return func(p *page) error {
		if !p.can("updateTenant") {
			return domain.ErrForbidden
		}
		if !p.requireRecentSignIn() {
			return nil
		}
		o, err := p.tenantSettings()
		if err != nil {
			return err
		}
		out, fields := p.settingsForm(name, o)
		if name == "policy" {
			out.Preview = p.policyPreview(o)
		}
		return p.showForm(http.StatusOK, out, fields, p.reader().Form(fields, o), nil, "")
	}
}

// saveSettings sends the changes of the form. For a preview, it shows the form again with a description of its effect.
func saveSettings(name string) handler {
	return func(p *page) error {
		if !p.can("updateTenant") {
			return domain.ErrForbidden
		}
		if !p.posted.Has("try") && !p.requireRecentSignIn() {
			return nil
		}
		o, err := p.tenantSettings()
		if err != nil {
			return err
		}
		out, fields := p.settingsForm(name, o)
		body, err := p.reader().Changes(fields, p.posted, o)
		if err == nil && p.posted.Has("try") {
			if out.Preview, err = p.enteredPolicyPreview(fields); err == nil {
				return p.showForm(http.StatusOK, out, fields, p.posted, nil, "")
			}
		}
		if err == nil && len(body) > 0 {
			_, err = p.submit(domain.Request{Operation: "updateTenant", Body: body})
		}
		if err != nil {
			return p.refused(err, out, fields)
		}
		return p.done(name, "saved")
	}
}

// enteredPolicyPreview describes the effect of the booking policy in a form.
func (f *form) enteredPolicyPreview(fields []forms.Field) ([]string, error) {
	body, err := f.reader().Body(fields, f.posted)
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
	return f.policyPreview(o), nil
}

// policyPreview describes the effect of a booking policy on a booking that is created now.
func (s *session) policyPreview(o domain.Object) []string {
	now := s.workspace.Now(s.server.Now())
	hold, held := o.Int("hold_ttl_minutes")
	var out []string
	switch {
	case o.Bool("auto_confirm"):
		out = append(out, s.T("policy_confirmed"))
	case held:
		out = append(out, s.T("policy_held", "Time", s.DateTime(now.Add(time.Duration(hold)*time.Minute))))
	default:
		out = append(out, s.T("policy_waits"))
	}
	if o.Bool("confirm_on_deposit") {
		out = append(out, s.T("policy_deposit"))
	}
	if n, ok := o.Int("min_notice_minutes"); ok {
		out = append(out, s.T("policy_notice", "Time", s.DateTime(now.Add(time.Duration(n)*time.Minute))))
	}
	if n, ok := o.Int("max_advance_days"); ok {
		out = append(out, s.T("policy_advance", "Day", s.Day(now.AddDate(0, 0, int(n)).Format(time.DateOnly))))
	}
	rules := o.Objects("refund_rules")
	for _, rule := range rules {
		hours, _ := rule.Int("hours_before")
		percent, _ := rule.Int("percent")
		out = append(out, s.T("policy_refund", "Hours", hours, "Percent", percent))
	}
	if len(rules) > 0 && o.Bool("auto_refund") {
		out = append(out, s.T("policy_auto_refund"))
	}
	if o.Bool("refund_late_payments") {
		out = append(out, s.T("policy_late"))
	}
	return out
}

// gatewayFields are the keys of an account at a payment gateway.
var gatewayFields = []string{"publishable_key", "secret_key", "webhook_secret"}

// gatewayForm returns the form that connects an account. It shows the connected account.
func (f *form) gatewayForm() (pages.FormView, []forms.Field, error) {
	out := pages.FormView{
		Title: f.T("page_gateway"), Action: f.workspace.Path("gateway"), Back: f.workspace.Path("today"), Button: f.T("connect"), Preview: []string{f.T("gateway_none"), f.T("gateway_keys")},
	}
	fields := f.fields("connectGatewayAccount", gatewayFields)
	o, err := f.app.Do(f.r.Context(), domain.Request{Operation: "getGatewayAccount"})
	var e *apperr.Error
	if errors.As(err, &e) && e.Kind == apperr.NotFound {
		return out, fields, nil
	}
	if err != nil {
		return out, nil, err
	}
	o["webhook_url"], o["webhook_events"] = f.server.PublicURL+o.Text("webhook_path"), f.T("gateway_events_ok")
	out.Preview = []string{f.T("gateway_keys")}
	switch o.Text("events") {
	case "missing":
		o["webhook_events"], out.Preview = f.T("gateway_events_missing"), append([]string{f.T("gateway_events_missing_todo")}, out.Preview...)
	case "late":
		o["webhook_events"], out.Preview = f.T("gateway_events_late"), append([]string{f.T("gateway_events_late_todo")}, out.Preview...)
	}
	values := f.values(nil)
	for _, name := range []string{"provider", "account", "country", "publishable_key", "webhook_url", "webhook_events", "created_at"} {
		out.Facts = append(out.Facts, values.Of(o, name))
	}
	out.Links = []pages.LinkView{{Text: f.T("disconnect"), Href: f.workspace.Path("gateway/disconnect"), Danger: true}}
	return out, fields, nil
}

func gatewayPage(p *page) error {
	if !p.can("connectGatewayAccount") {
		return domain.ErrForbidden
	}
	if !p.requireRecentSignIn() {
		return nil
	}
	out, fields, err := p.gatewayForm()
	if err != nil {
		return err
	}
	return p.showForm(http.StatusOK, out, fields, url.Values{}, nil, "")
}

func connectGateway(p *page) error {
	if !p.can("connectGatewayAccount") {
		return domain.ErrForbidden
	}
	if !p.requireRecentSignIn() {
		return nil
	}
	out, fields, err := p.gatewayForm()
	if err != nil {
		return err
	}
	body, err := p.reader().Body(fields, p.posted)
	if err == nil {
		_, err = p.submit(domain.Request{Operation: "connectGatewayAccount", Body: body})
	}
	if err != nil {
		return p.refused(err, out, fields)
	}
	return p.done("gateway", "connected")
}

// disconnectForm is the form that requests confirmation before the account is disconnected.
func (f *form) disconnectForm() (pages.FormView, error) {
	out, _, err := f.gatewayForm()
	out.Action, out.Back, out.Button, out.Danger = f.workspace.Path("gateway/disconnect"), f.workspace.Path("gateway"), f.T("disconnect"), true
	out.Preview, out.Links = []string{f.T("gateway_end")}, nil
	return out, err
}

func disconnectPage(p *page) error {
	if !p.can("disconnectGatewayAccount") {
		return domain.ErrForbidden
	}
	if !p.requireRecentSignIn() {
		return nil
	}
	out, err := p.disconnectForm()
	if err != nil {
		return err
	}
	return p.showForm(http.StatusOK, out, nil, nil, nil, "")
}

func disconnectGateway(p *page) error {
	if !p.can("disconnectGatewayAccount") {
		return domain.ErrForbidden
	}
	if !p.requireRecentSignIn() {
		return nil
	}
	if _, err := p.submit(domain.Request{Operation: "disconnectGatewayAccount"}); err != nil {
		return p.showAgain(err, disconnectPage)
	}
	return p.done("gateway", "disconnected")
}

// verifyAudit verifies the hash chain of the audit log and shows the result.
func verifyAudit(p *page) error {
	o, err := p.app.Do(p.r.Context(), domain.Request{Operation: "verifyAudit"})
	if err != nil {
		return err
	}
	records, _ := o.Int("records")
	last, _ := o.Object("head").Int("sequence")
	out := pages.VerdictView{Back: p.workspace.Path("audit"), Text: p.T("chain_holds", "Count", records), Facts: []view.Value{
		{Label: p.Label("sequence"), Kind: view.Plain, Text: strconv.FormatInt(last, 10)}, {Label: p.Label("hash"), Kind: view.Code, Text: o.Object("head").Text("hash")},
	}}
	if broken := o.Text("broken"); broken != "" {
		out.Broken, out.Text = true, p.T("chain_broken", "What", broken)
	}
	return p.show(http.StatusOK, pages.Verdict(p.frame(""), out))
}
