package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// machineSite is a platform of `local up` with a PostgreSQL server of its own.
type machineSite struct {
	p          *platform
	first, now *server
}

func newMachineSite(t *testing.T) *machineSite {
	t.Helper()
	m := &machineSite{first: newServer(t)}
	m.now = m.first
	m.first.start(t, m.first.archiving()...)
	var err error
	if m.p, err = newPlatform("DATABASE_URL="+m.first.url(), "KAFKA=embedded"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.p.remove)
	m.start(t)
	return m
}

func (m *machineSite) client(t *testing.T) *client {
	t.Helper()
	return m.p.as(t, "DEMO_TEST_KEY")
}

func (m *machineSite) shell(t *testing.T, script string, variables ...string) string {
	t.Helper()
	return m.first.shell(t, script, variables...)
}

// kill ends all processes immediately, the supervisor first.
func (m *machineSite) kill(t *testing.T) time.Time {
	t.Helper()
	files, err := os.ReadDir(m.p.path("pids"))
	if err != nil {
		t.Fatal(err)
	}
	if pid := m.p.pid("local"); pid > 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		<-m.p.gone
	}
	for _, f := range files {
		if pid := m.p.pid(f.Name()); pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err := os.Remove(m.p.path("pids", f.Name())); err != nil { // otherwise, the process seems to run until it is reaped
			t.Fatal(err)
		}
	}
	m.now.kill()
	killed := time.Now()
	if err := os.Remove(m.p.path("env")); err != nil { // the next start writes it when everything is ready
		t.Fatal(err)
	}
	return killed
}

// restore starts the restored server on the first one's port. Databases with an earlier moment come from further servers.
func (m *machineSite) restore(t *testing.T, moment time.Time, earlier map[string]time.Time, retainKafka bool) {
	t.Helper()
	lost := []string{"redis"}
	if !retainKafka {
		lost = append(lost, "kafka*")
	}
	for _, pattern := range lost {
		folders, err := filepath.Glob(m.p.path("data", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range folders {
			if err := os.RemoveAll(folder); err != nil {
				t.Fatal(err)
			}
		}
	}
	if m.now != m.first { // the first one's data remains, but is not used again
		m.now.discard(t)
	}
	m.now = m.first.restore(t, unique("all"), moment, m.first.port)
	for service, moment := range earlier {
		older := m.first.restore(t, unique(service), moment, freePort(t))
		m.now.take(t, older, "holdfast_"+service)
		older.discard(t)
	}
}

// start starts everything except PostgreSQL.
func (m *machineSite) start(t *testing.T) {
	t.Helper()
	if err := m.p.up(); err != nil {
		t.Fatal(err)
	}
}

func (m *machineSite) prelude(section []string) string { return section[0] }

func (m *machineSite) finish(*testing.T) {}
