package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
)

// quietInstall installs nginx without starting the system's own instance: Debian runs policy-rc.d before it starts a service. The
// script always restores that file.
const quietInstall = `set -eu
policy=/usr/sbin/policy-rc.d
made=
restore() { if [ -n "$made" ]; then rm -f "$policy"; fi; }
trap restore EXIT
trap 'exit 130' INT TERM
if [ ! -e "$policy" ]; then
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
	made=yes
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends nginx-light libnginx-mod-http-lua lua-nginx-redis lua-resty-core
if [ -d /run/systemd/system ]; then systemctl disable nginx || true; fi
`

var errNoNginx = errors.New("nginx is needed for the comparison: install it (Debian: apt-get install nginx-light libnginx-mod-http-lua lua-nginx-redis lua-resty-core)")

// FindNginx returns nginx's path. If nginx or its Lua packages are missing, it installs them with apt, as root or with sudo. nginx
// without Lua is not an error.
func FindNginx(ctx context.Context, say func(string, ...any)) (string, error) {
	path := lookNginx()
	if path != "" && HasLua() {
		return path, nil
	}
	if err := installNginx(ctx, say); err != nil && path == "" {
		return "", err
	}
	if path = lookNginx(); path == "" {
		return "", errNoNginx
	}
	return path, nil
}

func installNginx(ctx context.Context, say func(string, ...any)) error {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errNoNginx
	}
	command := []string{"sh", "-c", quietInstall}
	if os.Geteuid() != 0 {
		if _, err := exec.LookPath("sudo"); err != nil {
			return errNoNginx
		}
		command = append([]string{"sudo"}, command...)
	}
	say("installing nginx with Lua (the system's own instance is not started)")
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin = os.Stdin // sudo can prompt for a password
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %w\n%s", errNoNginx, err, out)
	}
	return nil
}

func lookNginx() string {
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} { // sbin might not be in PATH
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

const nginxConf = `daemon off;
%[1]s
worker_processes 1;
pid %[2]s/nginx.pid;
error_log stderr warn;
events { worker_connections 1024; }
http {
	access_log off;
	client_body_temp_path %[2]s/body;
	proxy_temp_path %[2]s/proxy;
	fastcgi_temp_path %[2]s/fastcgi;
	uwsgi_temp_path %[2]s/uwsgi;
	scgi_temp_path %[2]s/scgi;
	keepalive_requests 1000000000;
	upstream service {
		server %[4]s;
		keepalive 64;
		keepalive_requests 1000000000;
	}
	server {
		listen %[3]s;
		location / {
			proxy_pass http://service;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
		}
	}
}
`

// Nginx starts nginx as a plain proxy with one worker in front of upstream. It returns the process and its address.
func (p *Platform) Nginx(ctx context.Context, path, upstream string) (*Process, string, error) {
	return p.nginx(ctx, path, "nginx", upstream, nginxConf, nil)
}

// nginx starts an nginx in its own folder, which also contains the files.
func (p *Platform) nginx(ctx context.Context, path, name, upstream, conf string, files map[string][]byte) (*Process, string, error) {
	dir := filepath.Join(p.Dir, name)
	if err := os.Mkdir(dir, 0o711); err != nil { //nolint:gosec // its worker is another user
		return nil, "", err
	}
	addr, err := FreeAddr()
	if err != nil {
		return nil, "", err
	}
	worker, err := workerUser()
	if err != nil {
		return nil, "", err
	}
	main := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(main, fmt.Appendf(nil, conf, worker, dir, addr, upstream), 0o600); err != nil {
		return nil, "", err
	}
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
			return nil, "", err
		}
	}
	one, err := p.Run(ctx, name, "http://"+addr+"/", nil, path, "-c", main, "-p", dir)
	return one, addr, err
}

// workerUser returns the directive that, as root, runs the worker as a user without rights.
func workerUser() (string, error) {
	if os.Geteuid() != 0 {
		return "", nil
	}
	account, err := user.Lookup("nobody")
	if err != nil {
		return "", err
	}
	group, err := user.LookupGroupId(account.Gid)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("user %s %s;", account.Username, group.Name), nil
}
