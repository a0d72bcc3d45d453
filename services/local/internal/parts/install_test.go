package parts

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func silent(string, ...any) {}

func TestInstallNeedsRootOrSudo(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		uid  int
		has  []string
		want string // the beginning of the command, or, after !, a part of the error
	}{
		"root":                   {0, []string{"apt-get"}, "sh -c"},
		"a user with sudo":       {1000, []string{"apt-get", "sudo"}, "sudo sh -c"},
		"a user without sudo":    {1000, []string{"apt-get"}, "!apt-get install postgresql redis-server postgresql-contrib` as root"},
		"another system":         {0, nil, "!install them with your system's package manager"},
		"another system, a user": {1000, []string{"sudo"}, "!install them with your system's package manager"},
	} {
		var ran string
		i := installer{
			uid: tc.uid,
			lookPath: func(name string) (string, error) {
				if slices.Contains(tc.has, name) {
					return "/usr/bin/" + name, nil
				}
				return "", exec.ErrNotFound
			},
			run: func(_ context.Context, command []string) ([]byte, error) {
				ran = strings.Join(command, " ")
				return nil, nil
			},
		}
		err := i.install(t.Context(), []string{"postgresql", "redis-server"}, silent)
		if word, refused := strings.CutPrefix(tc.want, "!"); refused {
			if err == nil || ran != "" || !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v, ran %q", name, err, ran)
			}
			continue
		}
		if err != nil || !strings.HasPrefix(ran, tc.want) || !strings.HasSuffix(ran, "install  postgresql redis-server postgresql-contrib") {
			t.Errorf("%s: %v, ran %q", name, err, ran)
		}
	}
}

// fakeSystem creates a root folder with an apt-get that records its arguments and the services that it would start.
func fakeSystem(t *testing.T, aptExit string) (root string, run func() error) {
	t.Helper()
	root = t.TempDir()
	for _, dir := range []string{"usr/sbin", "etc/postgresql-common", "bin"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(root, "etc/postgresql-common/createcluster.conf"), "old\n")
	write(t, filepath.Join(root, "bin/apt-get"), `#!/bin/sh
echo "$@" >>`+root+`/told
case "$*" in *redis-server*)
	cp `+root+`/usr/sbin/policy-rc.d `+root+`/policy.seen
	cp `+root+`/etc/postgresql-common/createcluster.conf `+root+`/cluster.seen
	exit `+aptExit+`
;; esac
`)
	return root, func() error {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", quietInstall, "install", root, "postgresql", "redis-server")
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		return err
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestInstallStartsNothingAndPutsBack checks that packages are installed without starting services of the system, and that the two
// files that prevent this are restored after a success, a failure, and a kill.
func TestInstallStartsNothingAndPutsBack(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		exit   string
		killed bool
	}{"succeeds": {"0", false}, "fails": {"100", false}, "after a killed one": {"0", true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, run := fakeSystem(t, tc.exit)
			policy, cluster := filepath.Join(root, "usr/sbin/policy-rc.d"), filepath.Join(root, "etc/postgresql-common/createcluster.conf")
			if tc.killed {
				write(t, policy, "#!/bin/sh\n# of holdfast, while it installs\nexit 101\n")
				write(t, cluster+".holdfast", "old\n")
				write(t, cluster, "old\ncreate_main_cluster = false\n")
			}
			if err := run(); (err != nil) != (tc.exit != "0") {
				t.Errorf("the script ended with %v", err)
			}
			if args := read(t, filepath.Join(root, "told")); !strings.Contains(args, "install -y -qq --no-install-recommends postgresql redis-server") {
				t.Errorf("apt-get was called with %q", args)
			}
			if seen := read(t, filepath.Join(root, "policy.seen")); !strings.Contains(seen, "exit 101") {
				t.Errorf("policy-rc.d meanwhile: %q", seen)
			}
			if seen := read(t, filepath.Join(root, "cluster.seen")); !strings.Contains(seen, "create_main_cluster = false") {
				t.Errorf("createcluster.conf meanwhile: %q", seen)
			}
			if _, err := os.Stat(policy); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("policy-rc.d is left: %v", err)
			}
			if text := read(t, cluster); text != "old\n" {
				t.Errorf("createcluster.conf is left as %q", text)
			}
		})
	}
}

func TestAPolicyOfTheSystemStays(t *testing.T) {
	t.Parallel()
	root, run := fakeSystem(t, "0")
	policy := filepath.Join(root, "usr/sbin/policy-rc.d")
	write(t, policy, "#!/bin/sh\nexit 101\n")
	if err := run(); err != nil {
		t.Fatal(err)
	}
	if read(t, policy) != "#!/bin/sh\nexit 101\n" {
		t.Error("the system's own policy-rc.d was changed")
	}
}
