// Package platform builds the parts of every service with a database and Kafka: settings, connections, the relay of its events,
// stored responses, consumers, the HTTP server, sweepers, and the commands in addition to serve. proto/services.yaml specifies the
// name of each service and the topics that it writes and reads.
//
//	func wire(ctx context.Context, rt *service.Runtime, cfg Config) error {
//		p, err := platform.Open(ctx, rt, cfg.Platform, platform.Spec{CursorKeys: cfg.CursorKeys})
//		if err != nil {
//			return err
//		}
//		…                       // the service's own objects and workers
//		p.Consume(handle)       // if the service reads topics
//		return p.Serve(handlers.Mount)
//	}
package platform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/erasure"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/inbox"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/secret"
	"holdfast.dev/libs/service"
	"holdfast.dev/proto"
)

// Config contains the settings of every service with a database and Kafka, in addition to service.Common.
type Config struct {
	DatabaseURL            secret.Setting  `env:"DATABASE_URL,required,notEmpty" secret:"url"`        // URL of the database in the role <db>_app, under row-level security
	WorkerDatabaseURL      secret.Setting  `env:"WORKER_DATABASE_URL,required,notEmpty" secret:"url"` // URL of the database in the role <db>_worker, for the outbox relay, sweepers and other background work
	DatabaseMaxConns       int32           `env:"DATABASE_MAX_CONNS" envDefault:"16"`                 // maximum number of connections of the app role
	WorkerDatabaseMaxConns int32           `env:"WORKER_DATABASE_MAX_CONNS" envDefault:"4"`           // maximum number of connections of the worker role
	Pooler                 bool            `env:"DATABASE_POOLER" envDefault:"false"`                 // true: DATABASE_URL and WORKER_DATABASE_URL are addresses of a pooler in transaction mode, such as PgBouncer 1.21 or later
	Kafka                  kafkax.Settings // brokers, and how to connect to them
	VerifyKeys             secret.Setting  `env:"CALLER_VERIFY_KEYS,required" secret:"true"` // keys of the services that may call this one: <caller>=<kid>:<hex>[;…],…
}

// Spec contains what differs between services.
type Spec struct {
	CursorKeys    secret.Setting // the setting CURSOR_KEYS; not set for a service without lists
	Box           *crypt.Box     // seals stored responses that contain a secret; nil for a service without such responses
	WorkerByIndex bool           // pg.Options.ByIndex of the worker role's connections
}

// Platform contains the parts that a service uses for its own objects.
type Platform struct {
	Contract    *contract.Contract
	DB          *pg.DB          // the app role
	Worker      *pg.DB          // the worker role
	Relay       *outbox.Relay   // call Wake after each commit of an event
	Eraser      *erasure.Eraser // set Prepare before Serve if something must end before a tenant is erased
	Marks       *erasure.Marks
	Idempotency *idemstore.Store
	Pages       *page.Codec // nil without Spec.CursorKeys
	Server      *httpx.Server

	rt      *service.Runtime
	service proto.Service
	cluster kafkax.Cluster
	topics  []kafkax.Topic
	writer  *kafkax.Writer

	consumes bool // Consume was called
}

const sweepEvery = time.Minute

// Open builds the parts of the service rt.Name and registers them with rt: connections, relay and sweepers. It checks all settings
// before the first connection. A service registers its own parts after Open, so its parts stop first.
func Open(ctx context.Context, rt *service.Runtime, cfg Config, spec Spec) (*Platform, error) {
	p := &Platform{rt: rt}
	var err error
	if p.service, err = entry(rt.Name); err != nil {
		return nil, err
	}
	if err := p.read(cfg, spec); err != nil {
		return nil, err
	}
	if err := p.connect(ctx, cfg, spec); err != nil {
		return nil, err
	}
	p.Idempotency = &idemstore.Store{DB: p.DB, Box: spec.Box, Now: time.Now}
	p.Server.Idempotency = p.Idempotency
	p.Eraser, p.Marks = &erasure.Eraser{Worker: p.Worker}, &erasure.Marks{Worker: p.Worker}
	p.background() //nolint:contextcheck // workers end at the stop, not with the start's context
	return p, nil
}

// read checks the settings and the contract, without a connection.
func (p *Platform) read(cfg Config, spec Spec) error {
	keys, err := caller.FollowKeys(cfg.VerifyKeys)
	if err != nil {
		return fmt.Errorf("CALLER_VERIFY_KEYS: %w", err)
	}
	if spec.CursorKeys.Get() != "" {
		if p.Pages, err = page.FollowKeys(spec.CursorKeys); err != nil {
			return fmt.Errorf("CURSOR_KEYS: %w", err)
		}
	}
	if p.cluster, err = cfg.Kafka.Cluster(); err != nil {
		return err
	}
	if p.Contract, err = contract.Public(); err != nil {
		return err
	}
	name := p.service.Name
	p.topics = topics(p.service, cfg.Kafka.Partitions)
	p.Server = &httpx.Server{Service: name, Contract: p.Contract, Verifier: &caller.Verifier{Self: name, Keys: keys}}
	return nil
}

// connect opens the database in both roles.
func (p *Platform) connect(ctx context.Context, cfg Config, spec Spec) (err error) {
	p.DB, err = pg.OpenManaged(ctx, p.rt, "postgres", cfg.DatabaseURL, pg.Options{
		MaxConns: cfg.DatabaseMaxConns, Pooler: cfg.Pooler,
	})
	if err != nil {
		return err
	}
	p.Worker, err = pg.OpenManaged(ctx, p.rt, "postgres worker", cfg.WorkerDatabaseURL, pg.Options{
		MaxConns: cfg.WorkerDatabaseMaxConns, ByIndex: spec.WorkerByIndex, Background: true, Pooler: cfg.Pooler,
	})
	return err
}

// background registers the relay of events and the sweepers of the tables that every database has.
func (p *Platform) background() {
	p.writer = kafkax.NewWriter(p.cluster, p.topics...)
	p.rt.OnStop("kafka", func(context.Context) error { return p.writer.Close() })
	p.Relay = outbox.NewRelay(p.Worker, p.writer, p.rt.Log, p.rt.Metrics)
	p.Relay.BatchBytes = p.rt.Common.BatchBytes
	p.rt.Go("relay", p.withTopics(p.Relay.Run))
	p.rt.Every("idempotency sweeper", sweepEvery, func(ctx context.Context) error { return idemstore.Sweep(ctx, p.Worker) })
	p.rt.Every("erasure sweeper", sweepEvery, p.Eraser.Sweep)
	p.rt.Every("inbox sweeper", sweepEvery, func(ctx context.Context) error { return inbox.Sweep(ctx, p.Worker) })
}

// withTopics returns a worker that first creates the topics. If they belong to another installation, the process ends. Without this
// check, each of the two would handle a part of the other's events.
func (p *Platform) withTopics(work func(context.Context) error) func(context.Context) error {
	work = kafkax.WithTopics(p.cluster, p.topics, work)
	return func(ctx context.Context) error {
		err := claimTopics(ctx, p.Worker, p.cluster, p.service.Name)
		if errors.Is(err, kafkax.ErrOtherInstallation) {
			p.rt.Fail(err)
			return nil
		}
		if err != nil {
			return err
		}
		return work(ctx)
	}
}

// claimTopics checks that the topics belong to the database of a service. A database of an older release has no ID and passes.
func claimTopics(ctx context.Context, db *pg.DB, c kafkax.Cluster, name string) error {
	id, err := pg.Installation(ctx, db.Read(ctx))
	if err != nil || id == "" {
		return err
	}
	return kafkax.ClaimTopics(ctx, c, name, id)
}

// Consume registers a worker that handles the messages of the topics that the service reads, in the group with the
// service's name. The service may set HandleBatch of the consumer before the start.
func (p *Platform) Consume(handle kafkax.Handler) *kafkax.Consumer {
	consumer := &kafkax.Consumer{
		Cluster: p.cluster, Group: p.service.Name, Topics: p.service.Reads, Handle: handle, Filter: p.Marks.Filter,
		BatchBytes: p.rt.Common.BatchBytes, DeadLetter: p.writer, Log: p.rt.Log, Metrics: p.rt.Metrics,
	}
	p.consumes = true
	p.rt.Go("consumer", p.withTopics(consumer.Run))
	return consumer
}

// CaughtUp reports whether the consumer has handled all messages that its topics have now. It waits for at most maxWait.
func (p *Platform) CaughtUp(ctx context.Context, maxWait time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	return kafkax.CaughtUp(ctx, p.cluster, p.service.Reads, p.service.Name)
}

// Serve registers the HTTP server with the operations that mount adds. It fails if proto/services.yaml and the calls of Consume are
// inconsistent.
func (p *Platform) Serve(mount func(e *gin.Engine) error) error {
	if err := p.checkReads(); err != nil {
		return err
	}
	engine := httpx.NewEngine(p.rt.Common.PublicURL)
	if err := errors.Join(p.Eraser.Mount(p.Server, engine), mount(engine)); err != nil {
		return err
	}
	p.rt.HTTP(p.rt.Common.HTTPAddr, engine)
	return nil
}

// checkReads returns an error if a service reads topics without calling Consume, or calls Consume without reading topics.
func (p *Platform) checkReads() error {
	switch reads := p.service.Reads; {
	case len(reads) > 0 && !p.consumes:
		return fmt.Errorf("%s reads %v in proto/services.yaml: call Consume in wire.go", p.service.Name, reads)
	case len(reads) == 0 && p.consumes:
		return fmt.Errorf("%s calls Consume: add the topics to its reads in proto/services.yaml", p.service.Name)
	}
	return nil
}

// entry returns the service's entry in proto/services.yaml.
func entry(name string) (proto.Service, error) {
	list := proto.Services()
	i := slices.IndexFunc(list, func(s proto.Service) bool { return s.Name == name })
	if i < 0 {
		return proto.Service{}, fmt.Errorf("proto/services.yaml has no service %q: add it there", name)
	}
	return list[i], nil
}

// topics returns the topics that the service writes and reads, and its dead-letter topic if it reads any.
func topics(s proto.Service, partitions int) []kafkax.Topic {
	var out []kafkax.Topic
	for _, name := range slices.Concat(s.Topics, s.Reads) {
		out = append(out, kafkax.Topic{Name: name, Partitions: partitions})
	}
	if len(s.Reads) > 0 {
		out = append(out, kafkax.Topic{Name: kafkax.DeadLetterTopic(s.Name), Partitions: 1})
	}
	return out
}
