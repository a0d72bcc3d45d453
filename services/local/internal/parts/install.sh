#!/bin/sh
# usage: install.sh ROOT PACKAGE...: installs Debian packages without starting or creating an instance of the system's own. Debian checks
# policy-rc.d before it starts a service, and createcluster.conf before it creates a cluster. The script restores both files. If it is
# killed, its next run restores them. ROOT is the system's root, empty except in tests.
set -eu
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
