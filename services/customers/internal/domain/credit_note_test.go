package domain

import (
	"testing"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
)

// TestCardUnitsOfACreditNote checks that a credit note refunds what the gateway accepts of a card payment of which cash was handed back.
func TestCardUnitsOfACreditNote(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int64{"USD": 73, "KWD": 70, "MGA": 0} {
		v := Invoice{
			Status: InvoicePartiallyPaid, Totals: Totals{Total: money.Amount{Minor: 740, Currency: code}}, Paid: money.Amount{Minor: 73, Currency: code},
			Payments: []Payment{{ID: ids.New[ids.PaymentPrefix](), Source: GatewayPayment, Amount: money.Amount{Minor: 73, Currency: code}, Part: ChargePart{Charge: "pi_1"}}},
			Version:  1,
		}
		parts, left, _ := v.noteParts(73, nil)
		sum := int64(0)
		for _, p := range parts {
			sum += p.Amount
		}
		if sum != want || left != 73-want {
			t.Errorf("%s: %d by card, %d are left", code, sum, left)
		}
	}
}
