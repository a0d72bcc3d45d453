// Package state stores what one checkout's stack needs at its next start: ports, passwords, keys, and the secrets of the seeded
// tenants.
package state

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// State is the contents of .run/state.json. It holds secrets: mode 0600.
type State struct {
	Ports   map[string]int    `json:"ports"`   // by process, "gateway" or "gateway.metrics"
	Secrets map[string]string `json:"secrets"` // by name, in hexadecimal or as given

	mu   sync.Mutex
	path string
}

// Load reads the state at path. A missing file is an empty state.
func Load(path string) (*State, error) {
	s := &State{Ports: map[string]int{}, Secrets: map[string]string{}, path: path}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%s is damaged (`make clean` deletes it): %w", path, err)
	}
	return s, nil
}

// Save writes the state in one step. Only its owner can read the file. A state without a path stays in memory.
func (s *State) Save() error {
	if s.path == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.path+".new", append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(s.path+".new", s.path)
}

// Port returns the port that name had at the last start; 0 if it had none.
func (s *State) Port(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Ports[name]
}

// SetPort stores the port of name.
func (s *State) SetPort(name string, port int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Ports[name] = port
}

// Secret returns 32 random bytes in hexadecimal for a name. The first call generates them.
func (s *State) Secret(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Secrets[name] == "" {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		s.Secrets[name] = hex.EncodeToString(key)
	}
	return s.Secrets[name]
}

// Given returns the secret that Give stored under a name; "" if there is none.
func (s *State) Given(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Secrets[name]
}

// Give stores a secret that another process created.
func (s *State) Give(name, secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Secrets[name] = secret
}

// Memory returns a state that is never written to disk.
func Memory() *State { return &State{Ports: map[string]int{}, Secrets: map[string]string{}} }
