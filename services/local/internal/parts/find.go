package parts

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// The oldest major versions that the platform supports.
const (
	postgresMajor = 15
	redisMajor    = 7
)

// FindPostgres returns the folder of the newest PostgreSQL server of version 15 or later, with its contrib extensions; empty if
// there is none.
func FindPostgres(ctx context.Context) string {
	best, found := postgresMajor-1, ""
	for _, path := range postgresCandidates() {
		// A link in PATH can hide the folder of initdb.
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue
		}
		dir := filepath.Dir(real)
		if major := version(ctx, real); major > best && executable(filepath.Join(dir, "initdb")) && hasContrib(dir, major) {
			best, found = major, dir
		}
	}
	return found
}

func postgresCandidates() []string {
	var all []string
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin/postgres", "/usr/pgsql-*/bin/postgres",
		"/opt/homebrew/opt/postgresql@*/bin/postgres", "/usr/local/opt/postgresql@*/bin/postgres",
	} {
		matches, _ := filepath.Glob(pattern)
		all = append(all, matches...)
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		all = append(all, path)
	}
	return all
}

// hasContrib reports whether btree_gist exists, next to the server or in Debian's folder.
func hasContrib(bin string, major int) bool {
	for _, share := range []string{
		filepath.Join("/usr/share/postgresql", strconv.Itoa(major)),
		filepath.Join(bin, "../share/postgresql"), filepath.Join(bin, "../share"),
		filepath.Join(bin, "../share/postgresql@"+strconv.Itoa(major)), "/usr/share/pgsql",
	} {
		if _, err := os.Stat(filepath.Join(share, "extension", "btree_gist.control")); err == nil {
			return true
		}
	}
	return false
}

// FindRedis returns the path of redis-server 7 or later; empty if there is none.
func FindRedis(ctx context.Context) string {
	path, err := exec.LookPath("redis-server")
	if err != nil || version(ctx, path) < redisMajor {
		return ""
	}
	return path
}

var majorVersion = regexp.MustCompile(`(?:\(PostgreSQL\) |v=)(\d+)`)

// version returns the major version in the output of `path --version`; 0 if there is none.
func version(ctx context.Context, path string) int {
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return 0
	}
	found := majorVersion.FindSubmatch(out)
	if found == nil {
		return 0
	}
	major, _ := strconv.Atoi(string(found[1]))
	return major
}

func executable(path string) bool {
	_, err := exec.LookPath(path)
	return err == nil
}

// Installed returns an error that says what to do if PostgreSQL or Redis is not installed.
func Installed(ctx context.Context) error {
	if FindPostgres(ctx) == "" || FindRedis(ctx) == "" {
		return fmt.Errorf("PostgreSQL %d+ and Redis %d+ are needed: run `make setup`, which installs them", postgresMajor, redisMajor)
	}
	return nil
}

// Find returns PostgreSQL's folder and redis-server's path. It installs the required ones that are missing.
func Find(ctx context.Context, needPostgres, needRedis bool, say func(string, ...any)) (bin, redis string, err error) {
	var missing []string
	look := func() {
		missing = nil
		if bin = FindPostgres(ctx); needPostgres && bin == "" {
			missing = append(missing, "postgresql")
		}
		if redis = FindRedis(ctx); needRedis && redis == "" {
			missing = append(missing, "redis-server")
		}
	}
	if look(); len(missing) == 0 {
		return bin, redis, nil
	}
	if err := systemInstaller().install(ctx, missing, say); err != nil {
		return "", "", err
	}
	if look(); len(missing) > 0 {
		return "", "", fmt.Errorf("after the installation there still is no PostgreSQL %d+ with contrib or no Redis %d+ (missing: %v)",
			postgresMajor, redisMajor, missing)
	}
	return bin, redis, nil
}
