package e2e

import (
	"fmt"
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

	"holdfast.dev/services/local/internal/parts"
	"holdfast.dev/services/local/internal/supervise"
)

// replica is one more process of a service, in addition to the one of `local up`. It has the same settings and databases and its
// own address, and is not restarted when it crashes.
type replica struct {
	service, program, address string
	settings                  []string // in addition to those of the process of `local up`
	cmd                       *exec.Cmd
	gone                      chan struct{} // closed when the process has ended
	log                       *transcript
}

// ports selects the ports of the replicas in this test run.
var ports parts.Ports

// newReplica reserves an address for a replica. It does not start the replica.
func newReplica(t *testing.T, service, program string, settings ...string) *replica {
	t.Helper()
	port, err := ports.Free(0)
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := proto.ServiceNamed(service); ok && s.State != "" { // the platform's process uses its own file
		settings = append(settings, s.State+"="+filepath.Join(t.TempDir(), "state"))
	}
	return &replica{service: service, program: program, address: parts.Loopback(port), settings: settings}
}

// start starts the process and waits until it is ready.
func (r *replica) start(t *testing.T, p *platform, settings ...string) {
	t.Helper()
	await(t, r.service+" runs", func() bool { return p.pid(r.service) != 0 })
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid(r.service)))
	if err != nil {
		t.Fatal(err)
	}
	r.log, r.gone = &transcript{}, make(chan struct{})
	r.cmd = exec.Command(r.program, "serve")
	r.cmd.Env = slices.Concat(strings.Split(strings.TrimRight(string(env), "\x00"), "\x00"),
		[]string{"HTTP_ADDR=" + r.address, "METRICS_ADDR=127.0.0.1:0"}, r.settings, settings)
	r.cmd.Stdout, r.cmd.Stderr = r.log, r.log
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := supervise.Start(r.cmd); err != nil {
		r.cmd = nil
		t.Fatal(err)
	}
	go func(cmd *exec.Cmd, gone chan struct{}) {
		_ = cmd.Wait()
		close(gone)
	}(r.cmd, r.gone)
	await(t, r.service+" is ready", func() bool {
		if r.dead() {
			t.Fatalf("%s ended\n%s", r.service, r.log)
		}
		res, err := httpClient.Get("http://" + r.address + "/readyz")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

func (r *replica) dead() bool {
	select {
	case <-r.gone:
		return true
	default:
		return false
	}
}

// stop ends the process gracefully if it is running.
func (r *replica) stop() {
	if r.cmd == nil || r.dead() {
		return
	}
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-r.gone:
	case <-time.After(30 * time.Second):
		_ = r.cmd.Process.Kill()
		<-r.gone
	}
}

// kill ends the process with SIGKILL.
func (r *replica) kill() {
	_ = r.cmd.Process.Kill()
	<-r.gone
}

// killed waits until SIGKILL has ended the process.
func (r *replica) killed(t *testing.T) {
	t.Helper()
	select {
	case <-r.gone:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s does not end\n%s", r.service, r.log)
	}
	if s, ok := r.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGKILL {
		t.Fatalf("%s ended unexpectedly: %v\n%s", r.service, r.cmd.ProcessState, r.log)
	}
}
