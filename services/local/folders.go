package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"holdfast.dev/services/local/internal/parts"
	"holdfast.dev/services/local/internal/supervise"
)

// dataDir creates the folder of the parts' data: .run/data. As root, it creates a folder that the servers' user can access, and
// makes .run/data a link to it.
func dataDir(root, run string) (string, error) {
	link := filepath.Join(run, "data")
	if os.Geteuid() != 0 {
		return link, os.MkdirAll(link, 0o700)
	}
	dir := rootData(root)
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

// setAside moves the data of a deleted checkout away if another checkout is at its path: the passwords were deleted with the old
// state, so the data cannot be opened. It returns the new path of the data; "" if there was none.
func setAside(data, state string) (string, error) {
	if _, err := os.Stat(state); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	left, err := os.ReadDir(data)
	if err != nil || len(left) == 0 {
		return "", err
	}
	aside := data + asideSuffix
	if err := os.RemoveAll(aside); err != nil {
		return "", err
	}
	if err := os.Rename(data, aside); err != nil {
		return "", err
	}
	return aside, os.Mkdir(data, 0o700)
}

const asideSuffix = ".lost"

// rootData contains the checkout's path, so that two checkouts never share a folder.
func rootData(root string) string {
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(parts.RootData, hex.EncodeToString(sum[:6]))
}

// marks identify this checkout's processes: the variable that each of them has, or a path in the checkout's data. The whole value
// must match, because a longer path belongs to another checkout..
func marks(root, data string) []string {
	return []string{supervise.OwnerEnv + "=" + root + "\x00", data + "/"}
}

// logFolder returns the folder of the processes' log files in dir.
func logFolder(dir string) string { return filepath.Join(dir, "/logs") }

// rotateLogs retains the logs of one earlier start.
func rotateLogs(dir string) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, file := range files {
		_ = os.Rename(file, file+".old")
	}
}
