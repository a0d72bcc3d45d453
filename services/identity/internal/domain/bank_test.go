package domain_test

import (
	"errors"
	"strings"
	"testing"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/patch"

	"holdfast.dev/services/identity/internal/domain"
)

// failedField returns the field of an error, or "" for none.
func failedField(err error) string {
	var e *apperr.Error
	if !errors.As(err, &e) || len(e.Fields) == 0 {
		return ""
	}
	return e.Fields[0].Field
}

// TestBankAccount checks which numbers of accounts and banks are valid, and that they are stored without spaces.
func TestBankAccount(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]string{
		"":                                "",
		"DE89 3704 0044 0532 0130 00":     "DE89370400440532013000",
		"gb82 west 1234 5698 7654 32":     "GB82WEST12345698765432",
		"MT84MALT011000012345MTLCAST001S": "MT84MALT011000012345MTLCAST001S",
		"NO93 8601 1117 947":              "NO9386011117947",
		"12345678":                        "12345678",
		"4012-88/A":                       "4012-88/A",
		"DE89370400440532013001":          "-", // wrong check number
		"DE89":                            "-",
		"DE8937040044053201300Ö":          "-",
		strings.Repeat("1", 35):           "-",
		"1234*":                           "-",
	} {
		got := tenant().Apply(domain.TenantPatch{BankAccountNumber: patch.Value(number)})
		if field := failedField(got.Check()); want == "-" && field != "bank_account_number" || want != "-" && (field != "" || got.BankAccountNumber != want) {
			t.Errorf("account %q: %q, error on %q", number, got.BankAccountNumber, field)
		}
	}
	for code, want := range map[string]string{
		"": "", "COBADEFFXXX": "COBADEFFXXX", "coba de ff": "COBADEFF", "20-00-00": "20-00-00", "021000021": "021000021", "063-000": "063-000",
		"COBADEF": "-", "COBADEFFXX": "-", "12": "-", "1234567890123": "-", "2O-00-00": "-",
	} {
		got := tenant().Apply(domain.TenantPatch{BankCode: patch.Value(code)})
		if field := failedField(got.Check()); want == "-" && field != "bank_code" || want != "-" && (field != "" || got.BankCode != want) {
			t.Errorf("bank %q: %q, error on %q", code, got.BankCode, field)
		}
	}
}
