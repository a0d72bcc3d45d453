package app

import (
	"net/http"

	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/store"
)

// MethodInput is a payment method: the name of a test method, or the data of a card.
type MethodInput struct {
	Name     string
	Number   string
	ExpMonth int64
	ExpYear  int64
}

// method returns a new payment method; nil if the input has none.
func (u *Unit) method(in MethodInput) (*domain.StoredMethod, error) {
	if in == (MethodInput{}) {
		return nil, nil //nolint:nilnil // none is no error
	}
	c := domain.CaseNamed(in.Name)
	switch {
	case in.Name != "" && c == nil:
		return nil, domain.Missing(http.StatusBadRequest, "PaymentMethod", in.Name, "payment_method")
	case in.Name == "":
		if c = domain.CardNumbered(in.Number); c == nil {
			return nil, &domain.Error{
				Type: domain.TypeCard, Code: "incorrect_number", Message: "Your card number is incorrect.", Param: "number",
				Status: http.StatusPaymentRequired, DocURL: "https://stripe.com/docs/error-codes/incorrect-number",
			}
		}
	}
	m := domain.NewMethod(c, u.now(), in.ExpMonth, in.ExpYear)
	m.ID, m.Livemode = u.Tx.NewID(store.Methods), u.Scope.Live
	return &m, nil
}

// testCase returns the test case of an object's payment method.
func (u *Unit) testCase(method string) (*domain.TestCase, error) {
	m, err := store.Get[domain.StoredMethod](u.Tx, u.Scope, store.Methods, method)
	if err != nil || m == nil {
		return &domain.TestCase{}, err
	}
	return domain.CaseNamed(m.Case), nil
}
