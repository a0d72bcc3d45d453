#!/bin/sh
# Creates the database cluster at the first start and then runs PostgreSQL. Works in the public postgres:15 and in any Debian image.
set -eu
export PATH="/usr/lib/postgresql/15/bin:$PATH" PGDATA=/data/postgres
# Only one server uses the volume at a time, even after the forced deletion of a pod. postmaster.pid does not ensure this between
# containers, because the server is process 1 in each.
exec 9> /data/postgres.lock
flock 9
if [ ! -f "$PGDATA/PG_VERSION" ]; then
	rm -rf "$PGDATA.new" # left incomplete by an interrupted start
	initdb -D "$PGDATA.new" -U postgres --pwfile=/secrets/postgres-password --auth=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8
	echo 'host all all all scram-sha-256' >> "$PGDATA.new/pg_hba.conf"
	mv "$PGDATA.new" "$PGDATA"
fi
exec postgres -D "$PGDATA" -c 'listen_addresses=*' -c unix_socket_directories= -c max_connections=400 \
	-c shared_buffers=256MB -c max_wal_size=2GB -c autovacuum_naptime=5s -c timezone=UTC -c log_timezone=UTC
