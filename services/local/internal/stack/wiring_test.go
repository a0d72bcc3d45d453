package stack

import (
	"slices"
	"strings"
	"testing"

	"holdfast.dev/proto"

	"holdfast.dev/services/local/internal/state"
)

// settingsOf returns the settings of each service, with ports from 1001.
func settingsOf(t *testing.T) map[string]map[string]string {
	t.Helper()
	w := Wiring{
		Keys: state.Memory(), Prefix: "p_", PostgresURL: "postgres://admin:secret@127.0.0.1:5432/postgres",
		RedisURL: "redis://127.0.0.1:6379", broker: "127.0.0.1:9092", topicPrefix: "p.",
	}
	for i, name := range proto.ServiceNames() {
		w.Keys.SetPort(name, 1001+i)
	}
	all := map[string]map[string]string{}
	for _, s := range proto.Services() {
		all[s.Name] = map[string]string{}
		for _, line := range w.settings(s) {
			name, value, _ := strings.Cut(line, "=")
			all[s.Name][name] = value
		}
	}
	return all
}

// TestSettingsFollowTheList checks that a service gets exactly the settings that proto/services.yaml implies.
func TestSettingsFollowTheList(t *testing.T) {
	t.Parallel()
	all := settingsOf(t)
	for _, s := range proto.Services() {
		own := all[s.Name]
		for name, want := range map[string]bool{
			"HTTP_ADDR": true, "METRICS_ADDR": true, "REDIS_URL": s.Redis, "KAFKA_BROKERS": s.Kafka(), "KAFKA_TOPIC_PREFIX": s.Kafka(),
			"DATABASE_URL": s.Database, "WORKER_DATABASE_URL": s.Database, "MIGRATE_DATABASE_URL": s.Database, "PUBLIC_URL": true,
			"WEBHOOK_ALLOWED_CIDRS": slices.Contains(s.Reaches, "receivers"), "CLIENT_DOCUMENT_ALLOWED_CIDRS": slices.Contains(s.Reaches, "clients"),
			"STRIPE_URL": slices.Contains(s.Reaches, "gateways"),
		} {
			if _, has := own[name]; has != want {
				t.Errorf("%s has %s: %v, want %v", s.Name, name, has, want)
			}
		}
		if _, has := own[s.State]; s.State != "" && !has {
			t.Errorf("%s has no %s", s.Name, s.State)
		}
		for _, target := range proto.Services() {
			want := ""
			if slices.Contains(s.Calls, target.Name) {
				want = "http://" + all[target.Name]["HTTP_ADDR"]
			}
			if got := own["UPSTREAM_"+strings.ToUpper(target.Name)+"_URL"]; got != want {
				t.Errorf("%s finds %s at %q, want %q", s.Name, target.Name, got, want)
			}
		}
	}
}

// TestSettingsBehindThePooler checks that services connect to the pooler, and migrations to PostgreSQL. With secrets in files, the
// environment has only their paths.
func TestSettingsBehindThePooler(t *testing.T) {
	t.Parallel()
	w := Wiring{Keys: state.Memory(), PostgresURL: "postgres://postgres:p@127.0.0.1:5432/postgres?sslmode=disable", poolerPort: 6432}
	files := w
	files.secretFiles = "/folder"
	for _, s := range proto.Services() {
		if !s.Database {
			continue
		}
		vars := map[string]string{}
		for _, line := range w.settings(s) {
			name, value, _ := strings.Cut(line, "=")
			vars[name] = value
		}
		for name, host := range map[string]string{"DATABASE_URL": "@127.0.0.1:6432/", "WORKER_DATABASE_URL": "@127.0.0.1:6432/", "MIGRATE_DATABASE_URL": "@127.0.0.1:5432/"} {
			if !strings.Contains(vars[name], host) || vars["DATABASE_POOLER"] != "true" {
				t.Errorf("%s: %s is %q, want %q", s.Name, name, vars[name], host)
			}
		}
		lines := files.settings(s)
		if want := "DATABASE_URL_FILE=/folder/" + s.Name + "/DATABASE_URL"; !slices.Contains(lines, want) {
			t.Errorf("%s lacks %s", s.Name, want)
		}
		for name, value := range w.Source().Serving(s) {
			if value != "" && strings.Contains(strings.Join(lines, "\n"), name+"="+value) {
				t.Errorf("the environment of %s contains %s", s.Name, name)
			}
		}
	}
}

// TestSecretsNameNoStripe checks that a Secret in the cluster contains no address of Stripe, because the stand-in runs only on
// this machine.
func TestSecretsNameNoStripe(t *testing.T) {
	t.Parallel()
	for _, s := range proto.Services() {
		if url, has := (Wiring{Keys: state.Memory()}).Source().Serving(s)["STRIPE_URL"]; has {
			t.Errorf("%s has %q", s.Name, url)
		}
	}
}

// TestCallerKeysFollowTheList checks that each call in the list has a key that both sides share, and that there are no other keys.
func TestCallerKeysFollowTheList(t *testing.T) {
	t.Parallel()
	all := settingsOf(t)
	seen := map[string]bool{}
	for _, from := range proto.Services() {
		sign := keysIn(all[from.Name]["CALLER_SIGN_KEYS"])
		if len(sign) != len(from.Calls) {
			t.Errorf("%s signs for %d services, and calls %v", from.Name, len(sign), from.Calls)
		}
		for _, to := range proto.Services() {
			calls := slices.Contains(from.Calls, to.Name)
			verify := keysIn(all[to.Name]["CALLER_VERIFY_KEYS"])[from.Name]
			if key := sign[to.Name]; key != verify || calls != (key != "") || seen[key] {
				t.Errorf("%s to %s: signed with %q, verified with %q; a call: %v", from.Name, to.Name, key, verify, calls)
			} else if key != "" {
				seen[key] = true
			}
		}
	}
}

// keysIn returns the keys of a setting, by the service at the other end.
func keysIn(setting string) map[string]string {
	keys := map[string]string{}
	for entry := range strings.SplitSeq(setting, ",") {
		if name, key, ok := strings.Cut(entry, "="); ok {
			keys[name] = key
		}
	}
	return keys
}
