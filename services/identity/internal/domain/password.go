package domain

import (
	_ "embed" // the list of common passwords
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// The limits of a password, in characters.
const (
	minPassword = 12
	maxPassword = 256
)

// commonPasswords contains the passwords with at least 12 characters among the 100,000 most common ones, in lower case and sorted.
// Shorter ones are rejected anyway.
//
//go:embed common_passwords.txt
var commonPasswords string

var common = sync.OnceValue(func() []string { return strings.Split(strings.TrimSpace(commonPasswords), "\n") })

// PasswordError is the rule that a password violates, as the id of its text on the pages.
type PasswordError string

// The rules for passwords.
const (
	PasswordLength  PasswordError = "password_length" // 12 to 256 characters, in UTF-8
	PasswordCommon  PasswordError = "password_common"
	PasswordAddress PasswordError = "password_address" // not the operator's own
)

func (e PasswordError) Error() string { return string(e) }

// CheckPassword returns a PasswordError for a password that violates the policy: NIST SP 800-63B, section 3.1.1.2. It checks the
// length, but no composition rules. It rejects common passwords and those that contain the operator's own address.
func CheckPassword(password, email string) error {
	n := utf8.RuneCountInString(password)
	folded := strings.ToLower(password)
	local, _, _ := strings.Cut(FoldEmail(email), "@")
	_, listed := slices.BinarySearch(common(), folded)
	switch {
	case !utf8.ValidString(password) || n < minPassword || n > maxPassword:
		return PasswordLength
	case listed || repeats(folded):
		return PasswordCommon
	case len(local) >= 4 && strings.Contains(folded, local):
		return PasswordAddress
	}
	return nil
}

// repeats reports whether a password repeats a single character.
func repeats(s string) bool { return strings.Trim(s, s[:1]) == "" }
