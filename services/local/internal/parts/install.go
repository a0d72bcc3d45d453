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

// quietInstall installs the packages in "$@" without starting or creating any
// instance of the system's own: Debian asks policy-rc.d before it starts a
// service, and createcluster.conf before it makes a cluster. Both are put back
// as they were, whatever happens.
const quietInstall = `set -eu
policy=/usr/sbin/policy-rc.d
cluster=/etc/postgresql-common/createcluster.conf
made_policy=
restore() {
	if [ -n "$made_policy" ]; then rm -f "$policy"; fi
	if [ -f "$cluster.holdfast" ]; then mv "$cluster.holdfast" "$cluster"; fi
}
trap restore EXIT
trap 'exit 130' INT TERM
if [ ! -e "$policy" ]; then
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
	made_policy=yes
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
case " $* " in *" postgresql "*)
	apt-get install -y -qq --no-install-recommends postgresql-common
	if [ -f "$cluster" ]; then cp -p "$cluster" "$cluster.holdfast"; fi
	echo 'create_main_cluster = false' >>"$cluster"
;; esac
apt-get install -y -qq --no-install-recommends "$@"
if [ -d /run/systemd/system ]; then
	for service in postgresql redis-server; do
		case " $* " in *" $service "*) systemctl disable "$service" || true ;; esac
	done
fi
`

// install installs Debian packages, as root or through sudo.
func install(ctx context.Context, packages []string, say func(string, ...any)) error {
	hint := fmt.Sprintf("PostgreSQL %d+ (with contrib) and Redis %d+ are needed; missing here: %s",
		postgresMajor, redisMajor, strings.Join(packages, ", "))
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New(hint + ": install them with your system's package manager, or give DATABASE_URL and REDIS_URL")
	}
	command := []string{"sh", "-c", quietInstall, "install"}
	if os.Geteuid() != 0 {
		if _, err := exec.LookPath("sudo"); err != nil {
			return errors.New(hint + ": run `apt-get install " + strings.Join(packages, " ") + "` as root")
		}
		command = slices.Insert(command, 0, "sudo")
	}
	if slices.Contains(packages, "postgresql") {
		packages = append(packages, "postgresql-contrib")
	}
	say("installing %s (nothing of the system's own is started)", strings.Join(packages, ", "))
	command = append(command, packages...)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // our own script
	cmd.Stdin = os.Stdin                                        // sudo may ask for a password
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("installing %s: %w\n%s", strings.Join(packages, ", "), err, out)
	}
	return nil
}
