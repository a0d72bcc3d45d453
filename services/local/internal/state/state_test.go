package state

import (
	"os"
	"path/filepath"
	"testing"
)

func TestStateSurvivesAndIsPrivate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	s, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	secret := s.Secret("cursor")
	if len(secret) != 64 || s.Secret("cursor") != secret || s.Secret("other") == secret {
		t.Fatalf("secret %q is not 32 steady bytes of its own", secret)
	}
	s.SetPort("gateway", 8080)
	s.Give("key.demo.test", "svc_test_x")
	if err := s.Save(); err != nil {
		t.Fatal(err)
	}
	again, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if again.Secret("cursor") != secret || again.Port("gateway") != 8080 || again.Given("key.demo.test") != "svc_test_x" {
		t.Fatalf("another state came back: %+v", again.Ports)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode is %v (%v)", info.Mode(), err)
	}
}

func TestDamagedStateIsReported(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil {
		t.Fatal("a damaged state was taken")
	}
}
