package domain

// PaymentMethod is a customer's card or bank account.
type PaymentMethod struct {
	ID             string            `json:"id"`
	Object         string            `json:"object"`
	BillingDetails BillingDetails    `json:"billing_details"`
	Card           *Card             `json:"card,omitempty"`
	Created        int64             `json:"created"`
	Livemode       bool              `json:"livemode"`
	Metadata       map[string]string `json:"metadata"`
	Type           string            `json:"type"`
	USBankAccount  *USBankAccount    `json:"us_bank_account,omitempty"`
}

// StoredMethod is a payment method with the name of its test case, which the API does not show.
type StoredMethod struct {
	PaymentMethod
	Case string `json:"_case"`
}

// Card is the part of a payment method that is a card.
type Card struct {
	Brand             string            `json:"brand"`
	Checks            map[string]string `json:"checks"`
	Country           string            `json:"country"`
	ExpMonth          int64             `json:"exp_month"`
	ExpYear           int64             `json:"exp_year"`
	Fingerprint       string            `json:"fingerprint"`
	Funding           string            `json:"funding"`
	Last4             string            `json:"last4"`
	Networks          Networks          `json:"networks"`
	ThreeDSecureUsage ThreeDSecureUsage `json:"three_d_secure_usage"`
}

// Networks are the networks of a card.
type Networks struct {
	Available []string `json:"available"`
}

// ThreeDSecureUsage reports whether 3-D Secure is possible.
type ThreeDSecureUsage struct {
	Supported bool `json:"supported"`
}

// USBankAccount is the part of a payment method that is a bank account.
type USBankAccount struct {
	AccountHolderType string `json:"account_holder_type"`
	AccountType       string `json:"account_type"`
	BankName          string `json:"bank_name"`
	Fingerprint       string `json:"fingerprint"`
	Last4             string `json:"last4"`
	RoutingNumber     string `json:"routing_number"`
}

// The types of payment methods.
const (
	TypeOfCard = "card"
	TypeOfBank = "us_bank_account"
)

// NewMethod returns the payment method of a test case. Without an expiry, the card expires in August 2040.
func NewMethod(c *TestCase, created int64, month, year int64) StoredMethod {
	m := StoredMethod{Case: c.Name, PaymentMethod: PaymentMethod{
		Object: "payment_method", Created: created, Metadata: map[string]string{}, Type: TypeOfCard,
	}}
	if c.Bank {
		m.Type = TypeOfBank
		m.USBankAccount = &USBankAccount{
			AccountHolderType: "individual", AccountType: "checking", BankName: "STRIPE TEST BANK", Fingerprint: "FFDMA0xfhBjWSZLu",
			Last4: c.Last4(), RoutingNumber: "110000000",
		}
		return m
	}
	if month == 0 || year == 0 {
		month, year = 8, 2040
	}
	m.Card = &Card{
		Brand: c.Brand(), Checks: map[string]string{"cvc_check": "pass"}, Country: "US", ExpMonth: month, ExpYear: year,
		Fingerprint: "fp" + c.Number, Funding: "credit", Last4: c.Last4(), Networks: Networks{Available: []string{c.Brand()}},
		ThreeDSecureUsage: ThreeDSecureUsage{Supported: true},
	}
	return m
}

// ChargeDetails returns the payment_method_details of a charge.
func (m *PaymentMethod) ChargeDetails() map[string]any {
	if m.Type == TypeOfBank {
		return map[string]any{"type": TypeOfBank, TypeOfBank: m.USBankAccount}
	}
	c := m.Card
	return map[string]any{"type": TypeOfCard, TypeOfCard: map[string]any{
		"brand": c.Brand, "checks": c.Checks, "country": c.Country, "exp_month": c.ExpMonth, "exp_year": c.ExpYear,
		"fingerprint": c.Fingerprint, "funding": c.Funding, "last4": c.Last4, "network": c.Brand, "wallet": nil,
	}}
}
