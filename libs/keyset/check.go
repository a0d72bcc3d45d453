package keyset

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/proto"
)

// Problem describes a Secret, a setting in it or a pair of services that is wrong, and what to do. It contains no secret.
type Problem struct {
	Subject string // such as "bookings-migrate", "bookings: CURSOR_KEYS" or "gateway/bookings"
	Text    string
}

// String returns one line.
func (p Problem) String() string { return p.Subject + ": " + p.Text }

// Check returns what is wrong with a set: Secrets and settings that are missing, values that the services would refuse, and pairs in which
// the service that is called does not accept the signature of the caller.
func (s Set) Check() []Problem {
	var all []Problem
	report := func(subject, text string, args ...any) {
		all = append(all, Problem{subject, fmt.Sprintf(text, args...)})
	}
	for _, name := range Names() {
		values, ok := s[name]
		if !ok {
			report(name, "the Secret is missing; create it with %s", strings.Join(settings(name), ", "))
			continue
		}
		for _, setting := range settings(name) {
			if text := wrong(setting, values[setting]); text != "" {
				report(name+": "+setting, "%s", text)
			}
		}
	}
	for _, p := range Pairs() {
		if text := s.disagreement(p); text != "" {
			report(p.String(), "%s", text)
		}
	}
	return append(all, s.surplus()...)
}

// wrong returns why a service would refuse the value of a setting; "" if it would not. Keys of callers are checked by pair.
func wrong(setting, value string) string {
	var err error
	switch {
	case setting == signKeys || setting == verifyKeys:
		_, err = caller.ParseKeys(value)
		if err == nil && value == "" {
			return "has no value; add the keys of the pairs below"
		}
	case value == "":
		return "has no value; set it"
	case setting == cursorKeys:
		_, err = page.NewCodec(value)
	case setting == encryptionKeys:
		_, err = crypt.NewBox(value)
	case strings.HasSuffix(setting, "_URL"):
		if u, err := url.Parse(value); err != nil || u.Scheme == "" {
			return "is not a URL"
		}
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// probe is a caller that a test signature contains.
var probe = caller.Caller{Tenant: ids.Tenant{}, Mode: caller.Live, Credential: "check"}

// disagreement returns why the target of a pair does not accept the signature of the caller, and what to do; "" if it accepts it.
func (s Set) disagreement(p Pair) string {
	sign, err := caller.ParseKeys(s[p.From][signKeys])
	if err != nil {
		return fmt.Sprintf("%s of %s cannot be read", signKeys, p.From)
	}
	verify, err := caller.ParseKeys(s[p.To][verifyKeys])
	if err != nil {
		return fmt.Sprintf("%s of %s cannot be read", verifyKeys, p.To)
	}
	if accepts(sign, verify, p) {
		return ""
	}
	switch known := verify.For(p.From); {
	case len(sign.For(p.To)) == 0:
		return fmt.Sprintf("%s of %s has no key for %s; add %[3]s=<the key for %[2]s in %[4]s of %[3]s>", signKeys, p.From, p.To, verifyKeys)
	case len(known) == 0:
		return fmt.Sprintf("%s of %s has no key of %s; add %[3]s=<the key for %[2]s in %[4]s of %[3]s>", verifyKeys, p.To, p.From, signKeys)
	case slices.ContainsFunc(known, func(k caller.Key) bool { return k.ID == sign.For(p.To)[0].ID }):
		return fmt.Sprintf("the key %s of %s and that of %s are different; copy the key from %s of %[2]s to %[5]s of %[3]s",
			sign.For(p.To)[0].ID, p.From, p.To, signKeys, verifyKeys)
	default:
		return fmt.Sprintf("%s signs with the key %s, which %s does not accept; add the key to %s of %[3]s", p.From, sign.For(p.To)[0].ID, p.To, verifyKeys)
	}
}

// accepts reports whether the target of a pair accepts what the caller signs, as in a call.
func accepts(sign, verify caller.KeySource, p Pair) bool {
	now := time.Unix(0, 0)
	signed, err := (&caller.Signer{From: p.From, Keys: sign}).Sign(probe, p.To, http.MethodGet, "/", now)
	if err != nil {
		return false
	}
	_, _, err = (&caller.Verifier{Self: p.To, Keys: verify}).Verify(signed, http.MethodGet, "/", now)
	return err == nil
}

// surplus returns keys with services that are no pair, which give a service rights that it does not need.
func (s Set) surplus() (all []Problem) {
	pairs := Pairs()
	for _, service := range proto.Services() {
		for setting, pair := range map[string]func(peer string) Pair{
			signKeys:   func(peer string) Pair { return Pair{service.Name, peer} },
			verifyKeys: func(peer string) Pair { return Pair{peer, service.Name} },
		} {
			keys, _ := caller.ParseKeys(s[service.Name][setting]) // an error is reported elsewhere
			for peer := range keys {
				if p := pair(peer); !slices.Contains(pairs, p) {
					all = append(all, Problem{p.String(), fmt.Sprintf("%s does not call %s; remove the key from %s of %s", p.From, p.To, setting, service.Name)})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b Problem) int { return cmp.Compare(a.String(), b.String()) })
	return all
}
