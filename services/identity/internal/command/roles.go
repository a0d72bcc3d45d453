package command

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/libs/pg"
	"holdfast.dev/proto"
)

// rolesHeader precedes the statements. It contains no password, so that none is in a file or in the log of the server.
const rolesHeader = `-- The databases and roles of Holdfast. Run this with psql as an administrator, on any database of the server:
--   identity roles --print | psql "$ADMINISTRATOR_URL" --set ON_ERROR_STOP=1
-- The administrator needs CREATEROLE and CREATEDB, as the administrators of managed servers have, and need not be a superuser.
-- It is safe to repeat. Then set the passwords with the SQL of identity keys passwords, or with \password.
`

func rolesCommand() *cobra.Command {
	var printed bool
	var prefix string
	cmd := &cobra.Command{
		Use: "roles", Short: "Print the SQL that creates the databases and roles of all services.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !printed {
				return errors.New("the command does not connect to a server: use --print and run the SQL with psql as an administrator")
			}
			return printRoles(cmd.OutOrStdout(), prefix)
		},
	}
	cmd.Flags().BoolVar(&printed, "print", false, "print the SQL for psql")
	cmd.Flags().StringVar(&prefix, "prefix", "holdfast_", "prefix of the names of databases and roles")
	return cmd
}

// printRoles writes the statements for the database of each service.
func printRoles(out io.Writer, prefix string) error {
	var b strings.Builder
	b.WriteString(rolesHeader)
	for _, s := range proto.Services() {
		if s.Database {
			fmt.Fprintf(&b, "\n-- %s\n%s", s.Name, pg.DatabaseOf(prefix+s.Name).Script())
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
