package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/testservers"
	"holdfast.dev/proto"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/view"
)

var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "identity")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "identity")
	out, err := exec.Command("go", "build", "-o", path, "holdfast.dev/services/identity").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return path, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := binary(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// shell runs identity's commands in a folder below one with a .run/env.
type shell struct {
	t                *testing.T
	dir, prefix, url string
}

// newShell creates the database and its roles like `make up`, migrates with the command, and drops everything at the end.
func newShell(t *testing.T) *shell {
	t.Helper()
	s := &shell{t: t, dir: t.TempDir(), url: testservers.Getenv(t, "TEST_POSTGRES_URL"), prefix: "t" + ids.New[ids.RequestPrefix]().String()[4:] + "_"}
	db := s.prefix + "identity"
	for _, statement := range append(pg.DatabaseOf(db).RoleStatements(), pg.DatabaseOf(db).Create()) {
		s.sql(statement)
	}
	t.Cleanup(func() {
		s.sql(`drop database ` + db + ` with (force)`)
		s.sql(`drop role ` + db + `_owner, ` + db + `_app, ` + db + `_worker`)
	})
	file := fmt.Sprintf("POSTGRES_URL=%s\nREDIS_URL=%s\nHOLDFAST_PREFIX=%s\n", s.url, testservers.Getenv(t, "TEST_REDIS_URL"), s.prefix)
	if err := os.MkdirAll(filepath.Join(s.dir, ".run"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, ".run", "env"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(s.dir, "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.dir = filepath.Join(s.dir, "below")
	s.run("migrate")
	return s
}

func (s *shell) sql(statement string) {
	s.t.Helper()
	ctx := context.Background() // also used while the test cleans up
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, statement); err != nil {
		s.t.Fatalf("%s: %v", statement, err)
	}
}

func (s *shell) command(args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	s.t.Helper()
	path, err := binary()
	if err != nil {
		s.t.Fatal(err)
	}
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	cmd = exec.Command(path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = s.dir, stdout, stderr, []string{"PATH=" + os.Getenv("PATH")}
	return cmd, stdout, stderr
}

func (s *shell) run(args ...string) string {
	s.t.Helper()
	cmd, stdout, stderr := s.command(args...)
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("identity %s: %v: %s", strings.Join(args, " "), err, stderr)
	}
	return stdout.String()
}

func (s *shell) fails(message string, args ...string) {
	s.t.Helper()
	cmd, stdout, stderr := s.command(args...)
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(stderr.String(), message) {
		s.t.Errorf("identity %s: %v, %q; want exit 1 and %q", strings.Join(args, " "), err, stderr, message)
	}
	if strings.Contains(stderr.String()+stdout.String(), "SQLSTATE") {
		s.t.Errorf("identity %s shows SQL to people: %s", strings.Join(args, " "), stderr)
	}
}

// read runs a command with --json and decodes its output.
func read[T any](s *shell, args ...string) (out T) {
	s.t.Helper()
	text := s.run(append(args, "--json")...)
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		s.t.Fatalf("identity %s printed %q: %v", strings.Join(args, " "), text, err)
	}
	return out
}

type createdKey struct {
	view.AdminKey
	Secret string
}

func TestTenantCommands(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run("migrate") // safe to repeat
	demo := read[view.AdminTenant](s, "tenant", "create", "--slug", "demo", "--name", "Demo", "--timezone", "America/New_York", "--currency", "USD")
	if demo.Slug != "demo" || !strings.HasPrefix(demo.ID, "tn_") || !demo.BookingPolicy.ConfirmOnDeposit {
		t.Fatalf("%+v", demo)
	}
	s.run("tenant", "create", "--slug", "other", "--name", "Other", "--timezone", "Europe/Berlin", "--currency", "EUR")
	s.fails(`the slug "demo"`, "tenant", "create", "--slug", "demo", "--name", "D", "--timezone", "UTC", "--currency", "USD")
	s.fails("--timezone: Must be an IANA time zone", "tenant", "create", "--slug", "x", "--name", "D", "--timezone", "Mars", "--currency", "USD")
	s.fails("--currency", "tenant", "create", "--slug", "x", "--name", "D", "--timezone", "UTC")
	if all := read[[]view.AdminTenant](s, "tenant", "list"); len(all) != 2 || all[0].Slug != "demo" || all[1].Slug != "other" {
		t.Errorf("list: %+v", all)
	}
	if table := s.run("tenant", "list"); !strings.Contains(table, "Europe/Berlin") {
		t.Errorf("list: %s", table)
	}

	for _, ref := range []string{"demo", demo.ID} {
		got := read[view.AdminTenant](s, "tenant", "update", ref, "--timezone", "Europe/Paris", "--currency", "eur", "--auto-confirm", "true",
			"--hold-ttl-minutes", "30", "--min-notice-minutes=0", "--max-advance-days", "365", "--confirm-on-deposit", "false",
			"--refund-rules", `[{"hours_before":24,"percent":50}]`, "--auto-refund", "true", "--refund-late-payments", "true")
		p := got.BookingPolicy
		if got.Version != 2 || got.Timezone != "Europe/Paris" || got.Currency != "EUR" || !p.AutoConfirm || p.ConfirmOnDeposit ||
			*p.HoldTTLMinutes != 30 || *p.MinNoticeMinutes != 0 || *p.MaxAdvanceDays != 365 {
			t.Errorf("update: %+v", got)
		}
	}
	got := read[view.AdminTenant](s, "tenant", "update", "demo", "--auto-confirm", "null", "--hold-ttl-minutes", "null",
		"--min-notice-minutes", "null", "--max-advance-days", "null", "--confirm-on-deposit", "null", "--refund-rules", "null", "--auto-refund", "null", "--refund-late-payments", "null")
	if got.Version != 3 || !reflect.DeepEqual(got.BookingPolicy, demo.BookingPolicy) {
		t.Errorf("cleared: %+v", got)
	}
	s.fails("Tenant not found", "tenant", "update", "unknown", "--name", "x")
	s.fails("--auto-confirm: Must be true or false", "tenant", "update", "demo", "--auto-confirm", "maybe")
	s.fails("--hold-ttl-minutes", "tenant", "update", "demo", "--hold-ttl-minutes", "1.5")
	s.fails("--timezone", "tenant", "update", "demo", "--timezone", "null")
	s.fails("--max-advance-days: Must be 0 to 36500", "tenant", "update", "demo", "--max-advance-days", "36501")
	s.fails("--auto-refund: Must be true or false", "tenant", "update", "demo", "--auto-refund", "yes")
	rule := func(hours, percent int) string {
		return fmt.Sprintf(`{"hours_before":%d,"percent":%d}`, hours, percent)
	}
	eleven := make([]string, 11)
	for i := range eleven {
		eleven[i] = rule(20-i, 1)
	}
	for _, wrong := range []string{
		"", "[", "{}", "1", `"x"`, "[1]", "[] []", `[{"hours_before":1}]`, `[{"percent":1}]`, `[{"hours_before":1,"percent":1,"note":"x"}]`,
		`[{"hours_before":1.5,"percent":1}]`, "[" + rule(-1, 1) + "]", "[" + rule(87601, 1) + "]", "[" + rule(1, 101) + "]", "[" + rule(1, -1) + "]",
		"[" + rule(1, 1) + "," + rule(1, 2) + "]", "[" + rule(1, 1) + "," + rule(2, 1) + "]", "[" + strings.Join(eleven, ",") + "]",
	} {
		s.fails("--refund-rules: Must be", "tenant", "update", "demo", "--refund-rules", wrong)
	}
	for _, right := range []string{"[]", "[" + strings.Join(eleven[:10], ",") + "]", "[" + rule(87600, 100) + "," + rule(0, 0) + "]"} {
		got := read[view.AdminTenant](s, "tenant", "update", "demo", "--refund-rules", right)
		if stored, err := json.Marshal(got.BookingPolicy.RefundRules); string(stored) != right || err != nil {
			t.Errorf("wrote %s, %v, got %s", right, err, stored)
		}
	}
}

// TestTenantLimits checks that limits are shown, set one by one, and reset.
func TestTenantLimits(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	demo := read[view.AdminTenant](s, "tenant", "create", "--slug", "demo", "--name", "Demo", "--timezone", "UTC", "--currency", "USD")
	if table := s.run("tenant", "limits", "--tenant", "demo"); !strings.Contains(table, "units") || !strings.Contains(table, "2000 (default)") {
		t.Errorf("limits: %s", table)
	}
	set := func(want string, args ...string) {
		t.Helper()
		if got := strings.TrimSpace(s.run(append([]string{"tenant", "limits", "--tenant", demo.ID, "--json"}, args...)...)); got != want {
			t.Errorf("limits %v: %s, want %s", args, got, want)
		}
	}
	set(`{}`)
	set(`{"requests_per_minute":9000,"caps":{"units":3000}}`, "--requests-per-minute", "9000", "--cap", "units=3000")
	set(`{"requests_per_minute":9000,"credential_requests_per_minute":900,"caps":{"api_keys":0,"units":3000}}`, "--credential-requests-per-minute", "900", "--cap", "api_keys=0")
	set(`{"credential_requests_per_minute":900,"caps":{"api_keys":0}}`, "--requests-per-minute", "null", "--cap", "units=null")
	if shown := s.run("tenant", "show", "demo", "--json"); !strings.Contains(shown, `"limits":{"credential_requests_per_minute":900,"caps":{"api_keys":0}}`) {
		t.Errorf("show: %s", shown)
	}
	set(`{"requests_per_minute":7}`, "--reset", "--requests-per-minute", "7")
	set(`{}`, "--reset")
	s.fails(`"tenant" not set`, "tenant", "limits", "--reset")
	s.fails("Tenant not found", "tenant", "limits", "--tenant", "unknown", "--reset")
	s.fails("--requests-per-minute: Must be 1 to 600000", "tenant", "limits", "--tenant", "demo", "--requests-per-minute", "600001")
	s.fails("--requests-per-minute: Must be number of requests", "tenant", "limits", "--tenant", "demo", "--requests-per-minute", "many")
	s.fails("--cap units: Must be 0 to 5000", "tenant", "limits", "--tenant", "demo", "--cap", "units=5001")
	s.fails("--cap boats: Unknown cap. The caps are services, units", "tenant", "limits", "--tenant", "demo", "--cap", "boats=1")
	for _, wrong := range []string{"units", "units=x", "=", "units=1,packages=2"} {
		s.fails("--cap: Must be name=number", "tenant", "limits", "--tenant", "demo", "--cap", wrong)
	}
	s.fails("--cap: Must be name=number", "tenant", "limits", "--tenant", "demo", "--cap", "units=1", "--cap", "units=2")
}

// TestEachFieldOfATenantIsWritten checks that a setting written by the command line is returned as it was written, in the
// response and in the next read.
func TestEachFieldOfATenantIsWritten(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run("tenant", "create", "--slug", "demo", "--name", "Demo", "--timezone", "UTC", "--currency", "USD")
	const sent = `{"name":"New","timezone":"Europe/Paris","currency":"EUR","country":"FR","booking_policy":{"auto_confirm":true,
		"hold_ttl_minutes":30,"min_notice_minutes":60,"max_advance_days":365,"confirm_on_deposit":false,
		"refund_rules":[{"hours_before":168,"percent":100},{"hours_before":0,"percent":33}],"auto_refund":true,"refund_late_payments":true},
		"invoice_prefix":"R/","invoice_year":true,"legal_name":"New SARL","address":"1, rue Neuve\n75001 Paris","tax_id":"FR 1",
		"tax_behavior":"inclusive","default_taxes":[{"name":"TVA","rate":"20"},{"name":"Taxe","rate":"0.25"}],"locale":"fr-CA",
		"bank_account_holder":"New SARL","bank_account_number":"FR1420041010050500013M02606","bank_code":"PSSTFRPPPAR","bank_name":"Banque",
		"external_id":"crm-1","metadata":{"plan":"gold"}}`
	changed := s.run("tenant", "update", "demo", "--json", "--name", "New", "--timezone", "Europe/Paris", "--currency", "EUR", "--country", "FR",
		"--auto-confirm", "true", "--hold-ttl-minutes", "30", "--min-notice-minutes", "60", "--max-advance-days", "365", "--confirm-on-deposit", "false",
		"--refund-rules", `[{"hours_before":168,"percent":100},{"hours_before":0,"percent":33}]`, "--auto-refund", "true", "--refund-late-payments", "true",
		"--invoice-prefix", "R/", "--invoice-year", "true", "--legal-name", "New SARL", "--address", "1, rue Neuve\n75001 Paris", "--tax-id", "FR 1",
		"--tax-behavior", "inclusive", "--default-taxes", `[{"name":"TVA","rate":"20.0"},{"name":"Taxe","rate":"0.25"}]`,
		"--locale", "fr-CA", "--bank-account-holder", "New SARL", "--bank-account-number", "fr14 2004 1010 0505 0001 3M02 606", "--bank-code", "PSST FR PP PAR",
		"--bank-name", "Banque", "--external-id", "crm-1", "--metadata", `{"plan":"gold"}`)
	all := read[[]json.RawMessage](s, "tenant", "list")
	for _, output := range []string{changed, string(all[0]), s.run("tenant", "show", "demo", "--json")} {
		apitest.Written[view.AdminTenant](t, sent, []byte(output), "id", "slug", "status", "status_reason", "status_changed_at", "erase_at", "limits", "test_clock", "version", "created_at", "updated_at",
			"changed_platform_fields", "logo_hash") // of the audit log, and of the console
	}
	got := read[view.AdminTenant](s, "tenant", "update", "demo", "--invoice-prefix", "", "--invoice-year", "null", "--legal-name", "", "--address", "", "--tax-id", "",
		"--locale", "null", "--bank-account-holder", "", "--bank-account-number", "", "--bank-code", "", "--bank-name", "",
		"--tax-behavior", "null", "--default-taxes", "null", "--external-id", "null", "--metadata", "null")
	if got.ExternalID != nil || string(got.Metadata) != "{}" || got.Locale != nil || got.AccountHolder+got.AccountNumber+got.BankCode+got.BankName != "" {
		t.Errorf("cleared: external id %v, metadata %s", got.ExternalID, got.Metadata)
	}
	for _, wrong := range []string{"gold", `{"plan":1}`, `{} {}`, `{},"name":"x"`, `{"` + strings.Repeat("k", 41) + `":"v"}`} {
		s.fails("--metadata: Must be JSON", "tenant", "update", "demo", "--metadata", wrong)
	}
	s.fails("--external-id: Must be one visible line of 1 to 200", "tenant", "update", "demo", "--external-id", strings.Repeat("x", 201))
	s.run("tenant", "create", "--slug", "next", "--name", "Next", "--timezone", "UTC", "--currency", "USD", "--external-id", "crm-2", "--metadata", `{"plan":"silver"}`)
	s.fails(`external_id "crm-2"`, "tenant", "update", "demo", "--external-id", "crm-2")
	if got.TaxBehavior != "exclusive" || len(got.DefaultTaxes) != 0 || got.InvoicePrefix+got.LegalName+got.Address+got.TaxID != "" || got.InvoiceYear || got.Version != 3 {
		t.Errorf("cleared: %+v", got)
	}
	if got := read[view.AdminTenant](s, "tenant", "update", "demo", "--invoice-prefix", "null"); got.InvoicePrefix != "INV-" {
		t.Errorf("reset: %q", got.InvoicePrefix)
	}
	s.fails("--invoice-prefix: Must be at most 20", "tenant", "update", "demo", "--invoice-prefix", "RE 1")
	s.fails("--invoice-year: Must be true or false", "tenant", "update", "demo", "--invoice-year", "2030")
	s.fails("--tax-behavior: Must be exclusive or inclusive", "tenant", "update", "demo", "--tax-behavior", "net")
	for _, wrong := range []string{
		"19", `[{"name":"VAT","rate":19}]`, `[{"name":"VAT","rate":"101"}]`, `[{"name":"VAT","rate":"19"},{"name":"VAT","rate":"19.0"}]`,
		`[{"name":"VAT","rate":"19","id":"1"}]`, `[] []`, `[{"name":"","rate":"19"}]`,
		`[{"name":"A","rate":"1"},{"name":"B","rate":"1"},{"name":"C","rate":"1"},{"name":"D","rate":"1"}]`,
	} {
		s.fails("--default-taxes: Must be", "tenant", "update", "demo", "--default-taxes", wrong)
	}
	s.fails("Tenant not found", "tenant", "show", "unknown")
}

func TestKeyCommands(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	tenant := read[view.AdminTenant](s, "tenant", "create", "--slug", "demo", "--name", "Demo", "--timezone", "UTC", "--currency", "USD")
	test := read[createdKey](s, "key", "create", "--tenant", "demo", "--mode", "test", "--scopes", "all", "--name", "Till")
	if mode, ok := apikey.Valid(test.Secret); !ok || mode != caller.Test || len(test.Scopes) != len(proto.Scopes) || test.Name != "Till" || test.TenantID != tenant.ID {
		t.Errorf("%+v", test)
	}
	live := read[createdKey](s, "key", "create", "--tenant", tenant.ID, "--mode", "live", "--scopes", "write:bookings,read:bookings")
	if mode, ok := apikey.Valid(live.Secret); !ok || mode != caller.Live || strings.Join(live.Scopes, " ") != "read:bookings write:bookings" {
		t.Errorf("%+v", live)
	}
	if text := s.run("key", "create", "--tenant", "demo", "--mode", "live", "--scopes", "read:units"); !regexp.MustCompile(`secret +svc_live_\w{32}\n`).MatchString(text) {
		t.Errorf("create: %s", text)
	}
	for _, scope := range proto.Scopes {
		s.fails(scope, "key", "create", "--tenant", "demo", "--mode", "live", "--scopes", "read:nothing")
	}
	s.fails("--mode: Must be one of: live, test", "key", "create", "--tenant", "demo", "--mode", "prod", "--scopes", "all")
	s.fails("Tenant not found", "key", "create", "--tenant", "unknown", "--mode", "live", "--scopes", "all")
	s.fails(`"tenant"`, "key", "create", "--mode", "live", "--scopes", "all")

	list := s.run("key", "list", "--tenant", "demo", "--json") + s.run("key", "list", "--tenant", "demo")
	if strings.Contains(list, test.Secret[9:]) || strings.Count(list, test.ID) != 2 || strings.Count(list, live.ID) != 2 {
		t.Errorf("list: %s", list)
	}
	for range 2 {
		if got := read[view.AdminKey](s, "key", "revoke", test.ID); got.RevokedAt == nil || got.Version != 2 {
			t.Errorf("revoke: %+v", got)
		}
	}
	if !strings.Contains(s.run("key", "list", "--tenant", "demo"), "revoked 2") {
		t.Error("the list does not show the revoked key as such")
	}
	s.fails("API key not found", "key", "revoke", "key_nothing")
	at := time.Now().AddDate(0, 0, 90).UTC().Truncate(time.Second)
	expiring := read[createdKey](s, "key", "create", "--tenant", "demo", "--mode", "live", "--scopes", "read:units", "--expires-at", at.Format(time.RFC3339))
	if expiring.ExpiresAt == nil || !expiring.ExpiresAt.Equal(at) || !strings.Contains(s.run("key", "list", "--tenant", "demo"), "active, expires "+at.Format(time.RFC3339)) {
		t.Errorf("an expiring key: %+v", expiring)
	}
	if next := read[createdKey](s, "key", "rotate", expiring.ID, "--expires-at", at.AddDate(0, 0, 7).Format(time.RFC3339)); next.ExpiresAt == nil || !next.ExpiresAt.Equal(at.AddDate(0, 0, 7)) {
		t.Errorf("its successor: %+v", next)
	}
	s.fails("--expires-at: Must be a time such as", "key", "create", "--tenant", "demo", "--mode", "live", "--scopes", "all", "--expires-at", "tomorrow")
	s.fails("--expires-at: Must be in the future and at most 10 years", "key", "create", "--tenant", "demo", "--mode", "live", "--scopes", "all", "--expires-at", "2020-01-01T00:00:00Z")
	fresh := read[createdKey](s, "key", "rotate", live.ID, "--overlap", "2h")
	if fresh.ID == live.ID || fresh.Secret == live.Secret || !slices.Equal(fresh.Scopes, live.Scopes) || !strings.Contains(s.run("key", "list", "--tenant", "demo"), "rotated, ends 2") {
		t.Errorf("rotate: %+v", fresh)
	}
	s.fails("was already rotated", "key", "rotate", live.ID)
	s.fails("--overlap: Must be 0s to 168h.", "key", "rotate", fresh.ID, "--overlap", "169h")
	s.fails("API key not found", "key", "rotate", "key_nothing")
	if text := s.run("audit", "verify"); !regexp.MustCompile(`demo +10 +[0-9a-f]{64} +holds`).MatchString(text) {
		t.Errorf("audit: %s", text)
	}
}

// TestAuditList checks that records are listed newest first, one per line, and selected by object, time, and number.
func TestAuditList(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	tenant := read[view.AdminTenant](s, "tenant", "create", "--slug", "demo", "--name", "Demo", "--timezone", "UTC", "--currency", "USD")
	key := read[createdKey](s, "key", "create", "--tenant", "demo", "--mode", "test", "--scopes", "all")
	s.run("tenant", "update", "demo", "--name", "New")
	s.run("tenant", "create", "--slug", "other", "--name", "Other", "--timezone", "UTC", "--currency", "USD")
	list := func(args ...string) (out []string) {
		t.Helper()
		for line := range strings.Lines(s.run(append([]string{"audit", "list", "--json", "--tenant", "demo"}, args...)...)) {
			var r view.Audited
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprint(r.Sequence, " ", r.Mode, " ", r.Actor, " ", r.Action, " ", r.Object))
		}
		return out
	}
	all := []string{"3 live cli tenant.update " + tenant.ID, "2 test cli key.create " + key.ID, "1 live cli tenant.create " + tenant.ID}
	now := time.Now()
	for _, tc := range []struct {
		args []string
		want []string
	}{
		{nil, all},
		{[]string{"--limit", "2"}, all[:2]},
		{[]string{"--object", key.ID}, all[1:2]},
		{[]string{"--object", "key_none"}, nil},
		{[]string{"--from", now.Add(-time.Hour).Format(time.RFC3339), "--to", now.Add(time.Hour).Format(time.RFC3339)}, all},
		{[]string{"--from", now.Add(time.Hour).Format(time.RFC3339)}, nil},
		{[]string{"--to", now.Add(-time.Hour).Format(time.RFC3339)}, nil},
	} {
		if got := list(tc.args...); !slices.Equal(got, tc.want) {
			t.Errorf("%v: %v, want %v", tc.args, got, tc.want)
		}
	}
	if text := s.run("audit", "list", "--tenant", tenant.ID); !strings.Contains(text, "ACTOR") || strings.Count(text, "\n") != 4 || !strings.Contains(text, key.ID) {
		t.Errorf("list: %s", text)
	}
	s.fails("Tenant not found", "audit", "list", "--tenant", "unknown")
	s.fails("--from: must be a time", "audit", "list", "--tenant", "demo", "--from", "yesterday")
	s.fails(`"tenant"`, "audit", "list")
}

func TestAuditVerifyFailsOnTampering(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, slug := range []string{"demo", "other"} {
		s.run("tenant", "create", "--slug", slug, "--name", "N", "--timezone", "UTC", "--currency", "USD")
	}
	inside := *s
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + s.prefix + "identity"
	inside.url = u.String()
	inside.sql(`alter table audit_log disable trigger user`)
	inside.sql(`update audit_log set actor = 'eve' where tenant_id = (select tenant_id from tenants where slug = 'demo')`)
	s.fails("the audit log was changed", "audit", "verify")
	s.fails("the audit log was changed", "audit", "verify", "--tenant", "demo", "--json")
	s.run("audit", "verify", "--tenant", "other")
}

// TestAuditVerifyAgainstSavedHeads checks that the output of --json is saved in a file, and that --kept compares with it.
func TestAuditVerifyAgainstSavedHeads(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run("tenant", "create", "--slug", "demo", "--name", "N", "--timezone", "UTC", "--currency", "USD")
	printed := s.run("audit", "verify", "--json")
	file := filepath.Join(s.dir, "heads.json")
	save := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save(printed)
	s.run("tenant", "update", "demo", "--name", "M")
	hash := read[[]app.Verdict](s, "audit", "verify")[0].Head.Hash
	if out := s.run("audit", "verify", "--kept", file); !strings.Contains(out, "holds") || !strings.Contains(out, hash) {
		t.Error(out)
	}
	save(strings.Replace(printed, `"hash":"`, `"hash":"00`, 1))
	s.fails("the audit log was changed", "audit", "verify", "--kept", file)
	save(strings.Replace(printed, `"demo"`, `"gone"`, 1))
	s.fails("the audit log was changed", "audit", "verify", "--kept", file)
	save("nonsense")
	s.fails("is not output of --json", "audit", "verify", "--kept", file)
}

func TestCommandsWithoutSettings(t *testing.T) {
	t.Parallel()
	s := &shell{t: t, dir: t.TempDir()}
	s.fails("set DATABASE_URL or POSTGRES_URL", "tenant", "list")
	s.fails("set DATABASE_URL or POSTGRES_URL", "migrate")
	s.fails("CALLER_VERIFY_KEYS", "serve")
}

// While Redis is unavailable, a revocation succeeds and prints that the gateways apply it later.
func TestRevokeWithoutRedis(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run("tenant", "create", "--slug", "demo", "--name", "Demo", "--timezone", "UTC", "--currency", "USD")
	k := read[createdKey](s, "key", "create", "--tenant", "demo", "--mode", "test", "--scopes", "all")
	cmd, _, stderr := s.command("key", "revoke", k.ID)
	cmd.Env = append(cmd.Env, "REDIS_URL=redis://127.0.0.1:1/0")
	if err := cmd.Run(); err != nil || !strings.Contains(stderr.String(), "Redis is unavailable") {
		t.Errorf("%v: %s", err, stderr)
	}
}

// TestServe checks that the process serves while Kafka is unavailable, rejects unsigned calls, and stops on a signal.
func TestServe(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	addr, platform := freeAddress(t), freeAddress(t)
	var c Settings
	c.Prefix = s.prefix
	if err := c.derive(s.url); err != nil {
		t.Fatal(err)
	}
	cmd, stdout, _ := s.command("serve")
	cmd.Env = append(cmd.Env, "HTTP_ADDR="+addr, "PLATFORM_ADDR="+platform, "DATABASE_URL="+c.DatabaseURL, "WORKER_DATABASE_URL="+c.WorkerDatabaseURL,
		"REDIS_URL="+testservers.Getenv(t, "TEST_REDIS_URL"), "KAFKA_BROKERS=127.0.0.1:1", "CALLER_VERIFY_KEYS=gateway=k1:"+strings.Repeat("ab", 32),
		"CALLER_SIGN_KEYS=customers=k1:"+strings.Repeat("ef", 32), "SERVICE_ENCRYPTION_KEYS=k1:"+strings.Repeat("cd", 32))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	deadline := time.Now().Add(20 * time.Second)
	for status(t, addr, "/readyz") != http.StatusOK {
		if time.Now().After(deadline) {
			t.Fatalf("not ready: %s", stdout)
		}
		time.Sleep(20 * time.Millisecond)
	}
	for path, want := range map[string]int{"/healthz": 200, "/api/v1/tenant": 401, "/internal/v1/tenants/x": 401, "/nothing": 404, "/platform/v1/tenants": 404} {
		if got := status(t, addr, path); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	for path, want := range map[string]int{"/healthz": 200, "/platform/v1/tenants": 401, "/api/v1/tenant": 404, "/internal/v1/tenants/x": 404, "/oauth/token": 404} {
		if got := status(t, platform, path); got != want {
			t.Errorf("the platform's %s: %d, want %d", path, got, want)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("stop: %v: %s", err, stdout)
	}
	if strings.Contains(stdout.String(), strings.Repeat("ab", 32)) {
		t.Error("the log holds a caller key")
	}
}

// freeAddress returns a loopback address on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func status(t *testing.T, addr, path string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// A platform key is shown once, listed, and revoked.
func TestPlatformKeyCommands(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	k := read[createdKey](s, "platform-key", "create", "--name", "billing", "--scopes", "read:tenants, write:tenants")
	if !strings.HasPrefix(k.ID, "pk_") || !strings.HasPrefix(k.Secret, "svc_platform_") {
		t.Errorf("%+v", k)
	}
	s.fails(`--scopes: Unknown scope "read:bookings"`, "platform-key", "create", "--name", "x", "--scopes", "read:bookings")
	s.fails("--name: ", "platform-key", "create", "--name", " ", "--scopes", "all")
	if out := s.run("platform-key", "list"); !strings.Contains(out, k.ID) || !strings.Contains(out, "active") || strings.Contains(out, k.Secret) {
		t.Error(out)
	}
	s.run("platform-key", "revoke", k.ID)
	if out := s.run("platform-key", "list"); !strings.Contains(out, "revoked") {
		t.Error(out)
	}
	s.fails("Platform key not found.", "platform-key", "revoke", "pk_00000000000000000000000000")
}

// A tenant is suspended and resumed with a reason.
func TestTenantStateCommands(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run("tenant", "create", "--slug", "demo", "--name", "Demo", "--timezone", "UTC", "--currency", "USD")
	s.fails("--reason: ", "tenant", "suspend", "demo")
	s.run("tenant", "suspend", "demo", "--reason", "unpaid")
	s.fails("--status: Cannot suspend a tenant that is suspended.", "tenant", "suspend", "demo", "--reason", "unpaid")
	if out := s.run("tenant", "list"); !strings.Contains(out, "suspended") {
		t.Error(out)
	}
	s.run("tenant", "resume", "demo", "--reason", "paid")
	if out := s.run("tenant", "list"); !strings.Contains(out, "active") {
		t.Error(out)
	}
}
