package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast.dev/services/webhooks/internal/domain"
)

func TestVerifyCommand(t *testing.T) {
	t.Parallel()
	body := "{\"note\":\"<&> \\u00e9 é 🛶\",\"line\":1}\n" // a body may end with a newline
	at := time.Unix(1_800_000_000, 0)
	header := domain.Sign([]byte(body), at, "whsec_b3RoZXI=", ownSecret)
	bare := domain.Sign([]byte(strings.TrimRight(body, "\n")), at, ownSecret)
	file := filepath.Join(t.TempDir(), "body.json")
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	const valid = "valid: signed at 2027-01-15T08:00:00Z\n"
	for name, tc := range map[string]struct {
		secret, header, file, stdin, at, want string
	}{
		"a file":           {ownSecret, header, file, "", "1800000000", valid},
		"standard input":   {ownSecret, header, "-", body, "1800000000", valid},
		"300 s later":      {ownSecret, header, file, "", "1800000300", valid},
		"301 s later":      {ownSecret, header, file, "", "1800000301", domain.ErrSignatureTime.Error()},
		"301 s earlier":    {ownSecret, header, file, "", "1799999699", domain.ErrSignatureTime.Error()},
		"now":              {ownSecret, header, file, "", "", domain.ErrSignatureTime.Error()},
		"wrong secret":     {"whsec_x", header, file, "", "1800000000", domain.ErrSignature.Error()},
		"changed byte":     {ownSecret, header, "-", strings.Replace(body, "1", "2", 1), "1800000000", domain.ErrSignature.Error()},
		"newline too many": {ownSecret, bare, file, "", "1800000000", errNewline.Error()},
		"no header":        {ownSecret, "v1=00", file, "", "1800000000", domain.ErrSignatureForm.Error()},
		"no file":          {ownSecret, header, file + "x", "", "1800000000", "no such file"},
	} {
		args := []string{"--secret", tc.secret, "--signature", tc.header, "--file", tc.file}
		if tc.at != "" {
			args = append(args, "--at", tc.at)
		}
		out, _, err := execute(t.Context(), verifyCommand(), tc.stdin, args...)
		got := out.String()
		if err != nil {
			got += err.Error()
		}
		if tc.want == valid && got != valid || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	fresh := domain.Sign([]byte(body), time.Now(), ownSecret)
	if _, _, err := execute(t.Context(), verifyCommand(), "", "--secret", ownSecret, "--signature", fresh, "--file", file); err != nil {
		t.Errorf("signed just now: %v", err)
	}
	fails(t, verifyCommand(), `required flag(s) "signature" not set`, "--secret", ownSecret, "--file", file)
}
