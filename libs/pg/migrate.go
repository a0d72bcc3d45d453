package pg

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var common embed.FS

// Common returns the migrations that every service's database needs.
func Common() fs.FS {
	sub, err := fs.Sub(common, "migrations")
	if err != nil {
		panic(err) // cannot fail: the folder is embedded above
	}
	return sub
}

// Roles are the two roles that migrations grant rights to; in SQL they are ${APP_ROLE} and ${WORKER_ROLE}.
type Roles struct {
	App    string `env:"APP_ROLE,required,notEmpty"`    // role of the serving process: <db>_app
	Worker string `env:"WORKER_ROLE,required,notEmpty"` // role of background work: <db>_worker
}

// MigrateSettings are the settings of a service's migrate command.
type MigrateSettings struct {
	URL   string `env:"MIGRATE_DATABASE_URL,required,notEmpty" secret:"url"` // URL of the database in the role <db>_owner
	Roles Roles
}

// Migrate migrates a database to the newest schema: first the tables that every service has (outbox, inbox, idempotency keys), then
// the service's own, nil for none. A session lock lets only one process migrate at a time. A migration waits only briefly for a
// lock and then tries again, so that no request waits behind it. It fails if it would skip a minor version, or if the owner does not see all
// rows afterwards.
func Migrate(ctx context.Context, url string, service fs.FS, roles Roles) error {
	for key, value := range map[string]string{"APP_ROLE": roles.App, "WORKER_ROLE": roles.Worker} {
		if value == "" {
			return fmt.Errorf("migrate: %s is not set", key)
		}
		if err := os.Setenv(key, value); err != nil { // goose replaces ${…} from the environment
			return fmt.Errorf("migrate: %w", err)
		}
	}
	cfg, err := ownerConfig(url)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	db := stdlib.OpenDB(*cfg)
	defer func() { _ = db.Close() }()
	if err := reach(ctx, db); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if err := checkVersion(ctx, db); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if err := up(ctx, db, "schema_common", Common()); err != nil {
		return err
	}
	if service != nil {
		if err := up(ctx, db, "schema_service", service); err != nil {
			return err
		}
	}
	if err := Alter(ctx, url, lockLimit, openToOwner); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if err := recordVersion(ctx, db); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// reachLimit is how long a migration waits for its server, because a pod may run seconds before its network is ready.
const reachLimit = 30 * time.Second

// reach returns when the server responds. It returns immediately if the server refuses, and after reachLimit if there is no
// response.
func reach(ctx context.Context, db *sql.DB) error {
	for limit := time.Now().Add(reachLimit); ; {
		err := db.PingContext(ctx)
		if err == nil || !unreachable(err) || time.Now().After(limit) {
			return err
		}
		slog.WarnContext(ctx, "database unreachable; trying again", slog.Any("error", err))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func up(ctx context.Context, db *sql.DB, table string, files fs.FS) error {
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(locker), goose.WithTableName(table), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	err = retryLocked(ctx, lockLimit, func() error {
		_, err := p.Up(ctx) // continues after the completed migrations
		return err
	})
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}
