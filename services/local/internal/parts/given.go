package parts

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/redisx"
)

// givenLimit is the time limit for the first response of a given part.
const givenLimit = 10 * time.Second

// CheckPostgres returns an error on one line if a given DATABASE_URL is not usable.
func CheckPostgres(ctx context.Context, address string) error {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return errors.New("DATABASE_URL must be a postgres:// URL") // the original error can contain a password
	}
	ctx, cancel := context.WithTimeout(ctx, givenLimit)
	defer cancel()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return fmt.Errorf("DATABASE_URL: no connection to %s: %w", u.Host, innermost(err))
	}
	defer func() { _ = conn.Close(ctx) }()
	var version int
	var allowed bool
	err = conn.QueryRow(ctx, `select current_setting('server_version_num')::int, rolsuper or rolcreaterole and rolcreatedb from pg_roles where rolname = current_user`).
		Scan(&version, &allowed)
	switch {
	case err != nil:
		return fmt.Errorf("DATABASE_URL: %w", err)
	case version/10000 < postgresMajor:
		return fmt.Errorf("DATABASE_URL: PostgreSQL %d is too old: use %d or later", version/10000, postgresMajor)
	case !allowed:
		return errors.New("DATABASE_URL must be of a role with CREATEROLE and CREATEDB, because it creates databases and roles")
	}
	return nil
}

// CheckRedis returns an error on one line if a given REDIS_URL is not usable. It can name a server, Sentinels or the nodes of a Cluster,
// with the settings of redisx.Access in the environment.
func CheckRedis(ctx context.Context, address string) error {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "redis" && u.Scheme != "rediss") {
		return errors.New("REDIS_URL must be a redis:// or rediss:// URL") // the original error can contain a password
	}
	access, err := env.ParseAs[redisx.Access]()
	if err != nil {
		return fmt.Errorf("REDIS_URL: %w", err)
	}
	client, err := redisx.Open(address, redisx.Options{Access: access, Timeout: givenLimit})
	if err != nil {
		return fmt.Errorf("REDIS_URL: %w", err) // without the password
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(ctx, givenLimit)
	defer cancel()
	if err := client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("REDIS_URL: no response from %s: %w", u.Host, innermost(err))
	}
	return nil
}

// CheckKafka returns an error on one line if the given KAFKA_BROKERS are not usable. One broker that responds is enough.
func CheckKafka(ctx context.Context, brokers string) error {
	ctx, cancel := context.WithTimeout(ctx, givenLimit)
	defer cancel()
	var err error
	for _, broker := range strings.Split(brokers, ",") {
		if _, err = kafkaBrokers(ctx, broker); err == nil {
			return nil
		}
	}
	return fmt.Errorf("KAFKA_BROKERS: no response from %s: %w", brokers, innermost(err))
}

// innermost returns only the cause, on one line. Drivers wrap it in lines that repeat the address with the user.
func innermost(err error) error {
	for {
		several, ok := err.(interface{ Unwrap() []error })
		inner := errors.Unwrap(err)
		switch {
		case ok && len(several.Unwrap()) > 0:
			err = several.Unwrap()[0] // the error of one address is enough
		case inner != nil:
			err = inner
		default:
			return err
		}
	}
}
