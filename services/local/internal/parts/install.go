package parts

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// quietInstall installs packages without starting their services. make runs it too, while it builds.
//
//go:embed install.sh
var quietInstall string

// installer contains what an installation uses of the machine. Tests replace it.
type installer struct {
	uid      int
	lookPath func(name string) (string, error)
	run      func(ctx context.Context, command []string) ([]byte, error)
}

func systemInstaller() installer {
	return installer{uid: os.Geteuid(), lookPath: exec.LookPath, run: func(ctx context.Context, command []string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Stdin = os.Stdin // sudo can prompt for a password
		return cmd.CombinedOutput()
	}}
}

// install installs Debian packages, as root or with sudo. If it fails, the error is one line that explains what to install.
func (i installer) install(ctx context.Context, packages []string, say func(string, ...any)) error {
	hint := fmt.Sprintf("PostgreSQL %d+ (with contrib) and Redis %d+ are needed; missing here: %s",
		postgresMajor, redisMajor, strings.Join(packages, ", "))
	if _, err := i.lookPath("apt-get"); err != nil {
		return errors.New(hint + ": install them with your system's package manager, or give DATABASE_URL and REDIS_URL")
	}
	if slices.Contains(packages, "postgresql") {
		packages = append(packages, "postgresql-contrib")
	}
	command := append([]string{"sh", "-c", quietInstall, "install", ""}, packages...)
	if i.uid != 0 {
		if _, err := i.lookPath("sudo"); err != nil {
			return errors.New(hint + ": run `apt-get install " + strings.Join(packages, " ") + "` as root")
		}
		command = slices.Insert(command, 0, "sudo")
	}
	say("installing %s (without starting their services)", strings.Join(packages, ", "))
	if out, err := i.run(ctx, command); err != nil {
		return fmt.Errorf("installing %s: %w\n%s", strings.Join(packages, ", "), err, out)
	}
	return nil
}
