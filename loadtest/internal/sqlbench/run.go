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

// Run runs a script with Clients clients for d and returns the transactions per second. Each client's :i starts at
// base, so that :n differs from that of other runs. It uses the pgbench of the newest server, as Debian installs it, or
// of PATH.
func Run(ctx context.Context, url, script string, d time.Duration, base int) (float64, error) {
	pgbench := "pgbench"
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench"); len(found) > 0 {
		pgbench = found[len(found)-1]
	}
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

// rate reads the transactions per second in pgbench's report. The report has none if no transaction was committed in time.
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
