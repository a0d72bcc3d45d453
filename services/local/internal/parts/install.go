package parts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// quietInstall installs the packages in "$@" without starting or creating an instance of the system's own. Debian checks
// policy-rc.d before it starts a service, and createcluster.conf before it creates a cluster. The script restores both files. If
// it is killed, its next run restores them. The first argument is the system's root, empty except in tests.
const quietInstall = `set -eu
root=$1
shift
policy=$root/usr/sbin/policy-rc.d
cluster=$root/etc/postgresql-common/createcluster.conf
made_policy=
restore() {
	if [ -n "$made_policy" ]; then rm -f "$policy"; fi
	if [ -f "$cluster.holdfast" ]; then mv "$cluster.holdfast" "$cluster"; fi
}
trap restore EXIT
trap 'exit 130' INT TERM
if [ ! -e "$policy" ] || grep -q holdfast "$policy"; then
	printf '#!/bin/sh\n# of holdfast, while it installs\nexit 101\n' >"$policy"
	chmod 755 "$policy"
	made_policy=yes
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
case " $* " in *" postgresql "*)
	apt-get install -y -qq --no-install-recommends postgresql-common
	if [ -f "$cluster" ] && [ ! -f "$cluster.holdfast" ]; then cp -p "$cluster" "$cluster.holdfast"; fi
	echo 'create_main_cluster = false' >>"$cluster"
;; esac
apt-get install -y -qq --no-install-recommends "$@"
if [ -d "$root/run/systemd/system" ]; then
	for service in postgresql redis-server; do
		case " $* " in *" $service "*) systemctl disable "$service" || true ;; esac
	done
fi
`

// installer contains what an installation uses of the machine. Tests replace it.
type installer struct {
	uid      int
	lookPath func(name string) (string, error)
	run      func(ctx context.Context, command []string) ([]byte, error)
}

func systemInstaller() installer {
	return installer{uid: os.Geteuid(), lookPath: exec.LookPath, run: func(ctx context.Context, command []string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Stdin = os.Stdin // sudo can prompt for a password
		return cmd.CombinedOutput()
	}}
}

// install installs Debian packages, as root or with sudo. If it fails, the error is one line that explains what to install.
func (i installer) install(ctx context.Context, packages []string, say func(string, ...any)) error {
	hint := fmt.Sprintf("PostgreSQL %d+ (with contrib) and Redis %d+ are needed; missing here: %s",
		postgresMajor, redisMajor, strings.Join(packages, ", "))
	if _, err := i.lookPath("apt-get"); err != nil {
		return errors.New(hint + ": install them with your system's package manager, or give DATABASE_URL and REDIS_URL")
	}
	if slices.Contains(packages, "postgresql") {
		packages = append(packages, "postgresql-contrib")
	}
	command := append([]string{"sh", "-c", quietInstall, "install", ""}, packages...)
	if i.uid != 0 {
		if _, err := i.lookPath("sudo"); err != nil {
			return errors.New(hint + ": run `apt-get install " + strings.Join(packages, " ") + "` as root")
		}
		command = slices.Insert(command, 0, "sudo")
	}
	say("installing %s (without starting their services)", strings.Join(packages, ", "))
	if out, err := i.run(ctx, command); err != nil {
		return fmt.Errorf("installing %s: %w\n%s", strings.Join(packages, ", "), err, out)
	}
	return nil
}
