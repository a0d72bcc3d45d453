package pg

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Database names a service's database and its roles. Its statements are for an administrator as managed servers offer it: a role with
// CREATEROLE and CREATEDB that is no superuser. They are safe to repeat, and the administrator becomes a member of the owner.
type Database struct {
	Name               string
	Owner, App, Worker string
}

// DatabaseOf returns the database with the usual names of its roles.
func DatabaseOf(name string) Database {
	return Database{Name: name, Owner: name + "_owner", App: name + "_app", Worker: name + "_worker"}
}

// RoleStatements create the roles that are missing, without passwords, and their memberships. oldest_write lets the owner see when
// transactions of the other roles began, so it is a member of them.
func (d Database) RoleStatements() []string {
	var all []string
	for _, role := range []string{d.Owner, d.App, d.Worker} {
		all = append(all, fmt.Sprintf("do $$ begin if not exists (select from pg_roles where rolname = %s) then create role %s login; end if; end $$",
			literal(role), name(role)))
	}
	return append(all,
		fmt.Sprintf("grant %s, %s to %s", name(d.App), name(d.Worker), name(d.Owner)),
		fmt.Sprintf("grant %s to current_user", name(d.Owner)))
}

// Exists is a query for whether the database exists, because create database cannot be part of another statement.
func (d Database) Exists() string {
	return fmt.Sprintf("select from pg_database where datname = %s", literal(d.Name))
}

// Create creates the database.
func (d Database) Create() string {
	return fmt.Sprintf("create database %s owner %s", name(d.Name), name(d.Owner))
}

// GrantStatements let only the roles connect to the database.
func (d Database) GrantStatements() []string {
	return []string{
		fmt.Sprintf("revoke all on database %s from public", name(d.Name)),
		fmt.Sprintf("grant connect on database %s to %s, %s", name(d.Name), name(d.App), name(d.Worker)),
	}
}

// InsideStatements complete the database in a connection to it. btree_gist is a trusted extension, so that the owner of the database can
// create it.
func (d Database) InsideStatements() []string {
	return []string{
		fmt.Sprintf("alter schema public owner to %s", name(d.Owner)),
		fmt.Sprintf("set role %s", name(d.Owner)),
		"create extension if not exists btree_gist",
		"reset role",
	}
}

// Script returns all statements for psql, connected to any database as the administrator.
func (d Database) Script() string {
	var b strings.Builder
	for _, sql := range d.RoleStatements() {
		fmt.Fprintf(&b, "%s;\n", sql)
	}
	fmt.Fprintf(&b, "select %s where not exists (%s) \\gexec\n", literal(d.Create()), d.Exists())
	for _, sql := range d.GrantStatements() {
		fmt.Fprintf(&b, "%s;\n", sql)
	}
	fmt.Fprintf(&b, "\\connect %s\n", name(d.Name))
	for _, sql := range d.InsideStatements() {
		fmt.Fprintf(&b, "%s;\n", sql)
	}
	return b.String()
}

func name(identifier string) string { return pgx.Identifier{identifier}.Sanitize() }

func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
