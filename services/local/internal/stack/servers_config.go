package stack

import (
	"context"

	"golang.org/x/sync/errgroup"

	"holdfast.dev/services/local/internal/parts"
)

// serversConfig specifies which servers to start, and which are given.
type serversConfig struct {
	postgresURL, redisURL, brokers string   // used if not empty
	kafka                          []string // kinds: auto, apache, embedded
	newest                         bool     // PostgreSQL of parts.NewestPostgres
	pooler                         int      // connections of a pooler to PostgreSQL, for each database and role; 0: no pooler
}

// check checks that the given servers respond.
func (w serversConfig) check(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, part := range []struct {
		given string
		check func(context.Context, string) error
	}{{w.postgresURL, parts.CheckPostgres}, {w.redisURL, parts.CheckRedis}, {w.brokers, parts.CheckKafka}} {
		if part.given != "" {
			all.Go(func() error { return part.check(ctx, part.given) })
		}
	}
	return all.Wait()
}
