package domain_test

import (
	"errors"
	"strings"
	"testing"

	"holdfast.dev/libs/money"

	"holdfast.dev/services/payments/internal/domain"
)

// TestParseGatewayID checks that an id of the gateway has its prefix and then ASCII letters, digits and underscores, with at most
// 255 characters in total.
func TestParseGatewayID(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"pi_a", "pi_z", "pi_A", "pi_Z", "pi_0", "pi_9", "pi__", "pi_3Abc_xyz", "pi_" + strings.Repeat("a", 252)} {
		if id, err := domain.ParseGatewayID(text); err != nil || string(id) != text {
			t.Errorf("%s: %q, %v", text, id, err)
		}
	}
	for _, text := range []string{
		"", "pi_", "pi", "in_a", "pi_" + strings.Repeat("a", 253), "pi_a/", "pi_a:", "pi_a@", "pi_a[", "pi_a`", "pi_a{", "pi_a b", "pi_é",
	} {
		if id, err := domain.ParseGatewayID(text); err == nil {
			t.Errorf("%q is read as %q", text, id)
		}
	}
	malformed, named := "x", "pi_a"
	if _, err := (domain.RefundInput{Intent: &malformed}).NamedIntent(); !errors.Is(err, domain.ErrIntentNotFound) {
		t.Errorf("a malformed id: %v", err)
	}
	if id, err := (domain.RefundInput{Intent: &named}).NamedIntent(); err != nil || id != "pi_a" {
		t.Errorf("%q, %v", id, err)
	}
	if id, err := (domain.RefundInput{}).NamedIntent(); err != nil || id != "" {
		t.Errorf("no id: %q, %v", id, err)
	}
}

// TestActionsOfAState checks that the error of an action lists what the state allows.
func TestActionsOfAState(t *testing.T) {
	t.Parallel()
	for status, want := range map[domain.Status]string{
		domain.Succeeded: "Possible actions: none.", domain.RequiresCapture: "Possible actions: ", "requires_payment_method": "Possible actions: cancel.",
	} {
		if err := status.Check("unknown"); !errors.Is(err, domain.ErrTransition) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", status, err)
		}
	}
	if err := domain.RequiresCapture.Check(domain.Capture); err != nil {
		t.Error(err)
	}
	if err := domain.Succeeded.Check(domain.Cancel); err == nil {
		t.Error("a succeeded intent can be cancelled")
	}
	for status, want := range map[domain.Status][3]bool{ // known, open, final
		domain.Creating: {}, domain.Refused: {}, "requires_payment_method": {true, true, false}, domain.RequiresCapture: {true, true, false},
		domain.Canceled: {true, false, true}, domain.Succeeded: {true, false, true},
	} {
		if got := [3]bool{status.Known(), status.Open(), status.Final()}; got != want {
			t.Errorf("%s: %v, want %v", status, got, want)
		}
	}
}

// TestFirstReasonOfAnInvoice checks that an invoice is refused for the first reason that applies.
func TestFirstReasonOfAnInvoice(t *testing.T) {
	t.Parallel()
	usd := func(minor int64) money.Amount { return money.Amount{Minor: minor, Currency: "USD"} }
	invoice := "x"
	b := domain.Booking{Status: "confirmed", Total: usd(300), Due: usd(300)}
	refused := func(b domain.Booking, v domain.Invoice) string {
		_, err := domain.NewIntent(domain.IntentInput{Invoice: &invoice}, b, &v)
		if err == nil {
			return ""
		}
		return err.Error()
	}
	if got := refused(b, domain.Invoice{Status: "open", Due: usd(0)}); !strings.Contains(got, "an amount due") {
		t.Errorf("nothing is due on the invoice: %s", got)
	}
	if got := refused(b, domain.Invoice{Status: "open", Due: usd(1)}); got != "" {
		t.Errorf("1 is due: %s", got)
	}
	b.Due = usd(0)
	if got := refused(b, domain.Invoice{Status: "draft", Due: usd(0)}); got != domain.ErrAlreadyPaid.Error() {
		t.Errorf("nothing is due on the booking: %s", got)
	}
	one := int64(1)
	for _, amount := range []*int64{nil, &one} {
		if _, err := domain.NewIntent(domain.IntentInput{Amount: amount}, b, nil); !errors.Is(err, domain.ErrAlreadyPaid) {
			t.Errorf("nothing is due: %v", err)
		}
	}
}
