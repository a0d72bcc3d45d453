package stack

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

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

// logFolder returns the folder of the processes' log files in dir.
func logFolder(dir string) string { return filepath.Join(dir, "/logs") }

// rotateLogs retains the logs of one earlier start.
func rotateLogs(dir string) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, file := range files {
		_ = os.Rename(file, file+".old")
	}
}
