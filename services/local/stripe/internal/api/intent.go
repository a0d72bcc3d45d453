package api

import (
	"strings"

	"holdfast.dev/services/local/stripe/internal/app"
	"holdfast.dev/services/local/stripe/internal/domain"
)

func createIntent(c *call) (any, error) {
	f := c.form
	f.Required("amount")
	in := app.IntentInput{
		Amount: f.Positive("amount"), Currency: strings.ToLower(f.Required("currency")), Description: f.Text("description"),
		ReceiptEmail: f.Text("receipt_email"), Metadata: f.Metadata(),
		CaptureMethod: f.OneOf("capture_method", []string{domain.CaptureAutomatic, domain.CaptureManual}),
	}
	if text := in.ReceiptEmail; text != nil && *text != "" && (!strings.Contains(*text, "@") || strings.ContainsAny(*text, " <>")) {
		f.Fail("email_invalid", "receipt_email", "Invalid email address: %s", *text)
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	return c.CreateIntent(in)
}

func confirmIntent(c *call) (any, error) {
	f := c.form
	in := app.ConfirmInput{Method: c.method(), ReturnURL: f.Or("return_url", ""), Publishable: c.key.Publishable}
	if outcome := f.OneOf("authentication_outcome", app.Outcomes); outcome != nil {
		in.Authentication = *outcome
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	if err := c.allowed(); err != nil {
		return nil, err
	}
	pi, err := c.ConfirmIntent(c.id, in)
	switch {
	case err != nil:
		return nil, err
	case c.key.Publishable:
		return pi.Public(), nil
	default:
		return pi, nil
	}
}

// method reads a payment method: the name of a test method, or the data of a card.
func (c *call) method() app.MethodInput {
	f, in := c.form, app.MethodInput{Name: c.form.Or("payment_method", "")}
	if in.Name != "" || !f.Has("payment_method_data") {
		return in
	}
	if f.Required("payment_method_data[type]") != domain.TypeOfCard {
		f.Fail("", "payment_method_data[type]", "The stand-in reads the data of payment methods of the type card only.")
	}
	in.Number = f.Required("payment_method_data[card][number]")
	for name, value := range map[string]*int64{"exp_month": &in.ExpMonth, "exp_year": &in.ExpYear} {
		if n := f.Int("payment_method_data[card][" + name + "]"); n != nil {
			*value = *n
		}
	}
	return in
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

func captureIntent(c *call) (any, error) {
	amount := c.form.Positive("amount_to_capture")
	if err := c.form.Err(); err != nil {
		return nil, err
	}
	return c.CaptureIntent(c.id, amount)
}
