package stack

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"holdfast.dev/libs/caller"
)

var (
	//go:embed lua/nginx.conf
	luaConf string
	//go:embed lua/peer.lua
	luaPeer []byte
)

// luaFiles are the files of the Debian packages that the configuration loads.
var luaFiles = []string{
	"/usr/lib/nginx/modules/ndk_http_module.so", "/usr/lib/nginx/modules/ngx_http_lua_module.so",
	"/usr/share/lua/5.1/nginx/redis.lua", "/usr/share/lua/5.1/resty/core.lua",
}

// HasLua reports whether nginx can run the work of the gateway in Lua.
func HasLua() bool {
	for _, file := range luaFiles {
		if _, err := os.Stat(file); err != nil {
			return false
		}
	}
	return true
}

// windowScript is the gateway's rate limit script, in the checkout.
const windowScript = "services/gateway/internal/store/window.lua"

// Peer specifies what nginx with Lua does for a request, in addition to the proxy.
type Peer struct {
	Limit  string        // requests per minute
	Target string        // service that the caller is signed for
	Key    caller.Key    // of the target
	Scope  string        // required by the operation
	Token  string        // API key of the caller
	Caller caller.Caller // whom the key belongs to
}

// principals is the prefix of the keys in Redis under which nginx finds the owner of an API key by the hash of the key.
const principals = "bench:principal:"

// NginxLua starts nginx in front of upstream, with one worker that does the work of the gateway in Lua. It returns the process and
// its address.
func (p *Platform) NginxLua(ctx context.Context, path, upstream string, peer Peer) (*Process, string, error) {
	if err := peer.register(ctx, p.Env["REDIS_URL"]); err != nil {
		return nil, "", fmt.Errorf("nginx with Lua: %w", err)
	}
	settings, err := peer.settings(p.Env["REDIS_URL"], filepath.Join(p.checkout, windowScript))
	if err != nil {
		return nil, "", fmt.Errorf("nginx with Lua: %w", err)
	}
	return p.nginx(ctx, path, "nginx-lua", upstream, luaConf, map[string][]byte{"peer.lua": luaPeer, "settings.lua": settings})
}

// register stores the owner of the API key in Redis.
func (p Peer) register(ctx context.Context, redisURL string) error {
	opt, err := redis.ParseURL(redisURL)
	if err != nil {
		return err
	}
	encoded, err := caller.Encode(p.Caller)
	if err != nil {
		return err
	}
	c := redis.NewClient(opt)
	defer func() { _ = c.Close() }()
	sum := sha256.Sum256([]byte(p.Token))
	return c.Set(ctx, principals+string(sum[:]), strings.Join([]string{
		p.Caller.Credential, "0", strings.Join(p.Caller.Scopes, " "), p.Caller.Tenant.String(), string(p.Caller.Mode), string(encoded),
	}, "\n"), 0).Err()
}

// settings returns the Lua module with the settings of peer.lua. script is the path of the gateway's rate limit script.
func (p Peer) settings(redisURL, script string) ([]byte, error) {
	opt, err := redis.ParseURL(redisURL)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(opt.Addr)
	if err != nil {
		return nil, err
	}
	if _, err := strconv.ParseInt(p.Limit, 10, 64); err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("return {\n")
	fmt.Fprintf(&b, "\tredis_port = %s,\n\tlimit = %s,\n", port, p.Limit)
	for _, one := range [][2]string{
		{"redis_host", host},
		{"redis_password", opt.Password},
		{"script", script},
		{"limit_text", p.Limit},
		{"policy", `"default";q=` + p.Limit + `;w=60`},
		{"target", p.Target},
		{"key_id", p.Key.ID},
		{"secret", hex.EncodeToString(p.Key.Secret)},
		{"scope", " " + p.Scope + " "},
		{"principals", principals},
	} {
		fmt.Fprintf(&b, "\t%s = %q,\n", one[0], one[1])
	}
	b.WriteString("}\n")
	return []byte(b.String()), nil
}
