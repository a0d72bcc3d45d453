package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// checkoutRoot is the folder of the sources.
const checkoutRoot = "../../../.."

// TestAServiceFollowsFromTheList checks that a new service needs only an entry in proto/services.yaml and a folder. It is built,
// started, awaited, and stopped like the others, and no other file mentions it.
func TestAServiceFollowsFromTheList(t *testing.T) {
	onMachine(t)
	t.Parallel()
	p := fresh(t, "DATABASE_URL="+shared.env["POSTGRES_URL"], "REDIS_URL="+shared.env["REDIS_URL"],
		"KAFKA_BROKERS="+shared.env["KAFKA_BROKERS"], "HOLDFAST_PREFIX=example_")
	addExample(t, p.root)
	if planned := makeIn(t, p.root, "-n", "build"); !strings.Contains(planned, "./services/example") {
		t.Errorf("`make build` does not build it:\n%s", planned)
	}
	makeIn(t, p.root, "bin/local", "bin/gateway", "bin/example") // the other executables are from the checkout
	if err := p.up(); err != nil {
		t.Fatal(err)
	}
	own, err := readEnv(p.path("services", "example.env"))
	if err != nil {
		t.Fatal(err)
	}
	for name, base := range map[string]string{"example": "http://" + own["HTTP_ADDR"], "gateway": strings.TrimSuffix(p.env["BASE_URL"], "/api/v1")} {
		res, err := http.Get(base + "/healthz")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK || p.pid(name) == 0 {
			t.Errorf("%s responds %s as process %d", name, res.Status, p.pid(name))
		}
	}
	if !strings.Contains(p.log.String(), "gateway, example are healthy") {
		t.Errorf("the start does not say that it is healthy:\n%s", p.log)
	}
	p.down()
	p.stopped(t)
}

// addExample copies the sources to root and adds the service example: an entry in the list, and a folder.
func addExample(t *testing.T, root string) {
	t.Helper()
	args := []string{"-a"}
	for _, name := range []string{"Makefile", "go.mod", "go.sum", ".ci", "proto", "libs", "sdks", "services"} {
		args = append(args, filepath.Join(checkoutRoot, name))
	}
	if out, err := exec.CommandContext(t.Context(), "cp", append(args, root)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	folder := filepath.Join(root, "services", "example")
	if err := os.CopyFS(folder, os.DirFS("testdata/example")); err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(root, "proto", "services.yaml")
	text, err := os.ReadFile(list)
	if err == nil {
		err = os.WriteFile(list, append(text, "  example: {}\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// makeIn runs make in a folder, and returns its output.
func makeIn(t *testing.T, root string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", args...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "MAKEFLAGS=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make %v: %v\n%s", args, err, out)
	}
	return string(out)
}
