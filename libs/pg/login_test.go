package pg_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/secret"
	"holdfast.dev/libs/testservers"
)

// logins are two logins of the app role. A rotation changes the password of the one that is not in use, and switches to it.
type logins struct {
	db    *pgtest.DB
	admin *pgx.Conn
	names [2]string
	file  string
}

func newLogins(t *testing.T, db *pgtest.DB) *logins {
	t.Helper()
	admin, err := pgx.Connect(t.Context(), testservers.Getenv(t, "TEST_POSTGRES_URL"))
	if err != nil {
		t.Fatal(err)
	}
	l := &logins{db: db, admin: admin, file: filepath.Join(t.TempDir(), "url")}
	suffix := strings.TrimPrefix(ids.New[ids.RequestPrefix]().String(), "req_")
	for i := range l.names {
		l.names[i] = fmt.Sprintf("login_%s_%d", suffix, i)
		l.exec(t, fmt.Sprintf(`create role %s login password 'first' in role %s`, l.names[i], roleOf(t, db.AppURL)))
		l.exec(t, fmt.Sprintf(`grant %s to %s`, l.names[i], roleOf(t, db.OwnerURL)))
	}
	t.Cleanup(func() {
		for _, name := range l.names {
			_, _ = admin.Exec(context.Background(), fmt.Sprintf(`select pg_terminate_backend(pid) from pg_stat_activity where usename = '%s'`, name))
			if _, err := admin.Exec(context.Background(), `drop role `+name); err != nil {
				t.Error(err)
			}
		}
		_ = admin.Close(context.Background())
	})
	return l
}

func roleOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.User.Username()
}

func (l *logins) exec(t *testing.T, sql string) {
	t.Helper()
	if _, err := l.admin.Exec(context.Background(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// url returns the database's URL for a login, through the pooler if pooled.
func (l *logins) url(t *testing.T, login int, password string, pooled bool) string {
	t.Helper()
	address := l.db.AppURL
	if pooled {
		address = pgtest.Pooled(t, address)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(l.names[login], password)
	return u.String()
}

func (l *logins) write(t *testing.T, text string) {
	t.Helper()
	if err := errors.Join(os.WriteFile(l.file+".new", []byte(text), 0o600), os.Rename(l.file+".new", l.file)); err != nil {
		t.Fatal(err)
	}
}

// The password of the database changes under load and no transaction fails: the one that is not in use gets a new password, the file
// switches to it, and then the other's old password is replaced and its connections are ended.
func TestRotationUnderLoad(t *testing.T) {
	t.Parallel()
	for name, pooled := range map[string]bool{"direct": false, "through a pooler": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLogins(t, pgtest.New(t, notes))
			l.write(t, l.url(t, 0, "first", pooled))
			setting := secret.New(l.url(t, 0, "first", pooled))
			setting.InFile("DATABASE_URL", l.file)
			db, err := pg.OpenManaged(t.Context(), &process{}, "postgres", setting, pg.Options{MaxConns: 8, Pooler: pooled})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			ctx, stop := context.WithCancel(pgtest.Ctx(t, caller.Live))
			var clients sync.WaitGroup
			defer clients.Wait()
			defer stop()
			var done atomic.Int64
			for range 8 {
				clients.Go(func() {
					for ctx.Err() == nil {
						err := db.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
							return insert(ctx, tx, int(done.Add(1)), "a")
						})
						if err != nil && ctx.Err() == nil {
							t.Errorf("a transaction failed: %v", err)
							return
						}
					}
				})
			}
			for round := 1; round <= 4; round++ {
				use, password := round%2, fmt.Sprintf("password %d", round)
				l.exec(t, fmt.Sprintf(`alter role %s password '%s'`, l.names[use], password))
				l.write(t, l.url(t, use, password, pooled))
				if switched, err := setting.Reload(); err != nil || !switched {
					t.Fatalf("round %d: %v, %v", round, switched, err)
				}
				old := l.names[1-use]
				l.exec(t, fmt.Sprintf(`alter role %s password 'revoked %d'`, old, round))
				if !pooled { // the pooler keeps its connections until they are idle; a new client needs the new password
					eventually(t, "the old login has no connections", func() bool { return l.connections(t, old) == 0 })
				}
				before := done.Load()
				eventually(t, "transactions", func() bool { return done.Load() > before+200 })
			}
			t.Logf("%d transactions", done.Load())
		})
	}
}

func (l *logins) connections(t *testing.T, login string) (n int) {
	t.Helper()
	if err := l.admin.QueryRow(context.Background(), `select count(*) from pg_stat_activity where usename = $1`, login).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A URL that the server does not accept is not used, and its error does not contain the password.
func TestPoolRetainsItsLogin(t *testing.T) {
	t.Parallel()
	l := newLogins(t, pgtest.New(t, notes))
	l.write(t, l.url(t, 0, "first", false))
	setting := secret.New(l.url(t, 0, "first", false))
	setting.InFile("DATABASE_URL", l.file)
	db, err := pg.OpenManaged(t.Context(), &process{}, "postgres", setting, pg.Options{MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx := pgtest.Ctx(t, caller.Live)
	for name, bad := range map[string]string{
		"wrong password": l.url(t, 1, "hunter2", false), "no URL": "postgres://me:hunter2@h:port", "nothing there": "postgres://me:hunter2@127.0.0.1:1/db",
	} {
		l.write(t, bad)
		if switched, err := setting.Reload(); switched || err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, %v", name, switched, err)
		}
		if err := db.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			return insert(ctx, tx, int(time.Now().UnixMicro()%1e9), "a")
		}); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
	}
}

// A transaction of a second login of the app role also holds up the watermark before its first write. A backup does not.
func TestWatermarkSeesAllLogins(t *testing.T) {
	t.Parallel()
	l := newLogins(t, pgtest.New(t, notes))
	ctx := pgtest.Ctx(t, caller.Live)
	oldest := func() time.Time {
		rows, err := l.db.App.ReadToWatermark(ctx).Query(ctx, `select `+pg.Watermark)
		if err != nil {
			t.Fatal(err)
		}
		at, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[time.Time])
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	begin := func(address string) (began time.Time) {
		conn, err := pgx.Connect(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		if _, err := conn.Exec(t.Context(), `begin`); err != nil {
			t.Fatal(err)
		}
		if err := conn.QueryRow(t.Context(), `select now()`).Scan(&began); err != nil {
			t.Fatal(err)
		}
		return began
	}
	if began := begin(l.db.OwnerURL); !oldest().After(began) {
		t.Error("a backup holds up the watermark")
	}
	if began := begin(l.url(t, 1, "first", false)); oldest().After(began) {
		t.Error("a transaction of the second login, which has not written yet, is not seen")
	}
}
