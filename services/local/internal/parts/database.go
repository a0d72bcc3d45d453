package parts

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Roles are the roles of each database: owner runs migrations and bypasses row-level security, app serves requests under row-level
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
	return run(ctx, own,
		"create extension if not exists btree_gist",
		"create extension if not exists pgcrypto",
		"alter schema public owner to "+quote(d.Role("owner")))
}

func (d Database) roles(ctx context.Context, conn *pgx.Conn) error {
	for _, role := range Roles {
		name, attributes := d.Role(role), "login nobypassrls"
		if role == "owner" {
			attributes = "login bypassrls"
		}
		var exists bool
		if err := conn.QueryRow(ctx, "select exists (select from pg_roles where rolname = $1)", name).Scan(&exists); err != nil {
			return err
		}
		verb := "create"
		if exists {
			verb = "alter"
		}
		err := run(ctx, conn, fmt.Sprintf("%s role %s with %s password %s", verb, quote(name), attributes, literal(d.Passwords[role])))
		if err != nil {
			return fmt.Errorf("role %s (DATABASE_URL must be of a superuser): %w", name, err)
		}
	}
	// oldest_write() of libs/pg lets the owner see when transactions of the other roles began.
	return run(ctx, conn, fmt.Sprintf("grant %s, %s to %s", quote(d.Role("app")), quote(d.Role("worker")), quote(d.Role("owner"))))
}

func (d Database) create(ctx context.Context, conn *pgx.Conn) error {
	var exists bool
	if err := conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", d.Name).Scan(&exists); err != nil {
		return err
	}
	if !exists {
		if err := run(ctx, conn, "create database "+quote(d.Name)+" owner "+quote(d.Role("owner"))); err != nil {
			return err
		}
	}
	return run(ctx, conn,
		"revoke all on database "+quote(d.Name)+" from public",
		fmt.Sprintf("grant connect on database %s to %s, %s", quote(d.Name), quote(d.Role("app")), quote(d.Role("worker"))))
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
