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
	words := []string{"curl -sS " + quote(target)}
	add := func(words *[]string, flag, value string) { *words = append(*words, flag+" "+quote(value)) }
	if r.Method != http.MethodGet && (r.Method != http.MethodPost || r.Body == nil) {
		add(&words, "-X", r.Method)
	}
	words = append(words, `-H "Authorization: Bearer $HOLDFAST_API_KEY"`)
	if r.Accept != "" {
		add(&words, "-H", "Accept: "+r.Accept)
	}
	if r.Method == http.MethodPost || r.Method == http.MethodPatch {
		if key == "" {
			key = rand.Text()
		}
		add(&words, "-H", "Idempotency-Key: "+key)
		add(&words, "-H", "Prefer: handling=strict")
	}
	if version > 0 {
		add(&words, "-H", `If-Match: "`+strconv.FormatInt(version, 10)+`"`)
	}
	if r.Body != nil {
		add(&words, "-H", "Content-Type: application/json")
		add(&words, "--data-binary", string(r.Body))
	}
	if file != "" {
		add(&words, "-o", file)
	}
	return strings.Join(words, " \\\n  ")
}
