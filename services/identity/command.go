package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/redisx"
	"holdfast.dev/proto"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// tool is one running command: the app, the actor, and the format of its output.
type tool struct {
	*app.App
	by   domain.Origin
	conf toolConfig
	cmd  *cobra.Command
	json bool
}

// command opens the app, runs the command and returns its error as text.
func command(run func(t tool, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		identity, conf, closeAll, err := openTools(cmd.Context())
		if err != nil {
			return err
		}
		defer closeAll()
		asJSON, _ := cmd.Flags().GetBool("json") // false if the command has no such flag
		return readableError(run(tool{identity, origin(), conf, cmd, asJSON}, args))
	}
}

// openTools builds the use cases for one command. c holds the settings, and closeAll closes the connections.
func openTools(ctx context.Context) (identity *app.App, c toolConfig, closeAll func(), err error) {
	c, err = loadTools()
	if err != nil {
		return nil, c, nil, err
	}
	if c.RedisURL == "" {
		return nil, c, nil, errors.New("REDIS_URL is not set, and no .run/env contains it")
	}
	redis, err := redisx.Open(c.RedisURL, redisx.Options{Timeout: time.Second, PoolSize: 2, Access: c.Redis})
	if err != nil {
		return nil, c, nil, err
	}
	db, err := pg.Open(ctx, c.DatabaseURL, pg.Options{MaxConns: 2, Background: true, Pooler: c.Pooler})
	if err != nil {
		_ = redis.Close()
		return nil, c, nil, err
	}
	worker, err := pg.Open(ctx, c.WorkerDatabaseURL, pg.Options{MaxConns: 2, Background: true, Pooler: c.Pooler})
	if err != nil {
		_ = redis.Close()
		db.Close()
		return nil, c, nil, err
	}
	identity = &app.App{
		DB: db, Worker: worker, Redis: store.Redis{Client: redis}, Scopes: proto.Scopes,
		Now: time.Now, Log: slog.New(slog.DiscardHandler), // the command prints the error itself
		ClosingPeriod: c.ClosingPeriod,
	}
	return identity, c, func() { worker.Close(); db.Close(); _ = redis.Close() }, nil
}

// origin is the actor of a command in the audit log: this user on this machine.
func origin() domain.Origin {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return domain.Origin{Actor: "cli", Source: "cli:" + name + "@" + host}
}

// withJSON adds the --json flag.
func withJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().Bool("json", false, "print JSON")
	return cmd
}

// readableError converts a public error into one readable line. It names the fields by their flags.
func readableError(err error) error {
	var e *apperr.Error
	if !errors.As(err, &e) {
		return err
	}
	if len(e.Fields) == 0 {
		return errors.New(e.Message)
	}
	lines := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		if name, ok := strings.CutPrefix(f.Field, "caps."); ok {
			lines[i] = "--cap " + name + ": " + f.Message
			continue
		}
		lines[i] = "--" + strings.ReplaceAll(f.Field, "_", "-") + ": " + f.Message
	}
	return errors.New(strings.Join(lines, "\n"))
}

// print writes v as JSON, or the rows as a table.
func (t tool) print(v any, rows ...[]string) error {
	out := t.cmd.OutOrStdout()
	if t.json {
		body, err := contract.Encode(v)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(out, string(body))
		return err
	}
	return table(out, rows)
}

func table(out io.Writer, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// late prints on stderr that the gateways have not received the change yet.
func (t tool) late(published bool) {
	if !published {
		fmt.Fprintln(t.cmd.ErrOrStderr(), "Redis is unavailable. The change is saved, and identity publishes it to the gateways when Redis is available again.")
	}
}
