package pg

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast.dev/libs/secret"
)

// loginLimit is how long the server may take to accept a new login.
const loginLimit = 5 * time.Second

// login is how a pool connects. The URL can change while the process runs.
type login struct {
	opt     Options
	current atomic.Pointer[pgx.ConnConfig]
}

// before sets the current address and login of a new connection.
func (l *login) before(_ context.Context, cfg *pgx.ConnConfig) error {
	*cfg = *l.current.Load().Copy()
	return nil
}

// follow switches the pool to each later URL that the server accepts. Connections in use stay open until they are released, so no
// request fails.
func (l *login) follow(url secret.Setting, pool *pgxpool.Pool) {
	url.Prepare(func(text string) (func(), error) {
		next, err := l.try(text)
		return func() {
			l.current.Store(next)
			pool.Reset()
		}, err
	})
}

// errURL does not contain the text, which contains a password.
var errURL = errors.New("not a valid database URL")

// try connects once.
func (l *login) try(text string) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(text)
	if err != nil {
		return nil, errURL
	}
	l.opt.connect(cfg.RuntimeParams)
	cfg.Tracer, cfg.DialFunc = l.opt.Tracer, dial
	ctx, cancel := context.WithTimeout(context.Background(), loginLimit)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, cfg.Copy())
	if err != nil {
		return nil, fmt.Errorf("connect with the new URL: %w", explain(err, l.opt))
	}
	defer conn.Close(ctx)
	return cfg, l.opt.prepare(ctx, conn)
}
