package stack

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
)

// luaFiles are the files of the Debian packages that nginx with Lua loads.
var luaFiles = []string{
	"/usr/lib/nginx/modules/ndk_http_module.so", "/usr/lib/nginx/modules/ngx_http_lua_module.so",
	"/usr/share/lua/5.1/nginx/redis.lua", "/usr/share/lua/5.1/resty/core.lua",
}

// ErrMissing reports that a program that the gateway is compared with is not installed.
var ErrMissing = errors.New("not installed")

var errNoNginx = fmt.Errorf(
	"%w; run .ci/packages nginx, or install the packages nginx, libnginx-mod-http-lua and lua-nginx-redis", ErrMissing,
)

// findNginx returns the path of nginx.
func findNginx() (string, error) {
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} { // sbin might not be in PATH
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errNoNginx
}

// The configurations of nginx: as a plain proxy, and with the work of the gateway in Lua.
var (
	//go:embed conf/nginx.conf
	plainConf string
	//go:embed conf/lua.conf
	luaConf string
	//go:embed conf/peer.lua
	luaPeer []byte
)

// Nginx starts nginx as a plain proxy with one worker in front of upstream, and returns its address.
func (p *Platform) Nginx(ctx context.Context, upstream string) (string, error) {
	return p.nginx(ctx, "nginx", upstream, plainConf, nil)
}

// nginx starts an nginx in its own folder, which also contains the files.
func (p *Platform) nginx(ctx context.Context, name, upstream, conf string, files map[string][]byte) (string, error) {
	path, err := findNginx()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(p.Dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	addr, err := FreeAddr()
	if err != nil {
		return "", err
	}
	main := filepath.Join(dir, "nginx.conf")
	all := map[string][]byte{"nginx.conf": fmt.Appendf(nil, conf, dir, addr, upstream)}
	maps.Copy(all, files)
	for file, text := range all {
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
			return "", err
		}
	}
	return addr, p.Run(ctx, name, "http://"+addr+"/", nil, path, "-c", main, "-p", dir)
}
