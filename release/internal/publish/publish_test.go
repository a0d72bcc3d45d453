package publish

import (
	"archive/tar"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// unpack returns the files and links of a tar by name.
func unpack(content io.Reader) (map[string]entry, error) {
	files := map[string]entry{}
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		clean := strings.TrimPrefix(path.Clean(h.Name), "/")
		files[clean] = entry{name: clean, link: h.Linkname, content: text}
	}
}

func decode(t *testing.T, text []byte) []byte {
	t.Helper()
	decoded, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return decoded
}

// commit creates a repository with one commit and returns its folder.
func commit(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{"proto/services.yaml": "services:\n  first:\n    public: true\n  second: {}\n", "CHANGELOG.md": "## Unreleased\n\nAll.\n"} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, root, "git", "init", "--quiet")
	run(t, root, "git", "add", ".")
	save(t, root)
	return root
}

func save(t *testing.T, root string) {
	t.Helper()
	run(t, root, "git", "-c", "user.name=Test", "-c", "user.email=test@example.com", "commit", "--quiet", "--allow-empty", "-m", "Change")
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(t *testing.T, r *Release){
		"":                                 func(*testing.T, *Release) {},
		`--version "1.0"`:                  func(_ *testing.T, r *Release) { r.Version = "1.0" },
		`--version "v1.0.0"`:               func(_ *testing.T, r *Release) { r.Version = "v1.0.0" },
		`--version "1.0.0+build"`:          func(_ *testing.T, r *Release) { r.Version = "1.0.0+build" },
		`--version ""`:                     func(_ *testing.T, r *Release) { r.Version = "" },
		`--registry ""`:                    func(_ *testing.T, r *Release) { r.Registry = "" },
		`--registry "holdfast"`:            func(_ *testing.T, r *Release) { r.Registry = "holdfast" },
		`--registry "https://example.com"`: func(_ *testing.T, r *Release) { r.Registry = "https://example.com" },
		`--services "third"`:               func(_ *testing.T, r *Release) { r.Services = []string{"third"} },
		"commit or remove the changes": func(t *testing.T, r *Release) {
			if err := os.WriteFile(filepath.Join(r.Root, "new"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"names another commit": func(t *testing.T, r *Release) {
			run(t, r.Root, "git", "-c", "user.name=Test", "-c", "user.email=test@example.com", "tag", "-a", "-m", "1.0.0", "v1.0.0")
			save(t, r.Root)
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			r := &Release{Root: commit(t), Version: "1.0.0", Registry: "registry.example.com/team"}
			change(t, r)
			c, err := r.check(t.Context())
			if want != "" {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %v, want one with %q", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if strings.Join(r.Services, " ") != "first second" || len(c.commit) != 40 || c.date.IsZero() {
				t.Errorf("the release is %+v of %+v", r, c)
			}
		})
	}
}

func TestTheTagOfTheCommitIsAccepted(t *testing.T) {
	t.Parallel()
	root := commit(t)
	run(t, root, "git", "-c", "user.name=Test", "-c", "user.email=test@example.com", "tag", "-a", "-m", "1.0.0", "v1.0.0")
	run(t, root, "git", "tag", "v1.0.1")
	for _, v := range []string{"1.0.0", "1.0.1"} {
		if _, err := openCheckout(t.Context(), root, v); err != nil {
			t.Error(err)
		}
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	for registry, loopback := range map[string]bool{
		"127.0.0.1:5000": true, "localhost": true, "localhost:5000/team": true, "[::1]:5000": true, "registry.example.com": false, "10.0.0.1:5000": false,
	} {
		if got := (&Release{Registry: registry}).loopback(); got != loopback {
			t.Errorf("%s is on loopback: %v", registry, got)
		}
	}
	if _, err := (&Release{Registry: "registry.example.com"}).signer(); err == nil || !strings.Contains(err.Error(), "--key is missing") {
		t.Errorf("the error without a key is %v", err)
	}
	r := &Release{Registry: "127.0.0.1:5000", Folder: t.TempDir(), Password: "one", Say: t.Logf}
	if _, err := r.signer(); err != nil {
		t.Fatal(err)
	}
	r.Password = "other"
	if _, err := r.signer(); err == nil || !strings.Contains(err.Error(), "COSIGN_PASSWORD") {
		t.Errorf("the error of a wrong password is %v", err)
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	const text = "# Changelog\n\n## Unreleased\n\nNew.\n\n## [1.1.0] - 2026-11-01\n\n### Added\n- One.\n\n## 1.0.0\n\nFirst.\n"
	for version, want := range map[string]string{"1.1.0": "### Added\n- One.", "1.0.0": "First.", "1.2.0": "New."} {
		if got, err := changes(text, version); err != nil || got != want {
			t.Errorf("the changes of %s are %q, %v, want %q", version, got, err, want)
		}
	}
	if got, err := changes("# Changelog\n\n## Unreleased\n\n## 1.0.0\n\nFirst.\n", "1.1.0"); err == nil {
		t.Errorf("the changes of a version without changes are %q", got)
	}
}

func TestPin(t *testing.T) {
	t.Parallel()
	got, err := pin([]byte("# A comment.\nservices:\n  first:\n    # Another one.\n    image: { tag: dev }\n    replicas: 2\n  second:\nedges: []\n"),
		[]Image{{Service: "first", Digest: "sha256:1"}, {Service: "second", Digest: "sha256:2"}, {Service: "third", Digest: "sha256:3"}})
	const want = "# A comment.\nservices:\n  first:\n    # Another one.\n    image: {tag: dev, digest: 'sha256:1'}\n    replicas: 2\n  second:\n    image:\n      digest: sha256:2\n" +
		"  third:\n    image:\n      digest: sha256:3\nedges: []\n"
	if err != nil || string(got) != want {
		t.Errorf("the values are\n%s\n%v, want\n%s", got, err, want)
	}
}

func TestArchivesAreEqual(t *testing.T) {
	t.Parallel()
	entries := []entry{{name: "a/b/c", content: []byte("text")}, {name: "a/d", link: "/a/b/c"}}
	one, err := archive(time.Unix(1, 0), entries)
	if err != nil {
		t.Fatal(err)
	}
	two, err := archive(time.Unix(1, 0).UTC(), entries)
	if err != nil || string(one) != string(two) {
		t.Errorf("two archives differ: %v", err)
	}
	files, err := unpack(strings.NewReader(string(one)))
	if err != nil || string(files["a/b/c"].content) != "text" || files["a/d"].link != "/a/b/c" {
		t.Errorf("the archive contains %v, %v", files, err)
	}
}

func TestTheProvenanceHasTheVersionOfKo(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../go.mod")
	if err != nil || !strings.Contains(string(text), "github.com/google/ko "+koVersion+"\n") {
		t.Errorf("go.mod does not require ko %s: %v", koVersion, err)
	}
}
