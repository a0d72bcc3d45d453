package parts

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"
)

// Roles are the roles of each database: owner runs migrations and sees all rows, app serves requests under row-level
// security, and worker runs the tasks that concern all tenants.
var Roles = []string{"owner", "app", "worker"}

// Database is one service's database with its three roles.
type Database struct {
	Name      string
	Passwords map[string]string // by role
}

// Role returns the full name of a role.
func (d Database) Role(role string) string { return d.Name + "_" + role }

// URL returns the administrator's URL with a role of the database and the database's name. Other settings stay.
func (d Database) URL(adminURL, role string) (string, error) {
	u, err := url.Parse(adminURL)
	if err != nil {
		return "", errors.New("the administrator's URL is not a valid URL")
	}
	u.User, u.Path = url.UserPassword(d.Role(role), d.Passwords[role]), "/"+d.Name
	return u.String(), nil
}

// EnsureDatabase creates the missing parts of the database, its roles and extensions, with the administrator's
// connection. It sets the passwords each time.
func EnsureDatabase(ctx context.Context, adminURL string, d Database) error {
	conn, err := pgx.Connect(ctx, adminURL)
	if err != nil {
		return fmt.Errorf("connecting as administrator: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if err := d.roles(ctx, conn); err != nil {
		return err
	}
	if err := d.create(ctx, conn); err != nil {
		return err
	}
	inside, err := url.Parse(adminURL)
	if err != nil {
		return fmt.Errorf("the administrator's URL: %w", err)
	}
	inside.Path = "/" + d.Name
	own, err := pgx.Connect(ctx, inside.String())
	if err != nil {
		return err
	}
	defer func() { _ = own.Close(ctx) }()
	return run(ctx, own, d.named().InsideStatements()...)
}

// named returns the names of the database and its roles.
func (d Database) named() pg.Database {
	return pg.Database{Name: d.Name, Owner: d.Role("owner"), App: d.Role("app"), Worker: d.Role("worker")}
}

func (d Database) roles(ctx context.Context, conn *pgx.Conn) error {
	if err := run(ctx, conn, d.named().RoleStatements()...); err != nil {
		return fmt.Errorf("roles of %s: %w", d.Name, err)
	}
	for _, role := range Roles {
		err := run(ctx, conn, fmt.Sprintf("alter role %s password %s", quote(d.Role(role)), literal(d.Passwords[role])))
		if err != nil {
			return fmt.Errorf("role %s: %w", d.Role(role), err)
		}
	}
	return nil
}

func (d Database) create(ctx context.Context, conn *pgx.Conn) error {
	found, err := conn.Exec(ctx, d.named().Exists())
	if err != nil {
		return err
	}
	if found.RowsAffected() == 0 {
		if err := run(ctx, conn, d.named().Create()); err != nil {
			return err
		}
	}
	return run(ctx, conn, d.named().GrantStatements()...)
}

// administrator is the role that creates the roles and databases of a server of our own.
const administrator = "holdfast_admin"

// Administrator returns the URL of an administrator of our own server who is no superuser, like that of a managed server. It creates the
// role if it is missing, and lets it manage the databases' roles that the superuser created earlier.
func Administrator(ctx context.Context, superURL, password string, databases []Database) (string, error) {
	u, err := url.Parse(superURL)
	if err != nil {
		return "", fmt.Errorf("the superuser's URL: %w", err)
	}
	conn, err := pgx.Connect(ctx, superURL)
	if err != nil {
		return "", fmt.Errorf("connecting as superuser: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	statements := []string{
		fmt.Sprintf("do $$ begin if not exists (select from pg_roles where rolname = '%[1]s') then create role %[1]s; end if; end $$", administrator),
		fmt.Sprintf("alter role %s login createrole createdb password %s", administrator, literal(password)),
	}
	for _, d := range databases {
		for _, role := range Roles {
			statements = append(statements, fmt.Sprintf("do $$ begin if exists (select from pg_roles where rolname = %s) then grant %s to %s with admin option; end if; end $$",
				literal(d.Role(role)), quote(d.Role(role)), administrator))
		}
	}
	if err := run(ctx, conn, statements...); err != nil {
		return "", fmt.Errorf("creating the administrator: %w", err)
	}
	u.User = url.UserPassword(administrator, password)
	return u.String(), nil
}

func run(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// literal quotes a string for statements that do not accept parameters, such as `create role`.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
