package domain

import (
	_ "embed" // the list of common passwords
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"holdfast.dev/libs/apperr"
)

// Bounds of a password, in characters.
const (
	minPassword = 12
	maxPassword = 256
)

// commonPasswords are those of the 100,000 commonest passwords that have at least 12 characters, in lower case and sorted: shorter ones
// are refused anyhow.
//
//go:embed common_passwords.txt
var commonPasswords string

var common = sync.OnceValue(func() []string { return strings.Split(strings.TrimSpace(commonPasswords), "\n") })

// CheckPassword returns the 422 of a password that the policy refuses: NIST SP 800-63B, section 3.1.1.2. The length counts, and no rules
// of composition; common passwords, and those that hold the operator's own address, are refused.
func CheckPassword(password, email string) error {
	n := utf8.RuneCountInString(password)
	folded := strings.ToLower(password)
	local, _, _ := strings.Cut(FoldEmail(email), "@")
	_, listed := slices.BinarySearch(common(), folded)
	switch {
	case !utf8.ValidString(password):
		return apperr.Field("password", "Must be UTF-8.")
	case n < minPassword:
		return apperr.Field("password", "Must have at least 12 characters.")
	case n > maxPassword:
		return apperr.Field("password", "Must have at most 256 characters.")
	case listed || repeats(folded):
		return apperr.Field("password", "Is one of the commonest passwords. Choose another one, such as four words that do not belong together.")
	case len(local) >= 4 && strings.Contains(folded, local):
		return apperr.Field("password", "Must not contain your e-mail address.")
	}
	return nil
}

// repeats reports whether a password is one character all along.
func repeats(s string) bool { return strings.Trim(s, s[:1]) == "" }
