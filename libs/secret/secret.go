// Package secret contains settings with secret values, such as passwords and keys. A value comes from the environment, or from a file
// that a process reads again while it runs. The parts of a process that use such a value follow it:
//
//	keys, err := secret.Follow(cfg.SignKeys, caller.ParseKeys) // an invalid value is an error at the start
//	…
//	keys() // the keys of the file's newest valid content
package secret

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// MaxBytes is the maximum size of a file.
const MaxBytes = 64 << 10

// settle is how long the content of a changed file must stay the same before it is used, because a program can be writing it.
const settle = 50 * time.Millisecond

// Setting is a setting with a secret value. The zero value is a setting that is not set. Copies share the value.
type Setting struct{ v *value }

// value is the value of a setting. Followers are added before the process starts to watch the file.
type value struct {
	name, file string

	mu        sync.Mutex
	text      string
	followers []follower
}

// follower prepares the use of a new value and returns a function, which cannot fail, that switches to it.
type follower func(text string) (use func(), err error)

// New returns a setting with a fixed value.
func New(text string) Setting { return Setting{&value{text: text}} }

// UnmarshalText sets a fixed value.
func (s *Setting) UnmarshalText(text []byte) error {
	*s = New(string(text))
	return nil
}

// InFile states that the value of the setting name was read from a file, which Reload reads again.
func (s *Setting) InFile(name, file string) {
	if s.v != nil {
		s.v.name, s.v.file = name, file
	}
}

// Name returns the name of a setting whose value was read from a file, or "".
func (s Setting) Name() string {
	if s.v == nil {
		return ""
	}
	return s.v.name
}

// Get returns the current value, "" if it is not set.
func (s Setting) Get() string {
	if s.v == nil {
		return ""
	}
	s.v.mu.Lock()
	defer s.v.mu.Unlock()
	return s.v.text
}

// String returns a mask, so that no log contains the value.
func (s Setting) String() string {
	if s.Get() == "" {
		return ""
	}
	return "***"
}

// Follow parses the setting's value and returns a function that returns the parsed value. After the file has changed, it returns the
// new one. A value that cannot be parsed is an error; if it appears later, Reload returns the error and the old value stays.
func Follow[T any](s Setting, parse func(text string) (T, error)) (current func() T, err error) {
	first, err := parse(s.Get())
	if err != nil {
		return nil, err
	}
	var parsed atomic.Pointer[T]
	parsed.Store(&first)
	s.Prepare(func(text string) (func(), error) {
		next, err := parse(text)
		return func() { parsed.Store(&next) }, err
	})
	return func() T { return *parsed.Load() }, nil
}

// Prepare registers a function that prepares the use of each later value. If all functions of the setting succeed, the functions that
// they returned run; otherwise the old value stays everywhere.
func (s Setting) Prepare(f func(text string) (use func(), err error)) {
	if s.v == nil {
		return
	}
	s.v.mu.Lock()
	defer s.v.mu.Unlock()
	s.v.followers = append(s.v.followers, f)
}

// Reload reads the file of the setting, and switches to its content if it has changed. It reports whether it has switched. After an
// error, the old value stays in use. The error never contains the value.
func (s Setting) Reload() (switched bool, err error) {
	if s.v == nil || s.v.file == "" {
		return false, nil
	}
	text, err := Read(s.v.file)
	if err != nil || text == s.Get() {
		return false, err
	}
	time.Sleep(settle)
	if again, err := Read(s.v.file); err != nil || again != text {
		return false, err // the next call reads it again
	}
	if err := s.v.use(text); err != nil {
		return false, err
	}
	return true, nil
}

// use switches all followers to a value, or none.
func (v *value) use(text string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	uses := make([]func(), len(v.followers))
	for i, prepare := range v.followers {
		var err error
		if uses[i], err = prepare(text); err != nil {
			return err
		}
	}
	for _, use := range uses {
		use()
	}
	v.text = text
	return nil
}

var (
	errSize  = fmt.Errorf("the file is larger than %d bytes", MaxBytes)
	errEmpty = errors.New("the file is empty")
)

// Read returns the content of a file without the line end after it.
func Read(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	switch text := strings.TrimRight(string(b), "\r\n"); {
	case err != nil:
		return "", err
	case len(b) > MaxBytes:
		return "", errSize
	case text == "":
		return "", errEmpty
	default:
		return text, nil
	}
}
