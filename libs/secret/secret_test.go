package secret_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/libs/secret"
)

// inFile returns a setting with a value from a file, and a function that replaces the file's content like Kubernetes: a link to a
// folder is switched.
func inFile(t *testing.T, text string) (s secret.Setting, replace func(text string)) {
	t.Helper()
	dir := t.TempDir()
	version := 0
	replace = func(text string) {
		t.Helper()
		version++
		folder := filepath.Join(dir, strconv.Itoa(version))
		err := errors.Join(
			os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "KEY"), []byte(text), 0o600),
			os.Symlink(strconv.Itoa(version), filepath.Join(dir, "next")), os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "..data")))
		if err != nil {
			t.Fatal(err)
		}
	}
	replace(text)
	file := filepath.Join(dir, "KEY")
	if err := os.Symlink(filepath.Join("..data", "KEY"), file); err != nil {
		t.Fatal(err)
	}
	read, err := secret.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	s = secret.New(read)
	s.InFile("KEY", file)
	return s, replace
}

func TestFollow(t *testing.T) {
	t.Parallel()
	s, replace := inFile(t, "1\n")
	copied := s
	number, err := secret.Follow(copied, strconv.Atoi)
	if err != nil {
		t.Fatal(err)
	}
	if number() != 1 {
		t.Errorf("the first value is %d", number())
	}
	if switched, err := s.Reload(); switched || err != nil {
		t.Errorf("the same content: %v, %v", switched, err)
	}
	replace("2\n")
	if switched, err := s.Reload(); !switched || err != nil || number() != 2 || s.Get() != "2" {
		t.Errorf("a new value: %v, %v, %d", switched, err, number())
	}
	for _, bad := range []string{"two", "", "\n", strings.Repeat("3", secret.MaxBytes+1)} {
		replace(bad)
		if switched, err := s.Reload(); switched || err == nil || number() != 2 || s.Get() != "2" {
			t.Errorf("%.10q: %v, %v, %d", bad, switched, err, number())
		}
	}
	replace("4")
	if switched, err := s.Reload(); !switched || err != nil || number() != 4 {
		t.Errorf("after bad values: %v, %v, %d", switched, err, number())
	}
	if _, err := secret.Follow(secret.New("x"), strconv.Atoi); err == nil {
		t.Error("a bad first value is no error")
	}
}

// All parts that follow a setting switch to a new value, or none.
func TestAllFollowersSwitch(t *testing.T) {
	t.Parallel()
	s, replace := inFile(t, "1")
	text, err := secret.Follow(s, func(text string) (string, error) { return text, nil })
	if err != nil {
		t.Fatal(err)
	}
	number, err := secret.Follow(s, strconv.Atoi)
	if err != nil {
		t.Fatal(err)
	}
	replace("none")
	if _, err := s.Reload(); err == nil || text() != "1" || number() != 1 {
		t.Errorf("%v: %q and %d", err, text(), number())
	}
	replace("2")
	if _, err := s.Reload(); err != nil || text() != "2" || number() != 2 {
		t.Errorf("%v: %q and %d", err, text(), number())
	}
}

// Readers see the old value or the new one.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	s, replace := inFile(t, "0")
	number, err := secret.Follow(s, strconv.Atoi)
	if err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for last := 0; ; {
				select {
				case <-stop:
					return
				default:
					now := number()
					if now < last {
						t.Errorf("%d after %d", now, last)
					}
					last = now
				}
			}
		})
	}
	for i := 1; i <= 5; i++ {
		replace(strconv.Itoa(i))
		if _, err := s.Reload(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	readers.Wait()
}

func TestSettingIsMasked(t *testing.T) {
	t.Parallel()
	if got := secret.New("hunter2").String() + (secret.Setting{}).String(); got != "***" {
		t.Errorf("got %q", got)
	}
	var unset secret.Setting
	if switched, err := unset.Reload(); switched || err != nil || unset.Get() != "" || unset.Name() != "" {
		t.Errorf("a setting that is not set: %v, %v", switched, err)
	}
}
