package app

import (
	"net/http"

	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/store"
)

// MethodInput is a payment method: the name of a test method, the id of an existing one, or the data of a new one.
type MethodInput struct {
	ID       string
	Type     string // of the data: card or us_bank_account
	Number   string
	ExpMonth int64
	ExpYear  int64
	Billing  domain.BillingDetails
	Param    string // name of the number's parameter, for errors
}

// method returns the payment method; nil if the input has none. putMethod stores a new one.
func (u *Unit) method(in MethodInput) (*domain.StoredMethod, error) {
	switch {
	case in.ID != "":
		if c := domain.CaseNamed(in.ID); c != nil {
			return u.newMethod(c, in), nil
		}
		m, err := store.Get[domain.StoredMethod](u.Tx, u.Scope, store.Methods, in.ID)
		if err == nil && m == nil {
			return nil, domain.Missing(http.StatusBadRequest, "PaymentMethod", in.ID, "payment_method")
		}
		return m, err
	case in.Type == "":
		return nil, nil //nolint:nilnil // none is no error
	}
	c := domain.CaseNumbered(in.Number)
	if c == nil || c.Bank != (in.Type == domain.TypeOfBank) {
		return nil, &domain.Error{
			Type: domain.TypeCard, Code: "incorrect_number", Message: "Your card number is incorrect.", Param: "number",
			Status: http.StatusPaymentRequired, DocURL: "https://stripe.com/docs/error-codes/incorrect-number",
		}
	}
	return u.newMethod(c, in), nil
}

func (u *Unit) newMethod(c *domain.TestCase, in MethodInput) *domain.StoredMethod {
	m := domain.NewMethod(c, u.now(), in.ExpMonth, in.ExpYear)
	m.ID, m.Livemode, m.BillingDetails = u.Tx.NewID(store.Methods), u.Scope.Live, in.Billing
	return &m
}

func (u *Unit) putMethod(m *domain.StoredMethod) error {
	_, err := u.Tx.Put(u.Scope, store.Methods, m.ID, m)
	return err
}

// CreateMethod creates a payment method.
func (u *Unit) CreateMethod(in MethodInput) (*domain.PaymentMethod, error) {
	m, err := u.method(in)
	if err != nil {
		return nil, err
	}
	return &m.PaymentMethod, u.putMethod(m)
}

// Method returns a payment method.
func (u *Unit) Method(id string) (*domain.PaymentMethod, error) {
	if c := domain.CaseNamed(id); c != nil {
		m := domain.NewMethod(c, u.now(), 0, 0)
		m.ID, m.Livemode = id, u.Scope.Live
		return &m.PaymentMethod, nil
	}
	m, err := store.Get[domain.StoredMethod](u.Tx, u.Scope, store.Methods, id)
	if err == nil && m == nil {
		return nil, domain.Missing(http.StatusNotFound, "PaymentMethod", id, "payment_method")
	}
	if err != nil {
		return nil, err
	}
	return &m.PaymentMethod, nil
}

// testCase returns the test case of an object's payment method.
func (u *Unit) testCase(method string) (*domain.TestCase, error) {
	m, err := store.Get[domain.StoredMethod](u.Tx, u.Scope, store.Methods, method)
	if err != nil || m == nil {
		return &domain.TestCase{}, err
	}
	return domain.CaseNamed(m.Case), nil
}
