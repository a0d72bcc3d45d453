package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestRotationOfADatabasePassword changes the password of bookings' database under load, with two logins, as docs/connections.md
// describes. No request fails. After a kill, the process starts with the new password. A file that cannot be used changes nothing.
func TestRotationOfADatabasePassword(t *testing.T) {
	onMachine(t)
	p := fresh(t, "SECRET_FILES=true", "SECRET_RELOAD_INTERVAL=200ms", "KAFKA=embedded")
	if err := p.up(); err != nil {
		t.Fatal(err)
	}
	files := newRotation(t, p)
	done, stop := p.load(t)
	for round := range 3 {
		files.rotate(t, round)
		before := done.Load()
		await(t, "20 requests after the rotation", func() bool { return t.Failed() || done.Load() >= before+20 })
	}
	stop()
	p.kill(t, "bookings")
	c := p.as(t, "DEMO_TEST_KEY")
	w := newBooking()
	w.complete(t, c, response{})
	files.write(t, "DATABASE_URL", "postgres://nobody:wrong@127.0.0.1:1/none")
	await(t, "the process reports a file that it cannot use", func() bool {
		return strings.Contains(strings.Join(p.metrics(t, "bookings"), "\n"), `secret_file_invalid{setting="DATABASE_URL"} 1`)
	})
	w = newBooking()
	w.complete(t, c, response{})
}

// rotation has two logins for the role of bookings that serves requests.
type rotation struct {
	p      *platform
	admin  *pgx.Conn
	direct *url.URL // the URL of the file at the start
	logins [2]string
}

func newRotation(t *testing.T, p *platform) *rotation {
	t.Helper()
	admin, err := pgx.Connect(t.Context(), p.env["POSTGRES_URL"])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close(context.Background()) })
	text, err := os.ReadFile(p.path("services", "bookings", "DATABASE_URL"))
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	role := u.User.Username()
	r := &rotation{p: p, admin: admin, direct: u, logins: [2]string{role, role + "_b"}}
	r.exec(t, fmt.Sprintf(`create role %s login in role %s`, r.logins[1], role))
	r.exec(t, fmt.Sprintf(`grant %s to %s`, r.logins[1], strings.TrimSuffix(role, "_app")+"_owner"))
	return r
}

func (r *rotation) exec(t *testing.T, sql string) {
	t.Helper()
	if _, err := r.admin.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// rotate gives the unused login a new password, switches to it, waits until the other one has no connections, and removes the other
// one's password.
func (r *rotation) rotate(t *testing.T, round int) {
	t.Helper()
	next, old, password := r.logins[(round+1)%2], r.logins[round%2], fmt.Sprintf("rotated-%d", round)
	r.exec(t, fmt.Sprintf(`alter role %s password '%s'`, next, password))
	u := *r.direct
	u.User = url.UserPassword(next, password)
	r.write(t, "DATABASE_URL", u.String())
	await(t, "only the new login has connections", func() bool {
		var before, after int
		err := r.admin.QueryRow(t.Context(), `select count(*) filter (where usename = $1), count(*) filter (where usename = $2) from pg_stat_activity`, old, next).Scan(&before, &after)
		return err == nil && after > 0 && (before == 0 || os.Getenv("POOLER") != "") // the pooler keeps idle connections
	})
	r.exec(t, fmt.Sprintf(`alter role %s password null`, old))
}

// write replaces the file of a secret of bookings.
func (r *rotation) write(t *testing.T, setting, value string) {
	t.Helper()
	file := r.p.path("services", "bookings", setting)
	if err := os.WriteFile(file+".new", []byte(value), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// load sends reads and writes to bookings until stop is called, and counts those that are done. A request that fails is an error.
func (p *platform) load(t *testing.T) (done *atomic.Int64, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done = new(atomic.Int64)
	var clients sync.WaitGroup
	c := p.as(t, "DEMO_TEST_KEY")
	for i := range 8 {
		clients.Go(func() {
			for ctx.Err() == nil {
				method, path, body, key, want := http.MethodGet, "/bookings?limit=5", "", "", http.StatusOK
				if i%2 == 0 {
					w := newBooking()
					method, path, body, key, want = http.MethodPost, w.path, w.body, w.key, http.StatusCreated
				}
				if res, err := c.try(t, method, path, body, key); err != nil || res.Status != want {
					t.Errorf("%s %s: %d %s, %v", method, path, res.Status, res.Body, err)
					return
				}
				done.Add(1)
			}
		})
	}
	return done, func() {
		cancel()
		clients.Wait()
	}
}
