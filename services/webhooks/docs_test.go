package main

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76/webhook"

	"holdfast.dev/libs/contract/contracttest"
	"holdfast.dev/proto"

	"holdfast.dev/services/webhooks/internal/domain"
)

// manual returns the text of docs/guides/webhooks.md. Its path begins with the module's and is not cleaned, because go test would
// otherwise use a cached result after a change of the file.
func manual(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(dir + "/../../docs/guides/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// block returns the only code block of a language that begins with start.
func block(t *testing.T, language, start string) string {
	t.Helper()
	found := regexp.MustCompile("(?ms)^```"+language+"\n("+regexp.QuoteMeta(start)+".*?)^```$").FindAllStringSubmatch(manual(t), -1)
	if len(found) != 1 {
		t.Fatalf("%d blocks of %s that begin with %q", len(found), language, start)
	}
	return found[0][1]
}

// check is a receiver's verification.
type check = func(header string, body []byte, secret string, now int64) bool

// The programs that call the functions of the page. They read lines of JSON and print true or false for each.
const (
	goProgram = `package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"receiver/webhook"
)

func main() {
	var in struct { Header, Secret string; Body []byte; Now int64 }
	for lines := json.NewDecoder(os.Stdin); lines.Decode(&in) == nil; {
		fmt.Println(webhook.Verify(in.Body, in.Header, in.Secret, time.Unix(in.Now, 0)))
	}
}
`
	nodeProgram = `import { createInterface } from "node:readline";
import { verify } from "./verify.js";
for await (const line of createInterface({ input: process.stdin })) {
  const c = JSON.parse(line);
  console.log(await verify(Buffer.from(c.Body, "base64"), c.Header, c.Secret, c.Now));
}
`
	pythonProgram = `
import base64, json, sys
for line in sys.stdin:
    c = json.loads(line)
    print(str(verify(base64.b64decode(c["Body"]), c["Header"], c["Secret"], c["Now"])).lower(), flush=True)
`
)

// verifiers returns the functions of docs/guides/webhooks.md by language, and runs each unchanged. It skips a language that is not
// installed and logs the reason.
func verifiers(t *testing.T) map[string]func(header string, body []byte, secret string, now int64) bool {
	t.Helper()
	out := map[string]check{"go": buildGo(t)}
	if f := buildTypeScript(t); f != nil {
		out["typescript"] = f
	}
	if f := buildPython(t); f != nil {
		out["python"] = f
	}
	return out
}

func buildGo(t *testing.T) check {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "go.mod", "module receiver\n\ngo 1.21\n")
	write(t, dir, "main.go", goProgram)
	write(t, dir, "webhook/verify.go", block(t, "go", "package webhook"))
	return runs(t, compile(t, dir, "."))
}

// compile builds a statically linked Go program and returns its path.
func compile(t *testing.T, dir, what string) string {
	t.Helper()
	build := exec.Command("go", "build", "-o", "receiver", what)
	build.Dir, build.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the Go of the page: %v\n%s", err, text)
	}
	return filepath.Join(dir, "receiver")
}

// The page's first receiver responds to a delivery with 2xx and prints it. The test replaces its port with a free one.
func TestFirstReceiverOfThePage(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const fixed = "127.0.0.1:3000"
	code, dir := block(t, "go", "package main"), t.TempDir()
	if n := strings.Count(manual(t), "http://"+fixed+"/hooks"); n < 2 || !strings.Contains(code, `"`+fixed+`"`) {
		t.Errorf("the receiver is named %d times, want it started and registered at http://%s/hooks", n, fixed)
	}
	write(t, dir, "receiver.go", strings.ReplaceAll(code, fixed, l.Addr().String()))
	cmd := exec.CommandContext(t.Context(), compile(t, dir, "receiver.go"))
	shown := &screen{}
	cmd.Stdout, cmd.Stderr = shown, shown
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // the kill stops it
	})
	shown.shows(t, "waiting on http://"+l.Addr().String()+"/hooks")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		status, err := post(t, "http://"+l.Addr().String()+"/hooks", "evt_1", "customer.created")
		if err != nil && time.Now().Before(deadline) {
			continue // it prints this just before it listens
		}
		if err != nil || status != http.StatusNoContent {
			t.Fatalf("%d, %v", status, err)
		}
		break
	}
	shown.shows(t, "customer.created", "evt_1", strconv.Itoa(len(signedBody)))
}

// post sends signedBody to a receiver as a delivery, and returns the status of the response.
func post(t *testing.T, address, id, kind string) (int, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(signedBody))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range domain.Headers(id, kind, "whd_1", 1, []byte(signedBody), time.Now(), domain.NewSecret()) {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

// screen is the output of a process, which the test reads while the process runs.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds output.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// shows waits until a line contains all parts.
func (s *screen) shows(t *testing.T, parts ...string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		s.mu.Lock()
		text := s.text.String()
		s.mu.Unlock()
		for line := range strings.Lines(text) {
			if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
				return
			}
		}
	}
	t.Fatalf("no line has %q:\n%s", parts, s.text.String())
}

// buildTypeScript compiles with all checks and with the types of browsers, without those of Node.
func buildTypeScript(t *testing.T) check {
	t.Helper()
	for _, tool := range []string{"node", "npx"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Logf("typescript is left out: %v", err)
			return nil
		}
	}
	dir := t.TempDir()
	tsc := func(args ...string) ([]byte, error) {
		cmd := exec.Command("npx", append([]string{"--yes", "-p", "typescript@5.9.2", "tsc"}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "npm_config_loglevel=error")
		return cmd.CombinedOutput()
	}
	if text, err := tsc("--version"); err != nil {
		t.Logf("typescript is left out: its compiler cannot be had: %v\n%s", err, text)
		return nil
	}
	write(t, dir, "verify.ts", block(t, "ts", ""))
	write(t, dir, "package.json", `{"type":"module"}`)
	write(t, dir, "main.js", nodeProgram)
	if text, err := tsc("--strict", "--target", "es2022", "--module", "es2022", "--lib", "es2022,dom", "verify.ts"); err != nil {
		t.Fatalf("the TypeScript of the page: %v\n%s", err, text)
	}
	return runs(t, "node", filepath.Join(dir, "main.js"))
}

func buildPython(t *testing.T) check {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Logf("python is left out: %v", err)
		return nil
	}
	dir := t.TempDir()
	write(t, dir, "verify.py", block(t, "python", "")+pythonProgram)
	return runs(t, "python3", filepath.Join(dir, "verify.py"))
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// runs starts a program and returns a function that passes deliveries to it until the test ends. A program that crashes on a
// header is as wrong as one that accepts it.
func runs(t *testing.T, name string, args ...string) check {
	t.Helper()
	cmd := exec.Command(name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, &stderr)
		}
	})
	requests, lines := json.NewEncoder(in), bufio.NewScanner(out)
	return func(header string, body []byte, secret string, now int64) bool {
		err := requests.Encode(map[string]any{"Header": header, "Body": body, "Secret": secret, "Now": now})
		lines.Scan()
		verdict, parsed := strconv.ParseBool(lines.Text())
		if err != nil || parsed != nil {
			t.Errorf("%s with header %q: %v, %q", name, header, err, lines.Text())
		}
		return verdict
	}
}

// verdict is a delivery with the result that a receiver must find.
type verdict struct {
	header string
	body   string
	secret string
	now    int64
	valid  bool
}

const (
	signedBody = `{"id":"evt_1","note":"<b>&amp;</b> \u003c\u00e9\ud83d\udef6 é 🛶","n":1.50,"nested":{"a":[1,2]}}`
	signedTime = 1_800_000_000
	ownSecret  = "whsec_dGhpcyBpcyBhIHNlY3JldCBvZiB0aGUgdGVzdHM="
	oldSecret  = "whsec_b2xkIG9sZCBvbGQ="
)

func verdicts() map[string]verdict {
	at := time.Unix(signedTime, 0)
	one := domain.Sign([]byte(signedBody), at, ownSecret)
	two := domain.Sign([]byte(signedBody), at, ownSecret, oldSecret)
	t, mac, _ := strings.Cut(one, ",v1=")
	with := func(header string, valid bool) verdict {
		return verdict{header, signedBody, ownSecret, signedTime, valid}
	}
	raw := "\x00\xff\r\n not JSON, not UTF-8 \x80"
	return map[string]verdict{
		"valid":                   with(one, true),
		"rotated, the new one":    with(two, true),
		"rotated, the old one":    {two, signedBody, oldSecret, signedTime, true},
		"rotated, neither":        {two, signedBody, "whsec_bmVpdGhlcg==", signedTime, false},
		"300 s later":             {one, signedBody, ownSecret, signedTime + 300, true},
		"300 s earlier":           {one, signedBody, ownSecret, signedTime - 300, true},
		"301 s later":             {one, signedBody, ownSecret, signedTime + 301, false},
		"301 s earlier":           {one, signedBody, ownSecret, signedTime - 301, false},
		"a changed byte":          {one, strings.Replace(signedBody, "1.50", "1.51", 1), ownSecret, signedTime, false},
		"escapes written out":     {one, strings.Replace(signedBody, `\u003c`, "<", 1), ownSecret, signedTime, false},
		"a newline more":          {one, signedBody + "\n", ownSecret, signedTime, false},
		"no body":                 {one, "", ownSecret, signedTime, false},
		"an empty body":           {domain.Sign(nil, at, ownSecret), "", ownSecret, signedTime, true},
		"any bytes":               {domain.Sign([]byte(raw), at, ownSecret), raw, ownSecret, signedTime, true},
		"wrong secret":            {one, signedBody, oldSecret, signedTime, false},
		"secret without prefix":   {one, signedBody, strings.TrimPrefix(ownSecret, domain.SecretPrefix), signedTime, false},
		"another time":            with(strings.Replace(one, "t=1800000000", "t=1800000001", 1), false),
		"two times, the last one": with("t=1800000001,"+one, true),
		"two times, the wrong":    with(one+",t=1800000001", false),
		"signature first":         with("v1="+mac+","+t, true),
		"a wrong one before":      with(t+",v1="+strings.Repeat("0", 64)+",v1="+mac, true),
		"rubbish before":          with(t+",v1=xyz,v1=,v1="+mac, true),
		"of other schemes":        with(one+",v0="+mac+",v2=abc=def,x=", true),
		"another scheme only":     with(t+",v0="+mac, false),
		"capitals":                with(t+",v1="+strings.ToUpper(mac), true),
		"half":                    with(t+",v1="+mac[:32], false),
		"longer":                  with(one+"00", false),
		"spaces between digits":   with(t+",v1="+mac[:2]+" "+mac[2:], false),
		"a space":                 with(strings.Replace(one, ",", ", ", 1), false),
		"not ASCII":               with(t+",v1=é"+mac[2:], false),
		"nothing":                 with("", false),
		"a comma":                 with(",", false),
		"a comma more":            with(one+",", false),
		"a word more":             with(one+",word", false),
		"no time":                 with("v1="+mac, false),
		"an empty time":           with("t=,v1="+mac, false),
		"no number":               with("t=now,v1="+mac, false),
		"a fraction":              with(signedAs("1800000000.0"), false),
		"an exponent":             with(signedAs("18e8"), false),
		"underscores":             with(signedAs("1_800_000_000"), false),
		"a time after a space":    with(signedAs(" 1800000000"), false),
		"hexadecimal":             with(signedAs("0x6b49d200"), false),
		"digits of others":        with(signedAs("１８００００００００"), false),
		"zeros before":            with(signedAs("001800000000"), true),
		"an endless number":       with("t="+strings.Repeat("9", 400)+",v1="+mac, false),
		"a negative time":         with("t=-1800000000,v1="+mac, false),
		"no signature":            with(t, false),
		"names in capitals":       with(strings.ToUpper(t)+",V1="+mac, false),
	}
}

// signedAs returns a header whose signature matches a time that is written in an unusual form.
func signedAs(t string) string {
	mac := hmac.New(sha256.New, []byte(ownSecret))
	mac.Write([]byte(t + "." + signedBody))
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// The functions of the page return the same as domain.Verify for any input.
func TestVerifiersOfThePage(t *testing.T) {
	t.Parallel()
	checks := verifiers(t)
	for name, v := range verdicts() {
		err := domain.Verify(v.header, []byte(v.body), v.secret, time.Unix(v.now, 0))
		if (err == nil) != v.valid {
			t.Errorf("%s: domain.Verify says %v, want valid %v", name, err, v.valid)
		}
	}
	for _, language := range []string{"go", "typescript", "python"} {
		t.Run(language, func(t *testing.T) {
			verify := checks[language]
			if verify == nil {
				t.Skip(language + " does not run on this machine; the reason is logged above")
			}
			for name, v := range verdicts() {
				if got := verify(v.header, []byte(v.body), v.secret, v.now); got != v.valid {
					t.Errorf("%s: valid is %v, want %v", name, got, v.valid)
				}
			}
		})
	}
}

// Stripe's own library accepts the signatures. It does not check for times in the future.
func TestStripeVerifiesDeliveries(t *testing.T) {
	t.Parallel()
	now := time.Now()
	sign := func(at time.Time, secrets ...string) string { return domain.Sign([]byte(signedBody), at, secrets...) }
	for name, tc := range map[string]struct {
		header, body string
		want         error
	}{
		"valid":         {sign(now, ownSecret), signedBody, nil},
		"rotated":       {sign(now, oldSecret, ownSecret), signedBody, nil},
		"290 s old":     {sign(now.Add(-290*time.Second), ownSecret), signedBody, nil},
		"301 s old":     {sign(now.Add(-301*time.Second), ownSecret), signedBody, webhook.ErrTooOld},
		"changed":       {sign(now, ownSecret), signedBody + " ", webhook.ErrNoValidSignature},
		"other secrets": {sign(now, oldSecret), signedBody, webhook.ErrNoValidSignature},
	} {
		if err := webhook.ValidatePayloadWithTolerance([]byte(tc.body), tc.header, ownSecret, domain.Tolerance); err != tc.want { //nolint:errorlint // as it is returned
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}

// The delivery that the page shows is exactly what would be sent.
func TestExampleOfThePage(t *testing.T) {
	t.Parallel()
	head, body, _ := strings.Cut(block(t, "http", ""), "\n\n")
	body = strings.TrimSuffix(body, "\n")
	header := http.Header{}
	for _, line := range strings.Split(head, "\n")[1:] {
		name, value, _ := strings.Cut(line, ": ")
		header.Set(name, value)
	}
	secret := regexp.MustCompile("signed with `(whsec_[^`]+)`").FindStringSubmatch(manual(t))[1]
	unix, _ := strconv.ParseInt(header.Get("webhook-timestamp"), 10, 64)
	if err := domain.Verify(header.Get("Service-Signature"), []byte(body), secret, time.Unix(unix, 0)); err != nil {
		t.Error(err)
	}
	if want := domain.SignStandard(header.Get("webhook-id"), []byte(body), time.Unix(unix, 0), secret); header.Get("webhook-signature") != want {
		t.Errorf("webhook-signature is %s", want)
	}
	var e struct {
		ID, Type string
		Data     struct{ Object json.RawMessage }
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil || e.ID != header.Get("Service-Event-Id") || e.ID != header.Get("webhook-id") || e.Type != header.Get("Service-Event-Type") {
		t.Errorf("%v: %+v with %v", err, e, header)
	}
	checkResponse(t, "/events/"+e.ID, []byte(body))
	checkResponse(t, "/customers/cu_1", e.Data.Object, "Etag")
}

// checkResponse checks a body against the contract as the response to a GET.
func checkResponse(t *testing.T, path string, body []byte, more ...string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, "/api/v1"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"req_1"}}
	for _, name := range more {
		header.Set(name, `"1"`)
	}
	res := &http.Response{StatusCode: http.StatusOK, Header: header}
	contracttest.NewService(t, proto.OpenAPI).Check(t, req, res, body)
}

func TestTypesOfThePage(t *testing.T) {
	t.Parallel()
	var want strings.Builder
	for _, e := range proto.EventTypes {
		fmt.Fprintf(&want, "| `%s` | `%s` | %s |\n", e.Name, e.Scope, e.Description)
	}
	if !strings.Contains(manual(t), want.String()) {
		t.Errorf("the table of types must be\n%s", &want)
	}
}
