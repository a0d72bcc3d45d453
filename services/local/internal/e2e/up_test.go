package e2e

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast.dev/proto"
)

// envKeys are the names in .run/env, on which people and scripts rely.
var envKeys = []string{
	"BASE_URL", "LEGACY_BASE_URL", "AUTH_URL", "DEMO_TEST_KEY", "DEMO_LIVE_KEY", "OTHER_TEST_KEY",
	"HOLDFAST_BASE_URL", "HOLDFAST_API_KEY", "OPERATOR_EMAIL", "OPERATOR_PASSWORD", "OAUTH_CLIENT_ID", "OAUTH_REDIRECT_URI", "MAIL_URL",
	"POSTGRES_URL", "REDIS_URL", "KAFKA_BROKERS", "STRIPE_URL", "STRIPE_PUBLISHABLE_KEY",
}

func TestEnvFile(t *testing.T) {
	onMachine(t)
	text, err := os.ReadFile(shared.path("env"))
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for line := range strings.Lines(string(text)) {
		key, _, _ := strings.Cut(line, "=")
		keys = append(keys, key)
	}
	if !slices.Equal(keys, envKeys) {
		t.Errorf(".run/env has %v", keys)
	}
	if info, err := os.Stat(shared.path("env")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v (%v)", info.Mode(), err)
	}
	for _, name := range append([]string{"local", "postgres", "redis", "stripe", shared.broker()}, proto.ServiceNames()...) {
		if pid := shared.pid(name); pid == 0 || syscall.Kill(pid, 0) != nil {
			t.Errorf(".run/pids/%s names %d, which does not run", name, pid)
		}
		if _, err := os.Stat(shared.path("logs", name+".log")); err != nil && name != "local" {
			t.Error(err)
		}
	}
}

// checkGreeting checks that the commands that `make up` prints work when pasted. They work only once, because the
// slot is then taken.
func checkGreeting(t *testing.T, p *platform) {
	var said string
	await(t, "the whole greeting", func() bool { // .run/env exists a moment earlier
		said = p.log.String()
		return strings.Contains(said, "`make down` stops everything")
	})
	for _, want := range []string{p.env["DEMO_TEST_KEY"], p.env["DEMO_LIVE_KEY"], p.env["BASE_URL"], "a development default"} {
		if !strings.Contains(said, want) {
			t.Errorf("the greeting lacks %s", want)
		}
	}
	var command string
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "curl ") {
			command = line
		}
	}
	for i, want := range []string{`"deposit_amount":{"amount":`, `"slot_unavailable"`} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", command).Output()
		if err != nil || !bytes.Contains(out, []byte(want)) || bytes.Contains(out, []byte(`"deposit_amount":{"amount":0,`)) {
			t.Errorf("pasted %d times: %s %v", i+1, out, err)
		}
	}
}

// TestDataFolder checks that the private servers run as ordinary users, and that their data is in a folder that these users can
// access, even if root starts them.
func TestDataFolder(t *testing.T) {
	onMachine(t)
	for _, name := range []string{"postgres", "redis"} {
		if uid := uidOf(t, shared.pid(name)); uid == "0" {
			t.Errorf("%s runs as root", name)
		}
	}
	link, err := os.Readlink(shared.path("data"))
	if os.Geteuid() != 0 {
		if err == nil {
			t.Errorf(".run/data is a link to %s", link)
		}
		return
	}
	if err != nil || filepath.Dir(link) != "/var/lib/holdfast" {
		t.Fatalf(".run/data is a link to %q (%v)", link, err)
	}
	if info, err := os.Stat(link); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%s: %v, %v", link, info.Mode(), err)
	}
}

func uidOf(t *testing.T, pid int) string {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "\nUid:")
	return strings.Fields(rest)[0]
}

// leftovers returns the processes that still have the checkout's mark.
func (p *platform) leftovers() []string {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	var left []string
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte("HOLDFAST_CHECKOUT="+p.root+"\x00")) {
			left = append(left, file)
		}
	}
	return left
}

// stopped fails the test if anything except data is left of a stopped platform.
func (p *platform) stopped(t *testing.T) {
	t.Helper()
	if left := p.leftovers(); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	if _, err := os.Stat(p.path("env")); err == nil {
		t.Error(".run/env is left")
	}
	if left, _ := filepath.Glob(p.path("pids", "*")); len(left) > 0 {
		t.Errorf("pid files are left: %v", left)
	}
}

// fresh creates a checkout that is deleted at the end of the test.
func fresh(t *testing.T, settings ...string) *platform {
	t.Helper()
	p, err := newPlatform(settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.remove)
	return p
}

// TestASecondCheckoutOnGivenParts checks that a second checkout can run next to the first on given parts. It starts no private
// parts, uses only its prefix, and works as before after a restart.
func TestASecondCheckoutOnGivenParts(t *testing.T) {
	onMachine(t)
	t.Parallel()
	p := fresh(t, "DATABASE_URL="+shared.env["POSTGRES_URL"], "REDIS_URL="+shared.env["REDIS_URL"],
		"KAFKA_BROKERS="+shared.env["KAFKA_BROKERS"], "HOLDFAST_PREFIX=second_")
	if err := p.up(); err != nil {
		t.Fatal(err)
	}
	first := p.env
	if first["HOLDFAST_PREFIX"] != "second_" || first["POSTGRES_URL"] != shared.env["POSTGRES_URL"] || first["BASE_URL"] == shared.env["BASE_URL"] {
		t.Errorf("its .run/env is %v", first)
	}
	files, _ := filepath.Glob(p.path("pids", "*"))
	want := 2 + len(proto.Services()) // local, the services, and the stand-in for Stripe
	if os.Getenv("POOLER") != "" {
		want++
	}
	if len(files) != want {
		t.Errorf("it runs %v", files)
	}
	databases := 0
	for _, s := range proto.Services() {
		if s.Database {
			databases++
		}
	}
	admin := shared.database(t, "bookings")
	if all := rows(t, admin, `select datname::text from pg_database where datname like 'second\_%' order by 1`); len(all) != databases {
		t.Errorf("its databases are %v", all)
	}
	if all := rows(t, admin, `select rolname::text from pg_roles where rolname like 'second\_%'`); len(all) != 3*databases {
		t.Errorf("its roles are %v", all)
	}
	c := p.as(t, "DEMO_TEST_KEY")
	id := c.want(t, http.StatusCreated, http.MethodPost, "/customers", `{"first_name":"S","email":"s@example.com"}`).id(t)
	await(t, "its event, in its own topic", func() bool { return len(p.topicOf(t, "second.customers", id)) == 1 })
	if n := len(shared.events(t, "customers")[id]); n != 0 {
		t.Error("its event is in the other checkout's topic")
	}
	if a := shared.with(t, c.key).do(t, http.MethodGet, "/me", "", ""); a.Status != http.StatusUnauthorized {
		t.Errorf("its key at the other checkout: %d", a.Status)
	}
	before := catalogue(t, c)
	p.down()
	p.stopped(t)

	began := time.Now()
	if err := p.up(); err != nil {
		t.Fatal(err)
	}
	t.Logf("the second start took %v", time.Since(began))
	for key, value := range first {
		if p.env[key] != value {
			t.Errorf("%s was %s and is %s", key, value, p.env[key])
		}
	}
	if after := catalogue(t, c); after != before {
		t.Errorf("seeding twice changed something:\n%s\n%s", before, after)
	}
}

// topicOf reads the events of one object from a topic with its full name.
func (p *platform) topicOf(t *testing.T, topic, id string) []string {
	t.Helper()
	var found []string
	all, err := readTopic(t.Context(), p.env["KAFKA_BROKERS"], topic)
	if err != nil {
		return nil // does not exist yet
	}
	for _, m := range all {
		if string(m.Key) == id {
			found = append(found, string(m.Key))
		}
	}
	return found
}

// catalogue returns all seeded data that the API shows.
func catalogue(t *testing.T, c *client) string {
	t.Helper()
	var all strings.Builder
	for path, want := range map[string]int{"/services": 3, "/units": 5, "/packages": 6, "/customers": 8, "/bookings": 10, "/leads": 6, "/quotes": 6, "/invoices": 8} {
		if n := len(c.list(t, path+"?limit=100")); n != want {
			t.Errorf("%d %s, want %d", n, path, want)
		}
	}
	await(t, "the booking of the accepted quote shows its invoice", func() bool {
		return slices.ContainsFunc(c.list(t, "/bookings?limit=100"), func(b map[string]any) bool {
			ids, _ := b["invoice_ids"].([]any)
			return len(ids) == 1
		})
	})
	for _, path := range []string{"/services", "/units", "/packages", "/customers", "/bookings"} {
		all.Write(c.do(t, http.MethodGet, path+"?limit=100", "", "").Body)
	}
	return all.String()
}

// checkSeededCatalogue checks that the seed has each kind of deposit and holiday rule, and two tenants with their own time zones.
func checkSeededCatalogue(t *testing.T, p *platform) {
	c := p.as(t, "DEMO_TEST_KEY")
	deposits := map[any]bool{}
	for _, plan := range c.list(t, "/packages?limit=100") {
		deposits[plan["deposit_type"]] = true
	}
	if len(deposits) != 3 {
		t.Errorf("deposits of the kinds %v", deposits)
	}
	rules := rows(t, p.database(t, "bookings"), `select recurrence || ' ' || stackable from holiday_rules order by 1`)
	if len(rules) != 3 || !strings.Contains(fmt.Sprint(rules), "yearly") || !strings.Contains(fmt.Sprint(rules), "true") {
		t.Errorf("holiday rules are %v", rules)
	}
	for key, want := range map[string]string{"DEMO_TEST_KEY": "America/New_York USD test", "DEMO_LIVE_KEY": "America/New_York USD live", "OTHER_TEST_KEY": "Europe/Berlin EUR test"} {
		var tenant, me map[string]any
		c := p.as(t, key)
		c.want(t, http.StatusOK, http.MethodGet, "/tenant", "").decode(t, &tenant)
		c.want(t, http.StatusOK, http.MethodGet, "/me", "").decode(t, &me)
		if got := fmt.Sprint(tenant["timezone"], " ", tenant["currency"], " ", tenant["mode"]); got != want {
			t.Errorf("%s is of %s, want %s", key, got, want)
		}
		if scopes, _ := me["scopes"].([]any); len(scopes) != 18 {
			t.Errorf("%s has %d scopes", key, len(scopes))
		}
	}
}

// TestAnOrdinaryUser checks that an ordinary user can also run the whole platform, with all files in .run/.
func TestAnOrdinaryUser(t *testing.T) {
	onMachine(t)
	t.Parallel()
	p := fresh(t, "KAFKA=embedded", "POOLER=0") // the program may be where only its installer can read it
	if os.Geteuid() == 0 {
		p.user = &syscall.Credential{Uid: 65534, Gid: 65534}
		if err := os.Chown(p.root, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.up(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Readlink(p.path("data")); err == nil {
		t.Error(".run/data is a link")
	}
	for _, name := range []string{"postgres", "redis", "kafka-embedded", "gateway"} {
		if uid := uidOf(t, p.pid(name)); uid == "0" {
			t.Errorf("%s runs as root", name)
		}
	}
	p.as(t, "DEMO_TEST_KEY").want(t, http.StatusOK, http.MethodGet, "/me", "")
	p.down()
	p.stopped(t)
	if out, err := p.command("local", "clean").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Stat(p.path()); err == nil {
		t.Error("make clean leaves .run")
	}
}

// TestStartKilledMidway checks that a killed first start leaves no process behind, and nothing that prevents the next start.
func TestStartKilledMidway(t *testing.T) {
	onMachine(t)
	t.Parallel()
	p := fresh(t, "KAFKA=embedded")
	if err := p.begin(); err != nil {
		t.Fatal(err)
	}
	await(t, "PostgreSQL's folder is created", func() bool { return p.pid("postgres") != 0 })
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.gone
	await(t, "its processes are gone too", func() bool { return len(p.leftovers()) == 0 })
	if err := p.up(); err != nil {
		t.Fatal(err)
	}
}

// TestRefusedStarts checks that an invalid setting is refused in one line before any process starts.
func TestRefusedStarts(t *testing.T) {
	onMachine(t)
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	_, taken, _ := net.SplitHostPort(l.Addr().String())
	closedPort := "127.0.0.1:1"
	for setting, want := range map[string]string{
		"GATEWAY_PORT=" + taken: "GATEWAY_PORT=" + taken + " is in use",
		"GATEWAY_PORT=70000":    "GATEWAY_PORT must be a port number",
		"KAFKA=other":           "KAFKA must be auto, apache or embedded",
		"POOLER=101":            "POOLER must be from 0 to 100",
		"HOLDFAST_PREFIX=a b":   "HOLDFAST_PREFIX",

		"DATABASE_URL=postgres://a:b@" + closedPort: "DATABASE_URL",
		"REDIS_URL=redis://" + closedPort:           "REDIS_URL",
		"KAFKA_BROKERS=" + closedPort:               "KAFKA_BROKERS",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			p := fresh(t, setting)
			var complaint bytes.Buffer
			cmd := p.command("local", "up")
			cmd.Stderr = &complaint
			if err := cmd.Run(); err == nil {
				t.Fatal("it started")
			}
			if text := complaint.String(); !strings.Contains(text, want) || strings.Count(text, "\n") != 1 {
				t.Errorf("it says %q", text)
			}
			p.stopped(t)
		})
	}
}
