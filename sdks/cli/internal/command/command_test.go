package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	holdfast "holdfast.dev/sdks/go"

	"holdfast.dev/sdks/cli/internal/operations"
	"holdfast.dev/sdks/cli/internal/output"
)

// newApp returns an app without input, and its output.
func newApp() (*App, *bytes.Buffer) {
	var out bytes.Buffer
	return &App{In: strings.NewReader(""), Out: output.Stream{Writer: &out}, Err: output.Stream{Writer: &out}, Version: "test"}, &out
}

// walk calls a function for each command.
func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, sub := range cmd.Commands() {
		walk(sub, visit)
	}
}

// kebab returns paymentIntents as payment-intents.
func kebab(camel string) string {
	return strings.ToLower(regexp.MustCompile(`[A-Z]`).ReplaceAllString(camel, "-$0"))
}

// TestTheReferenceListsTheCommands checks that each line of reference.md is how a command is used, and that no command of an operation is missing.
func TestTheReferenceListsTheCommands(t *testing.T) {
	t.Parallel()
	a, _ := newApp()
	root := a.Root()
	text, err := os.ReadFile("../../reference.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `holdfast ([^`]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		path := strings.Fields(m[1])
		cmd, _, err := root.Find(path[:2])
		if err != nil || strings.TrimSuffix(cmd.UseLine(), " [flags]") != "holdfast "+m[1] {
			t.Errorf("%s: %q, %v", m[1], cmd.UseLine(), err)
		}
		listed[strings.Join(path[:2], " ")] = true
	}
	for _, res := range operations.Resources {
		for _, op := range res.Operations {
			if !listed[res.Name+" "+op.Name] {
				t.Errorf("%s %s is not listed", res.Name, op.Name)
			}
		}
	}
}

// TestEachOperationIsACommand builds all commands. A flag of a parameter that has the name of another flag would panic, or hide that of the
// root command.
func TestEachOperationIsACommand(t *testing.T) {
	t.Parallel()
	a, _ := newApp()
	root := a.Root()
	golden, err := os.ReadFile("../../../generate/model/testdata/operations.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^(\w+)\.(\w+): `).FindAllStringSubmatch(string(golden), -1)
	if len(names) < 80 {
		t.Errorf("%d operations", len(names))
	}
	for _, m := range names {
		path := []string{kebab(m[1]), strings.TrimSuffix(kebab(m[2]), "-csv")}
		cmd, rest, err := root.Find(path)
		if err != nil || len(rest) > 0 || cmd.Short == "" || cmd.Long == "" {
			t.Errorf("%v: %v %v", path, rest, err)
		}
	}
	walk(root, func(cmd *cobra.Command) {
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if root.PersistentFlags().Lookup(f.Name) != nil {
				t.Errorf("%s hides --%s", cmd.CommandPath(), f.Name)
			}
			if f.Usage == "" || strings.Contains(f.Usage, "](") {
				t.Errorf("%s --%s: %q", cmd.CommandPath(), f.Name, f.Usage)
			}
		})
	})
}

// TestEveryEventTypeHasATrigger checks that each event type can be caused.
func TestEveryEventTypeHasATrigger(t *testing.T) {
	t.Parallel()
	for _, e := range operations.EventTypes {
		if len(triggers[e]) == 0 {
			t.Errorf("nothing causes %s", e)
		}
	}
	if len(triggers) != len(operations.EventTypes) {
		t.Errorf("%d triggers, %d event types", len(triggers), len(operations.EventTypes))
	}
	if err := (cardConfig{key: "pk_live_1"}).check(triggers["payment.failed"]); !errors.Is(err, errNoCard) {
		t.Errorf("a live key: %v", err)
	}
}

// TestQuote checks that a shell reads each text as one word.
func TestQuote(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"plain", "a b", "it's", `"$HOME" \ ` + "`id`", "", "new\nline", "*?[!", "-n", "~", "é🛶", "#", "a=b;c"} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+quote(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q: %q %v", text, out, err)
		}
	}
}

// TestBody checks how flags, data and cleared fields make a body.
func TestBody(t *testing.T) {
	t.Parallel()
	params := []operations.Param{
		{Name: "name", Type: "string"},
		{Name: "count", Type: "integer", Nullable: true},
		{Name: "price.amount", Type: "integer"},
		{Name: "price.currency", Type: "string"},
		{Name: "ids", Type: "string", Array: true},
		{Name: "lines", Type: "any", Array: true},
		{Name: "active", Type: "boolean"},
		{Name: "metadata", Type: "string", Map: true},
	}
	for _, tc := range []struct {
		data, want string
		flags      []string
		clear      []string
	}{
		{"", "null", nil, nil},
		{"{}", "{}", nil, nil},
		{"", `{"name":"<a>"}`, []string{"name=<a>"}, nil},
		{`{"name":"a","other":[1.50,12345678901234567890]}`, `{"name":"b","other":[1.50,12345678901234567890]}`, []string{"name=b"}, nil},
		{`{"price":{"amount":1,"currency":"EUR"}}`, `{"price":{"amount":2,"currency":"EUR"}}`, []string{"price.amount=2"}, nil},
		{"", `{"price":{"amount":2,"currency":"USD"}}`, []string{"price.amount=2", "price.currency=USD"}, nil},
		{"", `{"active":false,"ids":["a","b,c"],"lines":[{"a":1},2]}`, []string{"ids=a", "ids=b,c", `lines={"a":1}`, "lines=2", "active=false"}, nil},
		{"", `{"metadata":{"a":"1","b":"x=y"}}`, []string{"metadata=a=1", "metadata=b=x=y"}, nil},
		{"", `{"count":null,"price":null}`, nil, []string{"count", "price"}},
	} {
		var inputs []*input
		for _, p := range params {
			i := &input{param: p}
			for _, flag := range tc.flags {
				if name, value, _ := strings.Cut(flag, "="); name == p.Name {
					if err := i.Set(value); err != nil {
						t.Fatal(err)
					}
				}
			}
			inputs = append(inputs, i)
		}
		got, err := body(tc.data, nil, inputs, tc.clear)
		if got == nil {
			got = json.RawMessage("null")
		}
		if err != nil || string(got) != tc.want {
			t.Errorf("%+v: %s %v", tc, got, err)
		}
	}
	if _, err := body("", nil, []*input{{param: params[0]}}, []string{"name"}); err == nil {
		t.Error("a field that cannot be null is cleared")
	}
	if _, err := body("-", strings.NewReader(`{"a":"`+strings.Repeat("x", maxBody)+`"}`), nil, nil); err == nil || !strings.Contains(err.Error(), "larger than 8 MiB") {
		t.Errorf("a large body: %v", err)
	}
}

// TestExitCodes checks the codes that the README lists.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]int{400: 3, 401: 4, 403: 4, 404: 5, 405: 3, 409: 6, 412: 6, 413: 3, 422: 3, 429: 7, 500: 8, 503: 8} {
		if got := exitCode(fmt.Errorf("wrapped: %w", &holdfast.Error{Status: status})); got != want {
			t.Errorf("%d: %d, want %d", status, got, want)
		}
	}
	for want, err := range map[int]error{
		1: errors.New("other"), 2: usagef("x"), 4: &holdfast.TokenError{Code: "invalid_grant"}, 8: &holdfast.ConnectionError{Err: errors.New("cut")}, 9: errNotConfirmed,
	} {
		if got := exitCode(err); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}

// TestLostResponse checks that the error says how to find out whether the write was carried out.
func TestLostResponse(t *testing.T) {
	t.Parallel()
	a, out := newApp()
	a.explain(a.Root(), &holdfast.ConnectionError{Method: "POST", Path: "/bookings", Attempts: 3, IdempotencyKey: "key-1", Err: errors.New("cut")})
	if !strings.Contains(out.String(), "repeat it with --idempotency-key key-1") {
		t.Errorf("%s", out)
	}
}

// TestVerify checks the newline that editors add, and the time.
func TestVerify(t *testing.T) {
	t.Parallel()
	const body = `{"a":"<é>"}`
	const header = "t=1803945600,v1=162dd460b7a2e456d2919fda3a3c78bb9869fafd00741066b2346b1eba14c0bb" // of OpenSSL, for the secret whsec_test
	at := time.Unix(1803945600, 0)
	for name, tc := range map[string]struct {
		header, body, secret, want string
		now                        time.Time
	}{
		"valid":          {header, body, "whsec_test", "", at.Add(300 * time.Second)},
		"newline":        {header, body + "\n", "whsec_test", errNewline.Error(), at},
		"changed":        {header, body + " ", "whsec_test", "no signature matches", at},
		"other secret":   {header, body, "whsec_other", "no signature matches", at},
		"too late":       {header, body, "whsec_test", "differs from the clock by 5m1s", at.Add(301 * time.Second)},
		"too early":      {header, body, "whsec_test", "differs from the clock by 5m1s", at.Add(-301 * time.Second)},
		"no signature":   {"t=1803945600", body, "whsec_test", "no signature matches", at},
		"no time":        {"v1=00", body, "whsec_test", "has no time", at},
		"without header": {"", body, "whsec_test", "is missing", at},
	} {
		err := verify(tc.header, []byte(tc.body), tc.secret, tc.now)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// TestCompletionAfterAFlag checks that completion works after a flag with a value, which cobra parses twice.
func TestCompletionAfterAFlag(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"--limit", "5"}, {"--limit", "5", "--sort", "updated_at"}, {"--metadata", "a=b"}} {
		a, out := newApp()
		if code := a.Run(t.Context(), append(append([]string{"__complete", "bookings", "list"}, flags...), "--payment-status", "")); code != 0 || !strings.Contains(out.String(), "deposit_paid") {
			t.Errorf("%v: %d %s", flags, code, out)
		}
	}
}

// TestAFlagGivenTwice checks that a flag for one value is rejected the second time, before a request is sent.
func TestAFlagGivenTwice(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"bookings", "list", "--limit", "5", "--limit", "6"}, {"logs", "tail", "--method", "GET", "--method", "POST"}, {"customers", "create", "--email", "a@b.test", "--email", "b@b.test"},
	} {
		a, out := newApp()
		if code := a.Run(t.Context(), args); code != exitUsage || !strings.Contains(out.String(), " was given twice") {
			t.Errorf("%v: %d %s", args, code, out)
		}
	}
}
