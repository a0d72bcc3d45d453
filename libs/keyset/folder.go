package keyset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	folderMode = 0o700
	fileMode   = 0o600
)

// maxName is the maximum length of a name in Kubernetes, to which the chart cuts names.
const maxName = 63

// SecretName returns the name of a Secret in Kubernetes for its name in a Set.
func SecretName(release, name string) string {
	service, isMigration := strings.CutSuffix(name, migration)
	full := release + "-" + service
	full = strings.TrimSuffix(full[:min(maxName, len(full))], "-")
	if isMigration {
		return full + migration
	}
	return full
}

// ErrExists reports a file or folder that is not overwritten.
var ErrExists = errors.New("exists already, and is not overwritten")

// Create writes a set to a new folder: a folder for each Secret, with a file for each setting, as for the setting NAME_FILE. Only their
// owner can read them. If it fails, there is no folder.
func (s Set) Create(dir, release string) (err error) {
	dir = filepath.Clean(dir)
	if list, err := os.ReadDir(dir); err == nil && len(list) > 0 {
		return fmt.Errorf("%s %w", dir, ErrExists)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), folderMode); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(filepath.Dir(dir), ".keys-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(temporary)
		}
	}()
	for name, values := range s {
		folder := filepath.Join(temporary, SecretName(release, name))
		if err := os.Mkdir(folder, folderMode); err != nil {
			return err
		}
		for setting, value := range values {
			if err := os.WriteFile(filepath.Join(folder, setting), []byte(value), fileMode); err != nil {
				return err
			}
		}
	}
	return os.Rename(temporary, dir)
}

// OpenFolder reads a set from a folder that Create wrote. A Secret without a folder is not in the set.
func OpenFolder(dir, release string) (Set, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	set := Set{}
	for _, name := range Names() {
		folder := filepath.Join(dir, SecretName(release, name))
		files, err := os.ReadDir(folder)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		set[name] = map[string]string{}
		for _, f := range files {
			if !f.Type().IsRegular() {
				continue
			}
			text, err := os.ReadFile(filepath.Join(folder, f.Name()))
			if err != nil {
				return nil, err
			}
			set[name][f.Name()] = strings.TrimRight(string(text), "\r\n") // as services read it
		}
	}
	return set, nil
}

// SaveFolder writes changed settings to a folder, each file in one step.
func SaveFolder(dir, release string, changes []Change) error {
	for _, c := range changes {
		if err := Replace(filepath.Join(dir, SecretName(release, c.Secret), c.Setting), []byte(c.Value)); err != nil {
			return err
		}
	}
	return nil
}

// Replace writes a file that only its owner can read in one step.
func Replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".keys-") // with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
