package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/redis/go-redis/v9"
)

// Traefik starts Traefik (3.4 or newer) in front of upstream, with a rate limit for each credential on the platform's Redis. It
// returns the process and its address.
func (p *Platform) Traefik(ctx context.Context, path, upstream string) (*Process, string, error) {
	if path == "" {
		return nil, "", fmt.Errorf("%w; set TRAEFIK to the path of its binary", ErrMissing)
	}
	dir := filepath.Join(p.Dir, "traefik")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, "", err
	}
	addr, err := FreeAddr()
	if err != nil {
		return nil, "", err
	}
	static, dynamic, err := traefikConfig(dir, addr, upstream, p.Env["REDIS_URL"])
	if err != nil {
		return nil, "", err
	}
	for name, text := range map[string][]byte{staticFile: static, dynamicFile: dynamic} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return nil, "", err
		}
	}
	one, err := p.Run(ctx, "traefik", "http://"+addr+"/", nil, path, "--configFile="+filepath.Join(dir, staticFile))
	return one, addr, err
}

const (
	staticFile  = "traefik.yaml"
	dynamicFile = "dynamic.yaml"
)

// traefikConfig returns the two files that Traefik reads, in JSON, which is valid YAML. They define one entry point on loopback
// without log lines, and one route with a limit for each Authorization header. No run reaches the limit.
func traefikConfig(dir, addr, upstream, redisURL string) (static, dynamic []byte, err error) {
	type object = map[string]any
	at, err := redis.ParseURL(redisURL)
	if err != nil {
		return nil, nil, fmt.Errorf("address of Redis: %w", err)
	}
	limiter := object{"endpoints": []string{at.Addr}, "db": at.DB}
	if at.Username != "" {
		limiter["username"] = at.Username
	}
	if at.Password != "" {
		limiter["password"] = at.Password
	}
	static, err = json.MarshalIndent(object{
		"global":      object{"checkNewVersion": false, "sendAnonymousUsage": false},
		"log":         object{"level": "ERROR"},
		"entryPoints": object{"bench": object{"address": addr}},
		"providers":   object{"file": object{"filename": filepath.Join(dir, dynamicFile), "watch": false}},
	}, "", "  ")
	if err != nil {
		return nil, nil, err
	}
	dynamic, err = json.MarshalIndent(object{"http": object{
		"routers": object{"all": object{
			"entryPoints": []string{"bench"}, "rule": "PathPrefix(`/`)", "middlewares": []string{"limit"}, "service": "upstream",
		}},
		"middlewares": object{"limit": object{"rateLimit": object{
			"average": json.Number(Limit), "period": "1m", "burst": json.Number(Limit),
			"sourceCriterion": object{"requestHeaderName": "Authorization"}, "redis": limiter,
		}}},
		"services": object{"upstream": object{"loadBalancer": object{
			"passHostHeader": true, "servers": []object{{"url": "http://" + upstream}},
		}}},
	}}, "", "  ")
	return static, dynamic, err
}
