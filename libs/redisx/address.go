package redisx

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast.dev/libs/tlsx"
)

// Access contains the settings, in addition to REDIS_URL, of every process that uses Redis. The URL is one of
//
//	redis://[user:password@]host:port[/db]                             one server
//	redis://[user:password@]host:port?cluster=true[&addr=host:port…]   a Redis Cluster, by one or some of its nodes
//	redis://[user:password@]host:port[/db]?master_name=…[&addr=…]      the master that these Sentinels name
//
// where addr without master_name implies cluster=true. With rediss:// all connections use TLS. User and password are those of the
// servers. A server's certificate must be valid for the name that the client connects to. If a node announces an IP address and the
// URL contains a name, the certificate must be valid for that name.
type Access struct {
	CAFile           string `env:"REDIS_CA_FILE"`                         // PEM file with certificate authorities to trust in addition to the system's
	ClientCertFile   string `env:"REDIS_CLIENT_CERT_FILE"`                // PEM file with the client certificate, for servers that require one
	ClientKeyFile    string `env:"REDIS_CLIENT_KEY_FILE"`                 // PEM file with the client certificate's private key
	SentinelUsername string `env:"REDIS_SENTINEL_USERNAME"`               // user name for Sentinels that require one
	SentinelPassword string `env:"REDIS_SENTINEL_PASSWORD" secret:"true"` // password for Sentinels that require one
}

const keepAlive = 5 * time.Minute

var (
	errScheme   = errors.New("it must begin with redis:// or rediss://")
	errHost     = errors.New("it has no host")
	errDB       = errors.New("its path must be empty or the number of a database")
	errCluster  = errors.New("cluster must be true or false")
	errBoth     = errors.New("a Cluster must have neither master_name nor a database other than 0")
	errAddr     = errors.New("addr must be host:port")
	errSentinel = errors.New("REDIS_SENTINEL_USERNAME or REDIS_SENTINEL_PASSWORD is set, but the URL has no master_name")
)

// parse parses the URL and reads the files in access. The client of TLS is nil for connections without TLS.
func parse(u *url.URL, access Access) (*redis.UniversalOptions, *tlsx.Client, error) {
	files := tlsx.Files{CA: access.CAFile, Cert: access.ClientCertFile, Key: access.ClientKeyFile}
	o := &redis.UniversalOptions{SentinelUsername: access.SentinelUsername, SentinelPassword: access.SentinelPassword}
	var secure *tlsx.Client
	var err error
	switch u.Scheme {
	case "redis":
		err = files.None("REDIS_", "REDIS_URL must begin with rediss://")
	case "rediss":
		secure, err = tlsx.NewClient("REDIS_", files)
	default:
		err = errScheme
	}
	if err != nil {
		return nil, nil, err
	}
	if u.Hostname() == "" {
		return nil, nil, errHost
	}
	port := u.Port()
	if port == "" {
		port = "6379"
	}
	o.Addrs = []string{net.JoinHostPort(u.Hostname(), port)}
	o.Username = u.User.Username()
	o.Password, _ = u.User.Password()
	if db := strings.TrimPrefix(u.Path, "/"); db != "" {
		if o.DB, err = strconv.Atoi(db); err != nil || o.DB < 0 {
			return nil, nil, errDB
		}
	}
	return o, secure, kind(o, u.Query())
}

// kind applies the URL's query.
func kind(o *redis.UniversalOptions, query url.Values) error {
	for name, values := range query {
		if err := parameter(o, name, values); err != nil {
			return err
		}
	}
	o.IsClusterMode = o.IsClusterMode || len(o.Addrs) > 1 && o.MasterName == ""
	switch {
	case o.IsClusterMode && (o.MasterName != "" || o.DB != 0):
		return errBoth
	case o.MasterName == "" && (o.SentinelUsername != "" || o.SentinelPassword != ""):
		return errSentinel
	}
	return nil
}

// parameter adds one parameter of the query.
func parameter(o *redis.UniversalOptions, name string, values []string) (err error) {
	switch name {
	case "addr":
		for _, v := range values {
			if host, port, err := net.SplitHostPort(v); err != nil || host == "" || port == "" {
				return errAddr
			}
			o.Addrs = append(o.Addrs, v)
		}
	case "master_name":
		o.MasterName = values[0]
	case "cluster":
		if o.IsClusterMode, err = strconv.ParseBool(values[0]); err != nil {
			return errCluster
		}
	default:
		return fmt.Errorf("%q is no parameter: there are cluster, master_name and addr", name)
	}
	return nil
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// overTLS adds TLS to the connections of dial. Nodes of a Cluster and masters behind Sentinels often announce an IP address, which
// certificates rarely contain. In this case the certificate must be valid for the URL's host.
func overTLS(client *tlsx.Client, host string, dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		cfg := client.Config()
		if cfg.ServerName, _, err = net.SplitHostPort(address); err != nil {
			_ = conn.Close()
			return nil, err
		}
		if net.ParseIP(cfg.ServerName) != nil && net.ParseIP(host) == nil {
			cfg.ServerName = host
		}
		secure := tls.Client(conn, cfg)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("TLS with %s: %w", address, err)
		}
		return secure, nil
	}
}
