package domain_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"holdfast.dev/services/identity/internal/domain"
)

// TestMailName checks that a message shows a tenant's name without anything that a mail client turns into a link.
func TestMailName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Demo & <Co>":                           "Demo & Co",
		"St. Mary's Boats, Ltd.":                "St. Mary's Boats, Ltd.",
		"Müller-Boote (Süd)":                    "Müller-Boote (Süd)",
		"Reset at https://evil.example/x?y=1#z": "Reset at https evil example x y 1 z",
		"www.evil.example":                      "www evil example",
		"evil。example":                          "evil example",
		"ｅｖｉｌ．ｅｘａｍｐｌｅ／ａ":                        "evil example a",
		"evil․example":                          "evil example",
		"evil．\u200bexample":                    "evil example",
		"mail me@evil.example":                  "mail me evil example",
		"me＠evil.example":                       "me evil example",
		"mailto:me":                             "mailto me",
		`\\evil\share`:                          "evil share",
		"Call +49 30 901820":                    "Call",
		"Boats 2000":                            "Boats 2000",
		"a\r\nBcc: x":                           "a Bcc x",
		"\u202egpj.exe":                         "gpj exe",
		"...":                                   "",
		"@@":                                    "a business",
		strings.Repeat("é", 80):                 strings.Repeat("é", 60),
		"evil\u3002\u200dexample":               "evil example",
		"[click](evil)":                         "click (evil)",
	} {
		got := domain.MailName(name)
		if want == "" {
			if strings.Trim(got, ". ") != "" && got != "a business" {
				t.Errorf("%q: %q", name, got)
			}
			continue
		}
		if got != want || utf8.RuneCountInString(got) > 60 {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestSentence checks that a message has one period after a tenant's name.
func TestSentence(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"Boats": "to Boats.\n", "Boats Inc.": "to Boats Inc.\n", "Boats, Ltd.": "to Boats, Ltd.\n"} {
		if got := domain.LinkMessage(domain.InviteSubject(name), "https://auth.test/oauth/link/x"); !strings.HasPrefix(got, "You have been invited "+want) {
			t.Errorf("%q: %q", name, got)
		}
	}
}

// TestFoldEmail checks that an address has one account, regardless of its case, its Unicode form, and the form of its domain.
func TestFoldEmail(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{"Dana@Example.com", " dana@EXAMPLE.COM ", "ｄana@example.com"},
		{"jos\u00e9@example.com", "jose\u0301@example.com", "JOSE\u0301@example.com", "JOS\u00c9@example.com"},
		{"a@m\u00fcller.example", "a@xn--mller-kva.example", "A@XN--MLLER-KVA.example", "a@mu\u0308ller.example"},
	} {
		for _, s := range same {
			if domain.FoldEmail(s) != domain.FoldEmail(same[0]) {
				t.Errorf("%q: %q, %q: %q", s, domain.FoldEmail(s), same[0], domain.FoldEmail(same[0]))
			}
		}
	}
	for _, s := range []string{"a\u200bb@example.com", "a\u202eb@example.com", "a@ex\u00adample.com"} {
		if got, err := domain.CheckEmail(s); err == nil {
			t.Errorf("%q is taken as %q", s, got)
		}
	}
}
