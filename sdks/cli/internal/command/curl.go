package command

import (
	"crypto/rand"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	holdfast "holdfast.dev/sdks/go"
)

var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quote returns text as one word of a POSIX shell.
func quote(text string) string {
	if plain.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// curl returns the curl command that sends a request. It names the credential as a variable of the environment. A write has an
// idempotency key, so that the command can be repeated.
func curl(baseURL string, r holdfast.Request, key string, version int64, file string) string {
	target := baseURL + r.Path
	if len(r.Query) > 0 {
		target += "?" + r.Query.Encode()
	}
	args := []string{"curl -sS " + quote(target)}
	add := func(args *[]string, flag, value string) { *args = append(*args, flag+" "+quote(value)) }
	if r.Method != http.MethodGet && (r.Method != http.MethodPost || r.Body == nil) {
		add(&args, "-X", r.Method)
	}
	args = append(args, `-H "Authorization: Bearer $HOLDFAST_API_KEY"`)
	if r.Accept != "" {
		add(&args, "-H", "Accept: "+r.Accept)
	}
	if r.Method == http.MethodPost || r.Method == http.MethodPatch {
		if key == "" {
			key = rand.Text()
		}
		add(&args, "-H", "Idempotency-Key: "+key)
		add(&args, "-H", "Prefer: handling=strict")
	}
	if version > 0 {
		add(&args, "-H", `If-Match: "`+strconv.FormatInt(version, 10)+`"`)
	}
	if r.Body != nil {
		add(&args, "-H", "Content-Type: application/json")
		add(&args, "--data-binary", string(r.Body))
	}
	if file != "" {
		add(&args, "-o", file)
	}
	return strings.Join(args, " \\\n  ")
}
