package peers_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast.dev/services/identity/internal/peers"
)

// TestMail checks that a message to a folder is one file that only its owner can read, and that a message that no server accepts
// is an error.
func TestMail(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "mail")
	m, err := peers.NewMailer(peers.MailAccess{URL: "file://" + folder, From: "Holdfast <noreply@holdfast.example>"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := m.Send(t.Context(), "dana@example.com", "Grüße", "https://auth.example/oauth/link/abc\n"); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.eml"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%v: %v", files, err)
	}
	info, err := os.Stat(files[0])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v: %v", info, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil || !strings.Contains(string(text), "https://auth.example/oauth/link/abc") || !strings.Contains(string(text), "To: <dana@example.com>") {
		t.Errorf("%s: %v", text, err)
	}
	for _, bad := range []string{"\r\nBcc: eve@example.com", "nobody", ""} {
		if err := m.Send(t.Context(), bad, "s", "t"); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	dead, err := peers.NewMailer(peers.MailAccess{URL: "smtps://a:secret@127.0.0.1:1", From: "noreply@holdfast.example"})
	if err != nil {
		t.Fatal(err)
	}
	if err := dead.Send(t.Context(), "dana@example.com", "s", "t"); err == nil || !strings.Contains(err.Error(), "cannot be reached") || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}

func TestMailURL(t *testing.T) {
	t.Parallel()
	if m, err := peers.NewMailer(peers.MailAccess{URL: "", From: ""}); m != nil || err != nil {
		t.Errorf("%v %v", m, err)
	}
	for _, good := range []string{"smtp://mail.example", "smtp://a:b@mail.example:587", "smtps://mail.example:465"} {
		if _, err := peers.NewMailer(peers.MailAccess{URL: good, From: "a@example.com"}); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"mail.example", "http://mail.example", "smtp://", "smtp://mail.example:99999", "file://", "smtp://a:%zz@mail.example"} {
		if _, err := peers.NewMailer(peers.MailAccess{URL: bad, From: "a@example.com"}); !errors.Is(err, peers.ErrMailURL) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
