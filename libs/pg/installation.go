package pg

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/command"
)

// undefinedTable is the code of a database of an older release, which has no table installation.
const undefinedTable = "42P01"

// Installation returns the ID that a database has since its first migration, also after a restore. It returns "" for a database that
// an older release migrated.
func Installation(ctx context.Context, q Q) (string, error) {
	rows, err := q.Query(ctx, `select id::text from installation`)
	if err == nil {
		var id string
		if id, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[string]); err == nil {
			return id, nil
		}
	}
	if Code(err) == undefinedTable {
		return "", nil
	}
	return "", fmt.Errorf("read the ID of the installation: %w", err)
}

// ErrSkips reports that a migration would skip minor versions.
var ErrSkips = errors.New("would skip a version")

// checkVersion returns ErrSkips if a database is more than one minor version older than the executable.
func checkVersion(ctx context.Context, db *sql.DB) error {
	var exists bool
	if err := db.QueryRowContext(ctx, `select to_regclass('public.installation') is not null`).Scan(&exists); err != nil || !exists {
		return err
	}
	var version sql.NullString
	if err := db.QueryRowContext(ctx, `select version from installation`).Scan(&version); err != nil {
		return err
	}
	build := command.CurrentBuild().Version
	if between := skipped(version.String, build); between != "" {
		return fmt.Errorf("%s %w: the database is at version %s; upgrade to the newest PATCH version of %s first", build, ErrSkips, version.String, between)
	}
	return nil
}

// recordVersion records the version of the executable. A build without a version records nothing.
func recordVersion(ctx context.Context, db *sql.DB) error {
	build := command.CurrentBuild().Version
	if _, ok := parseVersion(build); !ok {
		return nil
	}
	if _, err := db.ExecContext(ctx, `update installation set version = $1 where version is distinct from $1`, build); err != nil {
		return fmt.Errorf("record the version: %w", err)
	}
	return nil
}

// release is the MAJOR and the MINOR of a version.
type release struct{ major, minor int }

var versionForm = regexp.MustCompile(`^(\d{1,9})\.(\d{1,9})\.\d+(?:[-+][0-9A-Za-z.+-]+)?$`)

// parseVersion reports false for a build without a version.
func parseVersion(text string) (release, bool) {
	m := versionForm.FindStringSubmatch(text)
	if m == nil {
		return release{}, false
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	return release{major, minor}, true
}

// skipped returns the versions between two versions, such as "1.3, then 1.4", or "" if a database of the first one can be migrated to the
// second one. It knows no last MINOR of a MAJOR version, so it accepts any of them before the next MAJOR version. A build without a
// version is never refused.
func skipped(from, to string) string {
	old, ok := parseVersion(from)
	next, known := parseVersion(to)
	if !ok || !known {
		return ""
	}
	var between []string
	for major := old.major + 1; major <= next.major; major++ {
		if major < next.major || next.minor > 0 {
			between = append(between, fmt.Sprintf("%d.0", major))
		}
	}
	first := 1
	if next.major == old.major {
		first = old.minor + 1
	}
	if next.major >= old.major {
		for minor := first; minor < next.minor; minor++ {
			between = append(between, fmt.Sprintf("%d.%d", next.major, minor))
		}
	}
	return strings.Join(between, ", then ")
}
