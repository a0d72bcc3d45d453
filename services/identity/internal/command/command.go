// Package command contains the commands of identity in addition to serve. Those that manage data run the use cases of package app
// directly on the database, so they need no running service and no credential.
package command

import (
	"context"
	"errors"
	"fmt"
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

// service is the name of this service.
const service = "identity"

// All returns the commands that only identity has.
func All() []*cobra.Command {
	return []*cobra.Command{
		rolesCommand(), keysCommand(), tenantCommand(), keyCommand(), platformKeyCommand(), usageCommand(), operatorCommand(), appCommand(), grantCommand(), auditCommand(),
	}
}

// spec describes a command on the database.
type spec struct {
	use, short, long string // each word of use after the first one is an argument
	flags            []flag
	silent           bool // it prints nothing, so it has no flag --json
	run              func(ctx context.Context, t tool) error
}

// flag is a flag that sets a variable: a *string, *bool, *int, *time.Duration or *[]string.
type flag struct {
	to          any
	name, usage string
	required    bool
}

const required, optional = true, false

// tenantFlag is the flag of a command that acts on a tenant, which tool then contains. usage is "" for the usual text.
func tenantFlag(usage string) flag {
	if usage == "" {
		usage = "slug or id of the tenant"
	}
	return flag{new(string), "tenant", usage, required}
}

// tool is one running command.
type tool struct {
	*app.App
	by     domain.Origin // the actor
	conf   Settings
	cmd    *cobra.Command
	args   []string
	tenant domain.Tenant // of the required flag --tenant or of the argument TENANT
	json   bool
}

// command returns the command that a spec describes.
func command(s spec) *cobra.Command {
	_, arguments, _ := strings.Cut(s.use, " ")
	cmd := &cobra.Command{Use: s.use, Short: s.short, Long: s.long, Args: cobra.NoArgs}
	if arguments != "" {
		cmd.Args = cobra.ExactArgs(len(strings.Fields(arguments)))
	}
	var asJSON bool
	flags := s.flags
	if !s.silent {
		flags = append(flags, flag{&asJSON, "json", "print JSON", optional})
	}
	var ref func(args []string) string // of the tenant; nil: the command has none
	if arguments == "TENANT" {
		ref = func(args []string) string { return args[0] }
	}
	for _, f := range flags {
		f.add(cmd)
		if text, ok := f.to.(*string); ok && f.name == "tenant" && f.required {
			ref = func([]string) string { return *text }
		}
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		identity, conf, closeAll, err := open(cmd.Context())
		if err != nil {
			return err
		}
		defer closeAll()
		t := tool{App: identity, by: origin(), conf: conf, cmd: cmd, args: args, json: asJSON}
		if ref != nil {
			t.tenant, err = t.Tenant(cmd.Context(), ref(args))
		}
		if err == nil {
			err = s.run(cmd.Context(), t)
		}
		return readableError(err)
	}
	return cmd
}

func (f flag) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	switch to := f.to.(type) {
	case *string:
		flags.StringVar(to, f.name, *to, f.usage)
	case *bool:
		flags.BoolVar(to, f.name, *to, f.usage)
	case *int:
		flags.IntVar(to, f.name, *to, f.usage)
	case *time.Duration:
		flags.DurationVar(to, f.name, *to, f.usage)
	case *[]string:
		flags.StringArrayVar(to, f.name, *to, f.usage)
	}
	if f.required {
		_ = cmd.MarkFlagRequired(f.name) // fails only for a flag that does not exist
	}
}

// withID returns a function that runs a command with the ID that is its argument.
func withID[ID any](parse func(string) (ID, error), run func(ctx context.Context, t tool, id ID) error) func(context.Context, tool) error {
	return func(ctx context.Context, t tool) error {
		id, err := parse(t.args[0])
		if err != nil {
			return err
		}
		return run(ctx, t, id)
	}
}

// group returns a command that has only commands.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short}
	cmd.AddCommand(commands...)
	return cmd
}

// open builds the use cases for one command. c contains the settings, and closeAll closes the connections.
func open(ctx context.Context) (identity *app.App, c Settings, closeAll func(), err error) {
	c, err = load()
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

// table says how objects of a type are printed: as a V with --json, otherwise as rows.
type table[T, V any] struct {
	view   func(T) V
	head   []string
	row    func(T, V) []string
	single func(T, V) [][]string // of an object alone; nil: head and row
}

// list returns a function that prints the result of a read.
func (f table[T, V]) list(t tool) func(all []T, err error) error {
	return func(all []T, err error) error {
		if err != nil {
			return err
		}
		out, rows := make([]V, 0, len(all)), [][]string{f.head}
		for _, one := range all {
			v := f.view(one)
			out, rows = append(out, v), append(rows, f.row(one, v))
		}
		return t.print(out, rows...)
	}
}

// one returns a function that prints an object.
func (f table[T, V]) one(t tool) func(one T, err error) error {
	return func(one T, err error) error {
		if err != nil {
			return err
		}
		v := f.view(one)
		if f.single != nil {
			return t.print(v, f.single(one, v)...)
		}
		return t.print(v, f.head, f.row(one, v))
	}
}

// changed returns a function that prints a changed object, and whether the gateways have received the change.
func (f table[T, V]) changed(t tool) func(one T, published bool, err error) error {
	return func(one T, published bool, err error) error { return f.one(t)(one, t.late(published, err)) }
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
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// printSecret prints the object of a new credential with its secret.
func (t tool) printSecret(object any, id, secret string) error {
	return t.print(object, []string{"id", id}, []string{"secret", secret}, []string{"", "The secret is shown only now."})
}

// late returns err. Without an error, it prints on stderr if the gateways have not received the change yet.
func (t tool) late(published bool, err error) error {
	if err == nil && !published {
		fmt.Fprintln(t.cmd.ErrOrStderr(), "Redis is unavailable. The change is saved, and identity publishes it to the gateways when Redis is available again.")
	}
	return err
}

// timeText is a time in the output, or none for nil.
func timeText(at *time.Time, none string) string {
	if at == nil {
		return none
	}
	return at.UTC().Format(time.RFC3339)
}
