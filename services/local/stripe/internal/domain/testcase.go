package domain

import "strings"

// TestCase is one of Stripe's test payment methods: its number and what happens to its charges.
type TestCase struct {
	Name         string // name in Stripe's documentation: pm_card_…
	Number       string // of the card or the account
	Bank         bool   // a bank account: processing first, then the result
	Authenticate bool   // the customer must authenticate
	Decline      *Decline
	Dispute      string // the reason of the dispute that follows a charge
	Refund       string // the later status of a refund: succeeded (pending until then) or failed; empty: succeeds immediately
}

// Decline is the reason why a charge fails.
type Decline struct {
	Code        string
	DeclineCode string
	Message     string
}

var (
	generic       = decline("generic_decline", "Your card was declined.")
	insufficient  = decline("insufficient_funds", "Your card has insufficient funds.")
	lostCard      = decline("lost_card", "Your card was declined.")
	stolenCard    = decline("stolen_card", "Your card was declined.")
	fraudulent    = decline("fraudulent", "Your card was declined.")
	velocity      = decline("card_velocity_exceeded", "Your card was declined.")
	expired       = &Decline{Code: "expired_card", Message: "Your card has expired."}
	wrongCVC      = &Decline{Code: "incorrect_cvc", Message: "Your card's security code is incorrect."}
	processingErr = &Decline{Code: "processing_error", Message: "An error occurred while processing your card. Try again in a little bit."}
	accountClosed = &Decline{Code: "account_closed", Message: "The customer's bank account has been closed."}
	noAccount     = &Decline{Code: "no_account", Message: "The bank account could not be located."}
	bankFunds     = &Decline{Code: "insufficient_funds", Message: "The customer's account has insufficient funds to cover this payment."}
	notAuthorized = &Decline{Code: "debit_not_authorized", Message: "The customer has notified their bank that this payment was unauthorized."}
)

func decline(reason, message string) *Decline {
	return &Decline{Code: "card_declined", DeclineCode: reason, Message: message}
}

// cases are Stripe's test methods by the names of its documentation.
var cases = []*TestCase{
	{Name: "pm_card_visa", Number: "4242424242424242"},
	{Name: "pm_card_visa_debit", Number: "4000056655665556"},
	{Name: "pm_card_mastercard", Number: "5555555555554444"},
	{Name: "pm_card_amex", Number: "378282246310005"},
	{Name: "pm_card_discover", Number: "6011111111111117"},
	{Name: "pm_card_chargeDeclined", Number: "4000000000000002", Decline: generic},
	{Name: "pm_card_chargeDeclinedInsufficientFunds", Number: "4000000000009995", Decline: insufficient},
	{Name: "pm_card_chargeDeclinedLostCard", Number: "4000000000009987", Decline: lostCard},
	{Name: "pm_card_chargeDeclinedStolenCard", Number: "4000000000009979", Decline: stolenCard},
	{Name: "pm_card_chargeDeclinedExpiredCard", Number: "4000000000000069", Decline: expired},
	{Name: "pm_card_chargeDeclinedIncorrectCvc", Number: "4000000000000127", Decline: wrongCVC},
	{Name: "pm_card_chargeDeclinedProcessingError", Number: "4000000000000119", Decline: processingErr},
	{Name: "pm_card_chargeDeclinedFraudulent", Number: "4100000000000019", Decline: fraudulent},
	{Name: "pm_card_chargeDeclinedVelocityLimitExceeded", Number: "4000000000006975", Decline: velocity},
	{Name: "pm_card_chargeCustomerFail", Number: "4000000000000341", Decline: generic},
	{Name: "pm_card_authenticationRequired", Number: "4000002760003184", Authenticate: true},
	{Name: "pm_card_threeDSecure2Required", Number: "4000000000003220", Authenticate: true},
	{Name: "pm_card_authenticationRequiredChargeDeclinedInsufficientFunds", Number: "4000008260003178", Authenticate: true, Decline: insufficient},
	{Name: "pm_card_threeDSecureRequiredChargeDeclined", Number: "4000008400001629", Authenticate: true, Decline: generic},
	{Name: "pm_card_createDispute", Number: "4000000000000259", Dispute: "fraudulent"},
	{Name: "pm_card_createDisputeProductNotReceived", Number: "4000000000002685", Dispute: "product_not_received"},
	{Name: "pm_card_refundFail", Number: "4000000000005126", Refund: RefundFailed},
	{Name: "pm_card_pendingRefund", Number: "4000000000007726", Refund: RefundSucceeded},
	{Name: "pm_usBankAccount_success", Number: "000123456789", Bank: true, Refund: RefundSucceeded},
	{Name: "pm_usBankAccount_accountClosed", Number: "000111111113", Bank: true, Decline: accountClosed},
	{Name: "pm_usBankAccount_noAccount", Number: "000111111116", Bank: true, Decline: noAccount},
	{Name: "pm_usBankAccount_insufficientFunds", Number: "000222222227", Bank: true, Decline: bankFunds},
	{Name: "pm_usBankAccount_debitNotAuthorized", Number: "000333333335", Bank: true, Decline: notAuthorized},
	{Name: "pm_usBankAccount_dispute", Number: "000555555559", Bank: true, Dispute: "insufficient_funds"},
}

var byName, cards = tables()

func tables() (names, numbers map[string]*TestCase) {
	names, numbers = map[string]*TestCase{}, map[string]*TestCase{}
	for _, c := range cases {
		if names[plain(c.Name)] = c; !c.Bank {
			numbers[c.Number] = c
		}
	}
	return names, numbers
}

// plain normalizes the spellings of a name: pm_card_visa_chargeDeclined is the same as pm_card_chargeDeclined.
func plain(name string) string {
	name = strings.Replace(name, "pm_card_visa_charge", "pm_card_charge", 1)
	return strings.ToLower(strings.ReplaceAll(name, "_", ""))
}

// CaseNamed returns the test method with a name; nil if there is none.
func CaseNamed(name string) *TestCase { return byName[plain(name)] }

// CardNumbered returns the test card with a number; nil if there is none.
func CardNumbered(number string) *TestCase {
	return cards[strings.NewReplacer(" ", "", "-", "").Replace(number)]
}

// Last4 returns the last four digits of the number.
func (c *TestCase) Last4() string { return c.Number[len(c.Number)-4:] }

// Brand returns the card's brand.
func (c *TestCase) Brand() string {
	switch c.Number[0] {
	case '5':
		return "mastercard"
	case '3':
		return "amex"
	case '6':
		return "discover"
	default:
		return "visa"
	}
}

// Error returns the error for a declined charge.
func (d *Decline) Error() *Error {
	return &Error{
		Type: TypeCard, Code: d.Code, DeclineCode: d.DeclineCode, Message: d.Message, Status: 402,
		DocURL: "https://stripe.com/docs/error-codes/" + hyphens(d.Code),
	}
}

// Outcome returns the charge's outcome.
func (d *Decline) Outcome() *Outcome {
	reason := d.DeclineCode
	if reason == "" {
		reason = d.Code
	}
	return &Outcome{
		NetworkStatus: "declined_by_network", Reason: &reason, RiskLevel: "normal", RiskScore: 20, Type: "issuer_declined",
		SellerMessage: "The bank returned the decline code `" + reason + "`.",
	}
}
