package stack

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/redis/go-redis/v9"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/caller"
	"holdfast.dev/proto"
)

// windowScript is the gateway's rate limit script, in the checkout.
const windowScript = "services/gateway/internal/store/window.lua"

// Peer specifies what nginx with Lua does for a request, in addition to the proxy.
type Peer struct {
	Limit     string        // requests per minute
	PublicURL string        // of errors' documentation
	Target    string        // service that the caller is signed for
	Key       caller.Key    // of the target
	Scope     string        // required by the operation
	Token     string        // API key of the caller
	Caller    caller.Caller // whom the key belongs to
}

// principals is the prefix of the keys in Redis under which nginx finds the owner of an API key by the hash of the key.
const principals = "bench:principal:"

// NginxLua starts nginx in front of upstream, with one worker that does the work of the gateway in Lua. It returns its
// address.
func (p *Platform) NginxLua(ctx context.Context, upstream string, peer Peer) (string, error) {
	for _, file := range luaFiles {
		if _, err := os.Stat(file); err != nil {
			return "", errNoNginx
		}
	}
	opt, err := redis.ParseURL(p.Env["REDIS_URL"])
	if err != nil {
		return "", err
	}
	if err := peer.register(ctx, opt); err != nil {
		return "", fmt.Errorf("nginx with Lua: %w", err)
	}
	return p.nginx(ctx, "nginx-lua", upstream, luaConf, map[string][]byte{
		"peer.lua": luaPeer, "settings.lua": peer.settings(opt, filepath.Join(p.checkout, windowScript)),
	})
}

// register stores the owner of the API key in Redis.
func (p Peer) register(ctx context.Context, opt *redis.Options) error {
	encoded, err := caller.Encode(p.Caller)
	if err != nil {
		return err
	}
	c := redis.NewClient(opt)
	defer func() { _ = c.Close() }()
	return c.Set(ctx, p.principal(), strings.Join([]string{
		p.Caller.Credential, "0", strings.Join(p.Caller.Scopes, " "), p.Caller.Tenant.String(), string(p.Caller.Mode),
		string(encoded),
	}, "\n"), 0).Err()
}

// principal returns the key in Redis of the owner of the API key.
func (p Peer) principal() string {
	hash := apikey.Hash(p.Token)
	return principals + string(hash[:])
}

// settings returns the Lua module with the settings of peer.lua. script is the path of the gateway's rate limit script.
func (p Peer) settings(opt *redis.Options, script string) []byte {
	host, port, _ := strings.Cut(opt.Addr, ":")
	out := []byte("return {\n")
	out = fmt.Appendf(out, "\tredis_port = %s,\n\tlimit = %s,\n", port, p.Limit)
	for _, one := range [][2]string{
		{"redis_host", host},
		{"redis_password", opt.Password},
		{"script", script},
		{"target", p.Target},
		{"key_id", p.Key.ID},
		{"secret", hex.EncodeToString(p.Key.Secret)},
		{"scope", p.Scope},
		{"principals", principals},
		{"errors", p.PublicURL + proto.ErrorsPage + "#"},
	} {
		out = fmt.Appendf(out, "\t%s = %q,\n", one[0], one[1])
	}
	return append(out, "}\n"...)
}
