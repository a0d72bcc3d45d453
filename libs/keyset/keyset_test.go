package keyset_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/keyset"
	"holdfast.dev/proto"
)

// newSet returns a set whose keys are numbered.
func newSet(t *testing.T) keyset.Set {
	t.Helper()
	numbers := map[string]string{}
	set, err := keyset.Source{
		Key: func(name string) string {
			if numbers[name] == "" {
				numbers[name] = fmt.Sprintf("%064x", len(numbers)+1)
			}
			return numbers[name]
		},
		Prefix: "holdfast_", Server: "postgres://postgres.test:5432/?sslmode=verify-full", Redis: "rediss://:p@redis.test:6379",
	}.New()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func clone(s keyset.Set) keyset.Set {
	out := keyset.Set{}
	for name, values := range s {
		out[name] = maps.Clone(values)
	}
	return out
}

func texts(problems []keyset.Problem) (all []string) {
	for _, p := range problems {
		all = append(all, p.String())
	}
	return all
}

// A new set has a value for each setting that the services require, and no two keys in it are the same.
func TestNewSetIsComplete(t *testing.T) {
	t.Parallel()
	set := newSet(t)
	if problems := set.Check(); len(problems) > 0 {
		t.Errorf("%v", texts(problems))
	}
	if len(set) != len(keyset.Names()) || len(set) != 14 || len(keyset.Pairs()) != 27 {
		t.Errorf("%d Secrets, %d names, %d pairs", len(set), len(keyset.Names()), len(keyset.Pairs()))
	}
	if u := set["bookings"]["WORKER_DATABASE_URL"]; !strings.HasPrefix(u, "postgres://holdfast_bookings_worker:") || !strings.HasSuffix(u, "@postgres.test:5432/holdfast_bookings?sslmode=verify-full") {
		t.Error(u)
	}
	if role := set["logs-migrate"]["APP_ROLE"]; role != "holdfast_logs_app" {
		t.Error(role)
	}
	_, err := keyset.Source{Key: func(string) string { return "" }, Server: "http://secret@"}.New()
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("another URL than that of PostgreSQL: %v", err)
	}
}

// Each pair that is broken in each way is named, and no other one.
func TestCheckNamesTheBrokenPair(t *testing.T) {
	t.Parallel()
	whole := newSet(t)
	other := "=k1:" + strings.Repeat("f", 64)
	for _, p := range keyset.Pairs() {
		for way, breakIt := range map[string]func(s keyset.Set){
			"another key of the caller": func(s keyset.Set) { replace(s, p.From, "CALLER_SIGN_KEYS", p.To, p.To+other) },
			"another key of the target": func(s keyset.Set) { replace(s, p.To, "CALLER_VERIFY_KEYS", p.From, p.From+other) },
			"another id": func(s keyset.Set) {
				replace(s, p.To, "CALLER_VERIFY_KEYS", p.From, p.From+"=k2:"+strings.Repeat("f", 64))
			},
			"no key of the caller": func(s keyset.Set) { replace(s, p.From, "CALLER_SIGN_KEYS", p.To, "") },
			"no key of the target": func(s keyset.Set) { replace(s, p.To, "CALLER_VERIFY_KEYS", p.From, "") },
		} {
			set := clone(whole)
			breakIt(set)
			var pairs []string
			for _, problem := range set.Check() {
				if !strings.Contains(problem.Subject, ":") { // a Secret whose only pair was removed also has a setting without a value
					pairs = append(pairs, problem.Subject)
				}
				if strings.Contains(problem.Text, strings.Repeat("f", 64)) || strings.Contains(problem.Text, strings.Repeat("0", 32)) {
					t.Errorf("%s, %s: the text contains a key: %s", p, way, problem)
				}
			}
			if !slices.Equal(pairs, []string{p.String()}) {
				t.Errorf("%s, %s: %v", p, way, texts(set.Check()))
			}
		}
	}
}

// replace replaces the entry of a peer, or removes it.
func replace(s keyset.Set, secret, setting, peer, entry string) {
	entries := slices.DeleteFunc(strings.Split(s[secret][setting], ","), func(e string) bool { return strings.HasPrefix(e, peer+"=") })
	if entry != "" {
		entries = append(entries, entry)
	}
	s[secret][setting] = strings.Join(entries, ",")
}

// A missing Secret, a missing setting, a value that the service would refuse, and a key of a service that does not call are named.
func TestCheckNamesTheSetting(t *testing.T) {
	t.Parallel()
	for want, breakIt := range map[string]func(s keyset.Set){
		"bookings-migrate: the Secret is missing; create it with APP_ROLE, MIGRATE_DATABASE_URL, WORKER_ROLE": func(s keyset.Set) { delete(s, "bookings-migrate") },
		"webhooks: CURSOR_KEYS: has no value; set it":                                                         func(s keyset.Set) { delete(s["webhooks"], "CURSOR_KEYS") },
		"logs: CURSOR_KEYS: cursor key 1: want <kid>:<hex> of at least 32 bytes":                              func(s keyset.Set) { s["logs"]["CURSOR_KEYS"] = "k1:ab" },
		"identity: SERVICE_ENCRYPTION_KEYS: encryption key 1: want <kid>:<hex of 32 bytes>":                   func(s keyset.Set) { s["identity"]["SERVICE_ENCRYPTION_KEYS"] = "k1:ab" },
		"gateway: REDIS_URL: is not a URL":                                                                    func(s keyset.Set) { s["gateway"]["REDIS_URL"] = "redis.test" },
		"logs/bookings: logs does not call bookings; remove the key from CALLER_VERIFY_KEYS of bookings": func(s keyset.Set) {
			s["bookings"]["CALLER_VERIFY_KEYS"] += ",logs=k1:" + strings.Repeat("f", 64)
		},
	} {
		set := newSet(t)
		breakIt(set)
		if got := texts(set.Check()); !slices.Equal(got, []string{want}) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	set := newSet(t)
	set["customers"]["CALLER_SIGN_KEYS"] = "identity"
	if got := texts(set.Check()); len(got) != 5 || !strings.Contains(got[0], "customers: CALLER_SIGN_KEYS: caller keys: want") {
		t.Errorf("%q", got)
	}
}

// In each step of a rotation, each side accepts what the other side signs in the previous and in the same step.
func TestRotationOfAPair(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"gateway/bookings", keyset.AllCallers} {
		states := []keyset.Set{newSet(t)}
		rotations, err := keyset.RotationsOf(name)
		if err != nil {
			t.Fatal(err)
		}
		for want := 1; want <= 3; want++ {
			set := clone(states[len(states)-1])
			step, err := set.Rotate(rotations)
			if err != nil || step.Number != want {
				t.Fatalf("%s: step %d, %v; want %d", name, step.Number, err, want)
			}
			if problems := set.Check(); len(problems) > 0 {
				t.Errorf("%s, step %d: %v", name, want, texts(problems))
			}
			states = append(states, set)
		}
		for i := 1; i < len(states); i++ {
			for _, p := range keyset.Pairs() {
				for _, sides := range [][2]keyset.Set{{states[i-1], states[i]}, {states[i], states[i-1]}} {
					if !verifies(t, sides[0], sides[1], p) {
						t.Errorf("%s, step %d: %s is refused while only one side has the step", name, i, p)
					}
				}
			}
		}
		p := keyset.Pair{From: "gateway", To: "bookings"}
		if verifies(t, states[0], states[3], p) {
			t.Errorf("%s: the old key is still accepted at the end", name)
		}
		if step, err := states[3].Rotate(rotations); err != nil || step.Number != 1 {
			t.Errorf("%s: the next rotation: %+v, %v", name, step, err)
		}
	}
}

func verifies(t *testing.T, from, to keyset.Set, p keyset.Pair) bool {
	t.Helper()
	sign, err := caller.ParseKeys(from[p.From]["CALLER_SIGN_KEYS"])
	if err != nil {
		t.Fatal(err)
	}
	verify, err := caller.ParseKeys(to[p.To]["CALLER_VERIFY_KEYS"])
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	header, err := (&caller.Signer{From: p.From, Keys: sign}).Sign(caller.Caller{Tenant: ids.New[ids.TenantPrefix]()}, p.To, "GET", "/", now)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = (&caller.Verifier{Self: p.To, Keys: verify}).Verify(header, "GET", "/", now)
	return err == nil
}

// In each step of a rotation, a service opens what it sealed in the previous step, and a pod of the previous step opens what a pod of this
// step seals.
func TestRotationOfAServicesOwnKey(t *testing.T) {
	t.Parallel()
	set := newSet(t)
	rotations, err := keyset.RotationsOf("webhooks/SERVICE_ENCRYPTION_KEYS")
	if err != nil || !rotations[0].Encrypts() || rotations[0].Owner() != "webhooks" {
		t.Fatalf("%+v, %v", rotations, err)
	}
	box := func() *crypt.Box {
		b, err := crypt.NewBox(set["webhooks"]["SERVICE_ENCRYPTION_KEYS"])
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	before := box()
	for want := 1; want <= 3; want++ {
		if next, err := set.Next(rotations[0]); err != nil || next != want {
			t.Errorf("the next step is %d, %v; want %d", next, err, want)
		}
		if _, err := set.Rotate(rotations); err != nil {
			t.Fatal(err)
		}
		after := box()
		for name, boxes := range map[string][2]*crypt.Box{"old pod to new pod": {before, after}, "new pod to old pod": {after, before}} {
			sealed, err := boxes[0].Seal([]byte("text"), nil)
			if err == nil {
				_, err = boxes[1].Open(sealed, nil)
			}
			if err != nil {
				t.Errorf("step %d, %s: %v", want, name, err)
			}
		}
		before = after
	}
	if keys := set["webhooks"]["SERVICE_ENCRYPTION_KEYS"]; !strings.HasPrefix(keys, "k2:") || strings.Contains(keys, ",") {
		t.Error("the old key remains")
	}
}

// A rotation that does not know which key is newer, whose pairs are at different steps, or whose name is unknown changes nothing.
func TestRotationsThatAreRefused(t *testing.T) {
	t.Parallel()
	all, err := keyset.RotationsOf(keyset.AllCallers)
	if err != nil || len(all) != len(keyset.Pairs()) {
		t.Fatalf("%d, %v", len(all), err)
	}
	set := newSet(t)
	if _, err := set.Rotate(all[3:4]); err != nil {
		t.Fatal(err)
	}
	before := clone(set)
	if _, err := set.Rotate(all); err == nil || !strings.Contains(err.Error(), "different steps") {
		t.Errorf("different steps: %v", err)
	}
	set["logs"]["CURSOR_KEYS"] = "a:" + strings.Repeat("a", 64) + ",b:" + strings.Repeat("b", 64)
	before["logs"]["CURSOR_KEYS"] = set["logs"]["CURSOR_KEYS"]
	own, err := keyset.RotationsOf("logs/CURSOR_KEYS")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Rotate(own); err == nil || !strings.Contains(err.Error(), "which one is newer") {
		t.Errorf("ids without numbers: %v", err)
	}
	for name, values := range before {
		if !maps.Equal(values, set[name]) {
			t.Errorf("%s changed", name)
		}
	}
	if _, err := keyset.RotationsOf("gateway"); err == nil || !strings.Contains(err.Error(), "CALLER/TARGET such as identity/customers") {
		t.Errorf("an unknown name: %v", err)
	}
}

// A folder has one file for each setting that only its owner can read. It is not overwritten, and a changed setting replaces its file.
func TestFolder(t *testing.T) {
	t.Parallel()
	set, dir := newSet(t), filepath.Join(t.TempDir(), "new", "secrets")
	if err := set.Create(dir, "site"); err != nil {
		t.Fatal(err)
	}
	if err := set.Create(dir, "site"); err == nil || !strings.Contains(err.Error(), "not overwritten") {
		t.Errorf("a second time: %v", err)
	}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := keyset.SaveFolder(dir, "site", []keyset.Change{{Secret: "logs", Setting: "CURSOR_KEYS", Value: "new"}}); err != nil {
		t.Fatal(err)
	}
	set["logs"]["CURSOR_KEYS"] = "new"
	got, err := keyset.OpenFolder(dir, "site")
	same(t, got, set, err)
	if err := os.RemoveAll(filepath.Join(dir, "site-console")); err != nil {
		t.Fatal(err)
	}
	if got, err = keyset.OpenFolder(dir, "site"); err != nil || got["console"] != nil {
		t.Errorf("a missing folder: %v, %v", got["console"], err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".keys-*")); left != nil {
		t.Errorf("it leaves %v", left)
	}
}

func same(t *testing.T, got, want keyset.Set, err error) {
	t.Helper()
	if err != nil || len(got) != len(want) {
		t.Errorf("%d Secrets, %v", len(got), err)
	}
	for name, values := range want {
		if !maps.Equal(got[name], values) {
			t.Errorf("%s is different", name)
		}
	}
}

// A manifest is read as it was written, and as kubectl prints it: a list with encoded values. Other Secrets in it stay.
func TestManifest(t *testing.T) {
	t.Parallel()
	set := newSet(t)
	text, err := keyset.NewManifest(set, "site").Text()
	if err != nil {
		t.Fatal(err)
	}
	m, err := keyset.ParseManifest(text, "site")
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Set()
	same(t, got, set, err)
	list := "kind: List\nitems:\n- kind: Secret\n  metadata: { name: site-logs, labels: { a: b } }\n  data: { CURSOR_KEYS: b2xk }\n- kind: Secret\n  metadata: { name: other }\n  data: { a: Yg== }\n"
	if m, err = keyset.ParseManifest([]byte(list), "site"); err != nil {
		t.Fatal(err)
	}
	m.Apply([]keyset.Change{{Secret: "logs", Setting: "CURSOR_KEYS", Value: "new"}})
	if got, err = m.Set(); err != nil || len(got) != 1 || got["logs"]["CURSOR_KEYS"] != "new" {
		t.Errorf("%v, %v", got, err)
	}
	if text, err = m.Text(); err != nil || !strings.Contains(string(text), "bmV3") || !strings.Contains(string(text), "a: Yg==") || !strings.Contains(string(text), "a: b") {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := keyset.ParseManifest([]byte("secret: [\n"), "site"); err == nil || strings.Contains(err.Error(), "secret:") {
		t.Errorf("no YAML: %v", err)
	}
}

// The names are those that the chart derives from a long release.
func TestSecretName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("r", 53)
	for want, name := range map[string]string{long + "-customers": "customers", long + "-customers-migrate": "customers-migrate"} {
		if got := keyset.SecretName(long, name); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if _, ok := proto.ServiceNamed(strings.TrimSuffix(keyset.Names()[1], "-migrate")); !ok {
		t.Error(keyset.Names())
	}
}
