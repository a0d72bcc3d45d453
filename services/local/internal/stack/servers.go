package stack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"holdfast.dev/services/local/internal/parts"
	"holdfast.dev/services/local/internal/state"
	"holdfast.dev/services/local/internal/supervise"
	"holdfast.dev/services/local/internal/terminal"
)

// Servers are one set of PostgreSQL, Redis, and Kafka, with their addresses once they run.
type Servers struct {
	screen    *terminal.Console
	state     *state.State
	group     *supervise.Group
	ports     parts.Ports
	data      string // folder of the parts' data
	mark      string // identifies our processes
	sockets   string // folder of PostgreSQL's Unix socket; empty: none
	throwaway bool
	fullJIT   bool // of Kafka's JVM

	postgresURL string   // of the administrator
	poolerPort  int      // of the pooler in front of PostgreSQL; 0 without one
	redisURL    string   //
	brokers     []string // comma-separated lists, in the order of serversConfig.kafka
	standIn     string   // why the broker is not Apache Kafka; empty if it is, or if it was given
}

// startServers starts the parts that are not given, in parallel, and returns when each of them responds.
func (s *Servers) startServers(ctx context.Context, w serversConfig) error {
	s.postgresURL, s.redisURL = w.postgresURL, w.redisURL
	if w.brokers != "" {
		s.brokers, w.kafka = []string{w.brokers}, nil
	}
	bin, redis, err := parts.Find(ctx, w.postgresURL == "" && !w.newest, w.redisURL == "", s.screen.Say)
	if err == nil && w.newest {
		bin, err = parts.NewestPostgres(ctx, s.screen.Say)
	}
	if err != nil {
		return err
	}
	var pooler string
	if w.pooler > 0 {
		if pooler, err = parts.FindPooler(ctx); err != nil {
			return err
		}
	}
	host, err := s.host()
	if err != nil {
		return err
	}
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error {
		if w.postgresURL == "" {
			if err := s.startPostgres(ctx, host, bin); err != nil {
				return err
			}
		}
		if pooler == "" {
			return nil
		}
		return s.startPooler(ctx, host, pooler, w.pooler)
	})
	if w.redisURL == "" {
		all.Go(func() error { return s.startRedis(ctx, host, redis) })
	}
	if len(w.kafka) > 0 {
		s.brokers = make([]string, len(w.kafka))
	}
	for i, kind := range w.kafka {
		all.Go(func() error { return s.startKafka(ctx, host, i, kind) })
	}
	return all.Wait()
}

func (s *Servers) host() (*parts.Host, error) {
	user, err := parts.ServerUser()
	if err != nil {
		return nil, err
	}
	host := &parts.Host{Dir: s.data, User: user, Group: s.group, Log: s.screen.PartLog, Say: s.screen.Say, Mark: s.mark}
	return host, host.Prepare()
}

func (s *Servers) startPostgres(ctx context.Context, host *parts.Host, bin string) error {
	port, err := s.port("postgres")
	if err != nil {
		return err
	}
	p := parts.Postgres{Bin: bin, Port: port, Password: s.state.Secret("postgres"), Sockets: s.sockets, Throwaway: s.throwaway}
	if err := s.state.Save(); err != nil { // saved before the cluster is created, so that a killed start does not lose its password
		return err
	}
	if err := host.StartPostgres(ctx, p); err != nil {
		return s.explain("postgres", err)
	}
	s.postgresURL = p.URL()
	s.screen.Say("PostgreSQL on %s", parts.Loopback(port))
	return nil
}

func (s *Servers) startPooler(ctx context.Context, host *parts.Host, path string, conns int) (err error) {
	if s.poolerPort, err = s.port("pgbouncer"); err != nil {
		return err
	}
	if err := host.StartPooler(ctx, parts.Pooler{Path: path, Port: s.poolerPort, Server: s.postgresURL, Sockets: s.sockets, Conns: conns}); err != nil {
		return s.explain("pgbouncer", err)
	}
	s.screen.Say("PgBouncer on %s", parts.Loopback(s.poolerPort))
	return nil
}

func (s *Servers) startRedis(ctx context.Context, host *parts.Host, path string) error {
	port, err := s.port("redis")
	if err != nil {
		return err
	}
	r := parts.Redis{Path: path, Port: port, Password: s.state.Secret("redis"), Throwaway: s.throwaway}
	if err := host.StartRedis(ctx, r); err != nil {
		return s.explain("redis", err)
	}
	s.redisURL = r.URL()
	s.screen.Say("Redis on %s", parts.Loopback(port))
	return nil
}

func (s *Servers) startKafka(ctx context.Context, host *parts.Host, index int, kind string) error {
	k, reason, err := parts.SelectKafka(ctx, kind, s.screen.Say)
	if err != nil {
		return err
	}
	k.FullJIT = s.fullJIT
	// One folder per kind, because the two brokers cannot read each other's files.
	k.Name = "kafka"
	if k.Kind == parts.Embedded {
		k.Name = "kafka-embedded"
		if index > 0 {
			k.Name = fmt.Sprintf("kafka-embedded-%d", index)
		}
	}
	if k.Port, err = s.port(k.Name); err != nil {
		return err
	}
	if k.Controller, err = s.port(k.Name + ".controller"); err != nil {
		return err
	}
	if k.Embedded, err = sibling("local-kafka"); err != nil {
		return err
	}
	if err := host.StartKafka(ctx, k); err != nil {
		return s.explain(k.Name, err)
	}
	s.brokers[index] = parts.Loopback(k.Port)
	if k.Kind == parts.Apache {
		s.screen.Say("Apache Kafka on %s", s.brokers[index])
		return nil
	}
	if index == 0 {
		s.standIn = reason
	}
	s.screen.Say("embedded Kafka-protocol broker on %s (%s): a development default, not Apache Kafka", s.brokers[index], reason)
	return nil
}

// port returns the port that the process had at the last start, or a free port.
func (s *Servers) port(name string) (int, error) {
	err := s.takePort(name, 0)
	return s.state.Port(name), err
}

// takePort assigns the process its last port, or the usual one, or any free port.
func (s *Servers) takePort(name string, usual int) error {
	preferred := s.state.Port(name)
	if preferred == 0 {
		preferred = usual
	}
	port, err := s.ports.Free(preferred)
	if err != nil {
		return err
	}
	if usual != 0 && port != preferred {
		s.screen.Say("port %d is taken: %s is on %d", preferred, name, port)
	}
	s.state.SetPort(name, port)
	return nil
}

// explain adds the end of the part's log to an error.
func (s *Servers) explain(name string, err error) error {
	if tail := s.screen.Tail(name, 5); tail != "" {
		return fmt.Errorf("%w\n%s", err, tail)
	}
	return err
}

// sibling returns the path of an executable in the same folder as this one.
func sibling(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(self), name), nil
}
