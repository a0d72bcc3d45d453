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

// luaFiles are the files of the Debian packages that nginx with Lua loads.
var luaFiles = []string{
	"/usr/lib/nginx/modules/ndk_http_module.so", "/usr/lib/nginx/modules/ngx_http_lua_module.so",
	"/usr/share/lua/5.1/nginx/redis.lua", "/usr/share/lua/5.1/resty/core.lua",
}

// ErrMissing reports that a program that the gateway is compared with is not installed.
var ErrMissing = errors.New("not installed")

var errNoNginx = fmt.Errorf("%w; run .ci/nginx, or install the packages nginx, libnginx-mod-http-lua and lua-nginx-redis", ErrMissing)

// findNginx returns the path of nginx.
func findNginx() (string, error) {
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} { // sbin might not be in PATH
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errNoNginx
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
func (p *Platform) Nginx(ctx context.Context, upstream string) (*Process, string, error) {
	return p.nginx(ctx, "nginx", upstream, nginxConf, nil)
}

// nginx starts an nginx in its own folder, which also contains the files.
func (p *Platform) nginx(ctx context.Context, name, upstream, conf string, files map[string][]byte) (*Process, string, error) {
	path, err := findNginx()
	if err != nil {
		return nil, "", err
	}
	dir := filepath.Join(p.Dir, name)
	if err := os.Mkdir(dir, 0o711); err != nil {
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
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
			return nil, "", err
		}
	}
	main := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(main, fmt.Appendf(nil, conf, worker, dir, addr, upstream), 0o600); err != nil {
		return nil, "", err
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
