package stack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"holdfast.dev/services/local/internal/parts"
	"holdfast.dev/services/local/internal/supervise"
)

// stopLimit is how long Down waits: each process gets at most 20 s.
const stopLimit = 2 * time.Minute

// Checkout is a copy of the repository. Its platform uses its programs, and its private files.
type Checkout struct {
	Root string // folder that contains bin/
	Run  string // folder of the private files: .run/
}

// OpenCheckout returns the checkout that contains the running program.
func OpenCheckout() (Checkout, error) {
	self, err := os.Executable()
	if err != nil {
		return Checkout{}, err
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return Checkout{}, err
	}
	bin := filepath.Dir(self)
	if filepath.Base(bin) != "bin" {
		return Checkout{}, errors.New("local must be built as bin/local of a checkout: run `make build`")
	}
	root := filepath.Dir(bin)
	return Checkout{Root: root, Run: filepath.Join(root, ".run")}, nil
}

func (c Checkout) binary(name string) string { return filepath.Join(c.Root, "bin", name) }

func (c Checkout) pids() string { return filepath.Join(c.Run, "pids") }

// Down signals the running supervisor, waits for it, and stops the processes that a killed supervisor left behind. It is not an
// error if nothing is running.
func (c Checkout) Down(ctx context.Context) error {
	if _, err := os.Stat(c.Run); err != nil {
		return nil // The platform was never started.
	}
	release, err := c.takeOver(ctx, stopLimit)
	if err != nil {
		return err
	}
	defer release()
	data, err := c.makeData()
	if err != nil {
		return err
	}
	supervise.CleanUp(c.pids(), c.marks(data)...)
	_ = os.Remove(c.envFile())
	return nil
}

// Clean is Down, and then deletes the data, keys, and logs.
func (c Checkout) Clean(ctx context.Context) error {
	if err := c.Down(ctx); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		if err := errors.Join(os.RemoveAll(c.rootData()), os.RemoveAll(c.rootData()+asideSuffix)); err != nil {
			return err
		}
	}
	return os.RemoveAll(c.Run)
}

// makeData creates the folder of the parts' data: .run/data. As root, it creates a folder that the servers' user can access, and
// makes .run/data a link to it.
func (c Checkout) makeData() (string, error) {
	link := filepath.Join(c.Run, "data")
	if os.Geteuid() != 0 {
		return link, os.MkdirAll(link, 0o700)
	}
	dir := c.rootData()
	if err := os.MkdirAll(parts.RootData, 0o755); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if there, err := os.Readlink(link); err == nil && there == dir {
		return dir, nil
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return dir, os.Symlink(dir, link)
}

// rootData contains the checkout's path, so that two checkouts never share a folder.
func (c Checkout) rootData() string {
	sum := sha256.Sum256([]byte(c.Root))
	return filepath.Join(parts.RootData, hex.EncodeToString(sum[:6]))
}

// marks identify this checkout's processes: the variable that each of them has, or a path in the checkout's data. The whole value
// must match, because a longer path belongs to another checkout.
func (c Checkout) marks(data string) []string {
	return []string{supervise.OwnerEnv + "=" + c.Root + "\x00", data + "/"}
}
