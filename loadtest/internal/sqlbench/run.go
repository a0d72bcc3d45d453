package sqlbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

var (
	tps  = regexp.MustCompile(`(?m)^tps = ([0-9.]+) `)
	none = regexp.MustCompile(`(?m)^number of transactions actually processed: 0$`)
)

var errPgbench = errors.New("pgbench")

// Find returns pgbench's path: next to the newest server, as Debian installs it, or in PATH.
func Find() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
	if len(found) > 0 {
		return found[len(found)-1], nil
	}
	path, err := exec.LookPath("pgbench")
	if err != nil {
		return "", fmt.Errorf("%w is needed for the comparison: install it (Debian: postgresql-contrib)", errPgbench)
	}
	return path, nil
}

// Run runs a script with Clients clients for d and returns the transactions per second. Each client's :i starts at base,
// so that :n differs from that of other runs.
func Run(ctx context.Context, pgbench, url, script string, d time.Duration, base int) (float64, error) {
	cmd := exec.CommandContext(ctx, pgbench, "-n", "-M", "prepared", "-c", strconv.Itoa(Clients), "-j", "2",
		"-T", strconv.Itoa(max(1, int(d.Seconds()))), "-D", "i="+strconv.Itoa(base), "-f", script, url)
	cmd.Env = append(os.Environ(), "PGCONNECT_TIMEOUT=10")
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w\n%.2000s", errPgbench, err, out)
	}
	return rate(out)
}

// rate reads the transactions per second in pgbench's report, which has no such line if no transaction was committed in time.
func rate(out []byte) (float64, error) {
	if none.Match(out) {
		return 0, nil
	}
	found := tps.FindSubmatch(out)
	if found == nil {
		return 0, fmt.Errorf("%w printed no rate:\n%.2000s", errPgbench, out)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}
