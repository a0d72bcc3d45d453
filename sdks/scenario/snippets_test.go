package scenario_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// printed is what each program of snippets prints, in every language. The guides of docs/guides show parts of these programs.
var printed = map[string]string{
	"authentication": `api_key test`,
	"availability":   `2027-07-03 available 8000 2027-07-04 closed 8000 false closed`,
	"closures":       `2027-12-24T05:00:00Z 2028-01-02T05:00:00Z 2028-01-04T05:00:00Z`,
	"correction":     `issued 3000 5000 credited 8000 0`,
	"departures":     `pending 9000 true 10 2 8`,
	"endpoints":      `enabled`,
	"errors":         `pending slot_unavailable invalid_request email`,
	"events":         `customer\.created`,
	"feeds":          `Kayak https?://\S+/calendar/\S+\.ics`,
	"lists":          `3 true`,
	"oauth":          `(200|303)`,
	"payments":       `requires_payment_method succeeded succeeded 500 cash receipt-7`,
	"pricing":        `12500 10000 2500`,
	"quickstart": `America/New_York USD 2027-07-03T13:00:00Z available 2027-07-03T15:00:00Z available 2027-07-03T17:00:00Z available ` +
		`2027-07-03T19:00:00Z available pending 8000 2000 requires_payment_method succeeded payment\.succeeded 2000 deposit_paid`,
	"quotes":    `sent accepted deposit open 2000 paid`,
	"receiver":  `receiver@example\.com`,
	"retries":   `0 1 2 version_mismatch`,
	"taxes":     `21000 1600 1278 20678`,
	"testclock": `true true expired`,
	"timezones": `2027-07-03T13:00:00Z 2027-07-03T15:00:00Z 09:00 11:00`,
}

// alone are the programs that change what others see.
var alone = []string{"testclock"}

// programs are the files of a language, and how to run one of them.
type programs struct {
	files string // pattern of the files
	name  *regexp.Regexp
	run   func(file, name string) []string
}

const longestSnippet = time.Minute

// TestSnippets runs all programs of which the guides show parts, and compares what they print. A folder of snippets has no program
// that is not run.
func TestSnippets(t *testing.T) {
	if _, err := exec.LookPath("jq"); err != nil {
		t.Fatal("the snippets with curl use jq: run `apt-get install jq` as root")
	}
	binaries := t.TempDir()
	build(t, "go", "build", "-o", binaries+string(filepath.Separator), "./snippets/go/...")
	build(t, "../../.ci/sdk-typescript", "guides")
	languages := map[string]programs{
		"curl": {"snippets/curl/*.sh", regexp.MustCompile(`(\w+)\.sh$`), func(file, _ string) []string { return []string{"bash", file} }},
		"go": {"snippets/go/*/main.go", regexp.MustCompile(`(\w+)/main\.go$`), func(_, name string) []string {
			return []string{filepath.Join(binaries, name)}
		}},
		"python": {"snippets/python/*.py", regexp.MustCompile(`(\w+)\.py$`), func(file, _ string) []string {
			return []string{absolute(t, "../../.ci/sdk-python"), "run", file}
		}},
		"typescript": {"snippets/typescript/*.ts", regexp.MustCompile(`(\w+)\.ts$`), func(_, name string) []string {
			return []string{"node", absolute(t, "../typescript/build/test/guides/"+name+".js")}
		}},
	}
	seen := map[string]bool{}
	t.Run("together", func(t *testing.T) {
		for language, p := range languages {
			eachProgram(t, language, p, func(t *testing.T, file, name string, command []string) {
				t.Helper()
				seen[name] = true
				if !slices.Contains(alone, name) {
					t.Parallel()
					checkProgram(t, file, name, command)
				}
			})
		}
	})
	for language, p := range languages {
		eachProgram(t, language, p, func(t *testing.T, file, name string, command []string) {
			t.Helper()
			if slices.Contains(alone, name) {
				checkProgram(t, file, name, command)
			}
		})
	}
	if all := slices.Sorted(maps.Keys(printed)); !slices.Equal(all, slices.Sorted(maps.Keys(seen))) {
		t.Errorf("programs %v, want %v", slices.Sorted(maps.Keys(seen)), all)
	}
}

// eachProgram runs a test for each program of a language.
func eachProgram(t *testing.T, language string, p programs, test func(t *testing.T, file, name string, command []string)) {
	t.Helper()
	files, err := filepath.Glob(p.files)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %v", p.files, files, err)
	}
	for _, file := range files {
		name := p.name.FindStringSubmatch(file)[1]
		t.Run(language+"/"+name, func(t *testing.T) { test(t, file, name, p.run(absolute(t, file), name)) })
	}
}

// checkProgram runs a program in a new folder, and compares what it prints.
func checkProgram(t *testing.T, file, name string, command []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longestSnippet)
	defer cancel()
	want, ok := printed[name]
	if !ok {
		t.Fatalf("add what %s prints to the table", name)
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.WaitDelay = t.TempDir(), time.Second
	cmd.Env = append(os.Environ(), "HOLDFAST_BASE_URL="+shared.baseURL, "HOLDFAST_API_KEY="+shared.key)
	cmd.Env = append(cmd.Env, objects(ctx, t, file)...)
	for _, setting := range []string{"AUTH_URL", "OAUTH_CLIENT_ID", "OAUTH_REDIRECT_URI", "STRIPE_URL", "STRIPE_PUBLISHABLE_KEY"} {
		cmd.Env = append(cmd.Env, setting+"="+shared.setting(setting))
	}
	var out, failure bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failure
	err := cmd.Run()
	if got := strings.Join(strings.Fields(out.String()), " "); err != nil || !regexp.MustCompile("^"+want+"$").MatchString(got) {
		t.Errorf("%v\nprinted %s\nwant    %s\n%s", err, got, want, failure.String())
	}
}

// objects creates the objects that a program expects in its environment, and returns the variables.
func objects(ctx context.Context, t *testing.T, file string) (env []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	expects := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return bytes.Contains(text, []byte(name)) })
	}
	run := "run" + strings.ToLower(rand.Text()[:12])
	env = append(env, "RUN="+run, "SINCE="+time.Now().UTC().Add(-time.Minute).Format(time.RFC3339))
	customers := map[bool]int{true: 3, false: 0}[expects("RUN", "SINCE")] + map[bool]int{true: 1, false: 0}[expects("CUSTOMER_ID")]
	for range customers {
		id := shared.create(ctx, t, "/customers", fmt.Sprintf(`{"first_name":"Ada","last_name":%q,"email":"%s@example.com"}`, run, run))
		env = append(env, "CUSTOMER_ID="+id)
	}
	if expects("INVOICE_ID") {
		customer := shared.create(ctx, t, "/customers", `{"first_name":"Ada","email":"ada@example.com"}`)
		invoice := shared.create(ctx, t, "/invoices", `{"customer_id":"`+customer+
			`","line_items":[{"description":"Kayak tour","quantity":1,"unit_amount":{"amount":8000,"currency":"USD"}}]}`)
		shared.post(ctx, t, "/invoices/"+invoice+"/open", "{}", http.StatusOK)
		env = append(env, "INVOICE_ID="+invoice)
	}
	if expects("UNIT_ID", "SERVICE_ID", "PACKAGE_ID") {
		service := shared.create(ctx, t, "/services", `{"name":"Kayak tour","duration_minutes":120}`)
		unit := shared.create(ctx, t, "/units", `{"name":"Kayak","service_ids":["`+service+`"],"opening_hours":{"sat":[["09:00","17:00"]]}}`)
		offer := shared.create(ctx, t, "/packages", `{"name":"Two hours","service_id":"`+service+
			`","base_price":{"amount":8000,"currency":"USD"},"deposit_type":"percentage","deposit_value":2500}`)
		env = append(env, "SERVICE_ID="+service, "UNIT_ID="+unit, "PACKAGE_ID="+offer)
	}
	return env
}

func build(t *testing.T, command ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", command, err, out)
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
