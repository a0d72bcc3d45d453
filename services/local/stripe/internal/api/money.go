package api

import (
	"holdfast.dev/services/local/stripe/internal/app"
	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/store"
)

var moneyOperations = []operation{
	{pattern: "GET /v1/charges", params: names(listing, []string{"customer", "payment_intent"}), run: listCharges},
	{pattern: "GET /v1/charges/{id}", run: get(store.Charges)},
	{
		pattern: "POST /v1/refunds", params: []string{"amount", "charge", "payment_intent", "reason", "metadata"}, run: createRefund,
	},
	{pattern: "GET /v1/refunds", params: names(listing, []string{"charge", "payment_intent"}), run: listRefunds},
	{pattern: "GET /v1/refunds/{id}", run: get(store.Refunds)},
	{pattern: "POST /v1/refunds/{id}", params: []string{"metadata"}, run: updateRefund},
	{pattern: "GET /v1/disputes", params: names(listing, []string{"charge", "payment_intent"}), run: listDisputes},
	{pattern: "GET /v1/disputes/{id}", run: get(store.Disputes)},
	{pattern: "GET /v1/balance_transactions", params: names(listing, []string{"currency", "source", "type"}), run: listMovements},
	{pattern: "GET /v1/balance_transactions/{id}", run: get(store.Movements)},
}

func get(kind store.Kind) func(*call) (any, error) {
	return func(c *call) (any, error) { return c.load(kind, c.id) }
}

func listCharges(c *call) (any, error) {
	return c.list(store.Charges, c.byIndex(map[string]string{"payment_intent": "ch.pi"}), func(o *listed) bool {
		return c.same("customer", o.Customer) && c.same("payment_intent", o.PaymentIntent)
	})
}

func createRefund(c *call) (any, error) {
	f := c.form
	in := app.RefundInput{
		PaymentIntent: f.Or("payment_intent", ""), Charge: f.Or("charge", ""), Amount: f.Positive("amount"),
		Reason: f.OneOf("reason", domain.RefundReasons), Metadata: f.Metadata(),
	}
	if in.PaymentIntent == "" && in.Charge == "" {
		f.Fail("parameter_missing", "", "One of the following params should be provided for this request: payment_intent or charge.")
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	return c.CreateRefund(in)
}

func listRefunds(c *call) (any, error) {
	return c.list(store.Refunds, c.byIndex(map[string]string{"payment_intent": "re.pi", "charge": "re.charge"}), c.ofCharge)
}

// ofCharge matches the parameters charge and payment_intent.
func (c *call) ofCharge(o *listed) bool {
	return c.same("charge", o.Charge) && c.same("payment_intent", o.PaymentIntent)
}

func updateRefund(c *call) (any, error) {
	m := c.form.Metadata()
	if err := c.form.Err(); err != nil {
		return nil, err
	}
	return c.UpdateRefund(c.id, m)
}

func listDisputes(c *call) (any, error) {
	return c.list(store.Disputes, c.byIndex(map[string]string{"payment_intent": "dp.pi", "charge": "dp.charge"}), c.ofCharge)
}

func listMovements(c *call) (any, error) {
	return c.list(store.Movements, c.byIndex(map[string]string{"source": "txn.source"}), func(o *listed) bool {
		return c.same("currency", o.Currency) && c.same("source", o.Source) && c.same("type", o.Type)
	})
}
