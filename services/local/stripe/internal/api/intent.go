package api

import (
	"strings"

	"holdfast.dev/services/local/stripe/internal/app"
	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/store"
)

var (
	intentChanges = []string{
		"amount", "capture_method", "currency", "customer", "description", "metadata", "payment_method", "payment_method_data",
		"payment_method_options", "payment_method_types", "receipt_email", "setup_future_usage", "statement_descriptor",
		"statement_descriptor_suffix", "transfer_group",
	}
	confirmation = []string{"off_session", "return_url", "use_stripe_sdk", "authentication_outcome"}
	listing      = []string{"created", "ending_before", "limit", "starting_after"}
)

func names(lists ...[]string) []string {
	var all []string
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

var intentOperations = []operation{
	{
		pattern: "POST /v1/payment_intents",
		params:  names(intentChanges, confirmation, []string{"automatic_payment_methods", "confirm", "confirmation_method"}),
		run:     createIntent,
	},
	{pattern: "GET /v1/payment_intents", params: names(listing, []string{"customer"}), run: listIntents},
	{pattern: "GET /v1/payment_intents/{id}", params: []string{"client_secret"}, public: true, run: getIntent},
	{pattern: "POST /v1/payment_intents/{id}", params: intentChanges, run: updateIntent},
	{
		pattern: "POST /v1/payment_intents/{id}/confirm", public: true, run: confirmIntent,
		params: names(confirmation, []string{
			"capture_method", "client_secret", "payment_method", "payment_method_data", "payment_method_options", "receipt_email",
			"expected_payment_method_type", "setup_future_usage",
		}),
	},
	{
		pattern: "POST /v1/payment_intents/{id}/capture", params: []string{"amount_to_capture", "final_capture", "metadata"},
		run: captureIntent,
	},
	{pattern: "POST /v1/payment_intents/{id}/cancel", params: []string{"cancellation_reason"}, run: cancelIntent},
}

func createIntent(c *call) (any, error) {
	in := c.intentInput()
	c.form.Required("amount")
	in.Currency = lower(c.form.Required("currency"))
	in.Confirm = c.form.Bool("confirm")
	c.form.OneOf("confirmation_method", []string{"automatic", "manual"})
	if c.form.Has("automatic_payment_methods") {
		c.form.Required("automatic_payment_methods[enabled]")
		enabled := c.form.Bool("automatic_payment_methods[enabled]")
		in.Automatic = &enabled
	}
	in.AllowRedirects = "always"
	if given := c.form.OneOf("automatic_payment_methods[allow_redirects]", []string{"always", "never"}); given != nil {
		in.AllowRedirects = *given
	}
	if err := c.form.Err(); err != nil {
		return nil, err
	}
	return c.shown(c.CreateIntent(in))
}

func lower(text string) *string {
	text = strings.ToLower(text)
	return &text
}

// intentInput reads the parameters that create and update have in common.
func (c *call) intentInput() app.IntentInput {
	f := c.form
	in := app.IntentInput{
		Amount: f.Positive("amount"), Customer: f.Text("customer"), Description: f.Text("description"), ReceiptEmail: c.email(),
		Descriptor: f.Text("statement_descriptor"), Suffix: f.Text("statement_descriptor_suffix"), TransferGroup: f.Text("transfer_group"),
		FutureUsage:   f.OneOf("setup_future_usage", []string{"on_session", "off_session"}),
		CaptureMethod: c.captureMethod(), Metadata: f.Metadata(), Types: f.List("payment_method_types"), Confirmation: c.confirmation(),
	}
	if currency := f.Text("currency"); currency != nil {
		in.Currency = lower(*currency)
	}
	for _, name := range []string{"statement_descriptor", "statement_descriptor_suffix"} {
		if len(f.Or(name, "")) > 22 {
			f.Fail("", name, "The statement descriptor must be at most 22 characters.")
		}
	}
	return in
}

func (c *call) captureMethod() *string {
	return c.form.OneOf("capture_method", []string{domain.CaptureAutomatic, domain.CaptureAutomaticAsync, domain.CaptureManual})
}

func (c *call) email() *string {
	text := c.form.Text("receipt_email")
	if text != nil && *text != "" && (!strings.Contains(*text, "@") || strings.ContainsAny(*text, " <>")) {
		c.form.Fail("email_invalid", "receipt_email", "Invalid email address: %s", *text)
	}
	return text
}

// confirmation reads the parameters of a confirm.
func (c *call) confirmation() app.ConfirmInput {
	in := app.ConfirmInput{
		Method: c.method("payment_method", "payment_method_data"), ReturnURL: c.form.Or("return_url", ""),
		OffSession: c.form.Has("off_session") && c.form.Bool("off_session"), StripeSDK: c.form.Bool("use_stripe_sdk"),
		Publishable: c.key.Publishable, CaptureMethod: c.captureMethod(), ReceiptEmail: c.email(),
	}
	if outcome := c.form.OneOf("authentication_outcome", app.Outcomes); outcome != nil {
		in.Authentication = *outcome
	}
	return in
}

// method reads a payment method: its id, or the data of a new one.
func (c *call) method(id, data string) app.MethodInput {
	in := app.MethodInput{ID: c.form.Or(id, "")}
	if in.ID == "" && c.form.Has(data) {
		in = c.methodData(func(name string) string { return data + "[" + strings.Replace(name, "[", "][", 1) + closing(name) })
	}
	return in
}

func closing(name string) string {
	if strings.HasSuffix(name, "]") {
		return ""
	}
	return "]"
}

// methodData reads the data of a new payment method. at returns the form's name of a field.
func (c *call) methodData(at func(string) string) app.MethodInput {
	f := c.form
	in := app.MethodInput{Type: f.Required(at("type"))}
	switch in.Type {
	case domain.TypeOfBank:
		in.Number = f.Required(at("us_bank_account[account_number]"))
	case domain.TypeOfCard:
		in.Number = c.cardNumber(at)
		for name, value := range map[string]*int64{"card[exp_month]": &in.ExpMonth, "card[exp_year]": &in.ExpYear} {
			if n := f.Int(at(name)); n != nil {
				*value = *n
			}
		}
	default:
		f.Fail("", at("type"), "The stand-in has payment methods of the types card and us_bank_account only.")
	}
	b := &in.Billing
	for name, value := range map[string]**string{
		"name": &b.Name, "email": &b.Email, "phone": &b.Phone,
	} {
		*value = f.Text(at("billing_details[" + name + "]"))
	}
	return in
}

// cardNumber returns the number of a card. The form can contain one of Stripe's test tokens instead.
func (c *call) cardNumber(at func(string) string) string {
	if token := c.form.Or(at("card[token]"), ""); token != "" {
		if test := domain.CaseNamed("pm_card_" + strings.TrimPrefix(token, "tok_")); test != nil {
			return test.Number
		}
		c.form.Fail("resource_missing", at("card[token]"), "No such token: '%s'", token)
		return ""
	}
	return c.form.Required(at("card[number]"))
}

// shown returns the intent as the key can see it.
func (c *call) shown(pi *domain.Intent, err error) (any, error) {
	switch {
	case err != nil:
		return nil, err
	case c.key.Publishable:
		return pi.Public(), nil
	default:
		return pi, nil
	}
}

// allowed checks the client secret, which is required with a publishable key.
func (c *call) allowed() error {
	secret := c.form.Or("client_secret", "")
	if !c.key.Publishable && secret == "" {
		return nil
	}
	if secret == "" {
		return domain.BadParam("parameter_missing", "client_secret", "Missing required param: client_secret.")
	}
	pi, err := c.Intent(c.id)
	if err != nil {
		return err
	}
	if pi.ClientSecret != secret {
		return domain.BadParam("payment_intent_invalid_parameter", "client_secret", "The client_secret provided does not match the client_secret associated with the PaymentIntent.")
	}
	return nil
}

func getIntent(c *call) (any, error) {
	if err := c.allowed(); err != nil {
		return nil, err
	}
	return c.shown(c.Intent(c.id))
}

func updateIntent(c *call) (any, error) {
	in := c.intentInput()
	if err := c.form.Err(); err != nil {
		return nil, err
	}
	return c.UpdateIntent(c.id, in)
}

func confirmIntent(c *call) (any, error) {
	in := c.confirmation()
	if err := c.form.Err(); err != nil {
		return nil, err
	}
	if err := c.allowed(); err != nil {
		return nil, err
	}
	return c.shown(c.ConfirmIntent(c.id, in))
}

func captureIntent(c *call) (any, error) {
	amount := c.form.Positive("amount_to_capture")
	if c.form.Or("final_capture", "true") != "true" {
		c.form.Fail("", "final_capture", "The stand-in captures once.")
	}
	if err := c.form.Err(); err != nil {
		return nil, err
	}
	return c.CaptureIntent(c.id, amount)
}

func cancelIntent(c *call) (any, error) {
	reason := c.form.OneOf("cancellation_reason", domain.CancelReasons)
	if err := c.form.Err(); err != nil {
		return nil, err
	}
	return c.CancelIntent(c.id, reason)
}

func listIntents(c *call) (any, error) {
	return c.list(store.Intents, source{}, func(o *listed) bool { return c.same("customer", o.Customer) })
}
