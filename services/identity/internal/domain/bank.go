package domain

import (
	"regexp"
	"strings"
)

// BankAccount is the account that documents name for bank transfers. Empty texts are not shown.
type BankAccount struct {
	BankAccountHolder string
	BankAccountNumber string // an IBAN without spaces, or another account number
	BankCode          string // a BIC without spaces, or the number that identifies the bank in its country
	BankName          string
}

// The limits of a bank account, in characters.
const (
	MaxBankName      = 100 // also of the holder
	MaxAccountNumber = 34
)

var (
	iban        = regexp.MustCompile(`^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$`)
	ibanStart   = regexp.MustCompile(`^[A-Z]{2}[0-9]{2}`)
	accountForm = regexp.MustCompile(`^[A-Z0-9/-]*$`)
	bic         = regexp.MustCompile(`^[A-Z]{6}[A-Z0-9]{2}([A-Z0-9]{3})?$`)
	bankNumber  = regexp.MustCompile(`^[0-9][0-9-]{2,11}$`)
)

// applyBank sets the given fields. Numbers are stored without spaces and in upper case.
func (p TenantPatch) applyBank(b *BankAccount) {
	p.BankAccountHolder.Set(&b.BankAccountHolder)
	p.BankAccountNumber.Set(&b.BankAccountNumber)
	p.BankCode.Set(&b.BankCode)
	p.BankName.Set(&b.BankName)
	b.BankAccountNumber, b.BankCode = compact(b.BankAccountNumber), compact(b.BankCode)
}

// compact removes the spaces of a number.
func compact(s string) string { return strings.ToUpper(strings.Join(strings.Fields(s), "")) }

// checkBank reports each invalid field.
func checkBank(b BankAccount, want func(ok bool, field, message string)) {
	want(isLine(b.BankAccountHolder, 0, MaxBankName), "bank_account_holder", "Must be one visible line of at most 100 characters.")
	want(isAccount(b.BankAccountNumber), "bank_account_number",
		"Must be an IBAN with a correct check number, or at most 34 letters, digits, hyphens and slashes that do not begin like an IBAN.")
	want(b.BankCode == "" || bic.MatchString(b.BankCode) || bankNumber.MatchString(b.BankCode), "bank_code",
		"Must be a BIC of 8 or 11 characters, or a number of 3 to 12 digits and hyphens.")
	want(isLine(b.BankName, 0, MaxBankName), "bank_name", "Must be one visible line of at most 100 characters.")
}

// isAccount reports whether a text is a correct IBAN (ISO 13616), another account number, or empty.
func isAccount(s string) bool {
	if len(s) > MaxAccountNumber || !accountForm.MatchString(s) {
		return false
	}
	if !ibanStart.MatchString(s) {
		return true
	}
	return iban.MatchString(s) && remainder(s[4:]+s[:4]) == 1
}

// remainder returns the number of an IBAN modulo 97 (ISO 7064): each letter stands for two digits, from A = 10.
func remainder(s string) int {
	rest := 0
	for _, r := range s {
		if r >= 'A' {
			rest = (rest*100 + int(r-'A') + 10) % 97
		} else {
			rest = (rest*10 + int(r-'0')) % 97
		}
	}
	return rest
}
