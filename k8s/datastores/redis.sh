#!/bin/sh
# Runs Redis with its password and an append-only file. Works in the public redis:7 and in any Debian image.
set -eu
exec 9> /data/redis.lock # only one server uses the volume at a time, even after the forced deletion of a pod
flock 9
exec redis-server - <<SETTINGS
requirepass $(cat /secrets/redis-password)
dir /data
appendonly yes
save ""
protected-mode no
SETTINGS
