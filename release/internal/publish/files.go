package publish

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const (
	checksums    = "SHA256SUMS"
	releaseKind  = "application/vnd.holdfast.release.v1"
	emptyConfig  = "application/vnd.oci.empty.v1+json"
	anyFile      = "application/octet-stream"
	titleOfLayer = "org.opencontainers.image.title"
)

// files writes images.json, the contract, the SDKs, the notes and the checksums into the folder of the release.
func (b *builder) files(ctx context.Context, index Index) error {
	text, err := indented(index)
	if err != nil {
		return err
	}
	if err := b.write("images.json", text); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(b.Folder, "sdk"), 0o755); err != nil {
		return err
	}
	for _, write := range []func(context.Context) error{b.contract, b.collections, b.goSDK, b.npmSDK, b.pythonSDK, b.notes} {
		if err := write(ctx); err != nil {
			return err
		}
	}
	if err := b.sum(); err != nil {
		return err
	}
	return b.signer.signFile(b.Release, checksums)
}

// contract writes the documents that the platform serves, and the contract of the platform API if there is one.
func (b *builder) contract(ctx context.Context) error {
	folder := filepath.Join(b.Folder, "contract")
	if _, err := b.run(ctx, "go", "run", "./sdks/generate", "-address", "http://127.0.0.1:8080", "-views", folder); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(folder, "openapi-go.json")); err != nil { // only for the Go SDK
		return err
	}
	text, err := os.ReadFile(filepath.Join(b.root, "proto/platform.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return b.write("contract/platform.yaml", text)
}

// collections writes the requests for Postman and Bruno as one file.
func (b *builder) collections(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "collections")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if _, err := b.run(ctx, "go", "run", "./sdks/generate", "-collections", folder); err != nil {
		return err
	}
	var entries []entry
	files := os.DirFS(folder)
	err = fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		entries = append(entries, entry{name: path, content: text})
		return err
	})
	if err != nil {
		return err
	}
	text, err := archive(b.date, entries)
	if err != nil {
		return err
	}
	return b.write("collections.tar", text)
}

// goSDK writes the Go module as the module proxy serves it.
func (b *builder) goSDK(context.Context) error {
	version, err := os.ReadFile(filepath.Join(b.root, "sdks/VERSION"))
	if err != nil {
		return err
	}
	m := module.Version{Path: "holdfast.dev/sdks/go", Version: "v" + strings.TrimSpace(string(version))}
	var out bytes.Buffer
	if err := zip.CreateFromVCS(&out, m, b.root, b.commit, "sdks/go"); err != nil {
		return err
	}
	return b.write("sdk/go-"+m.Version+".zip", out.Bytes())
}

func (b *builder) npmSDK(ctx context.Context) error {
	_, err := b.run(ctx, ".ci/sdk-typescript", "pack", filepath.Join(b.Folder, "sdk"))
	return err
}

func (b *builder) pythonSDK(ctx context.Context) error {
	_, err := b.run(ctx, ".ci/sdk-python", "wheel", filepath.Join(b.Folder, "sdk"))
	return err
}

var section = regexp.MustCompile(`(?m)^## .*$`)

// notes writes the section of the CHANGELOG: that of the version, otherwise Unreleased.
func (b *builder) notes(context.Context) error {
	text, err := os.ReadFile(filepath.Join(b.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	found, err := changes(string(text), b.Version)
	if err != nil {
		return err
	}
	return b.write("CHANGELOG.md", fmt.Appendf(nil, "# Holdfast %s\n\nReleased on %s from commit %s.\n\n%s\n", b.Version, b.date.Format("2006-01-02"), b.commit, found))
}

// changes returns the text of the section "## VERSION", which can continue with a date, or else of "## Unreleased".
func changes(text, version string) (string, error) {
	titles := section.FindAllStringIndex(text, -1)
	for _, title := range []string{version, "Unreleased"} {
		for i, at := range titles {
			if fields := strings.Fields(text[at[0]:at[1]]); len(fields) < 2 || strings.Trim(fields[1], "[]") != title {
				continue
			}
			end := len(text)
			if i+1 < len(titles) {
				end = titles[i+1][0]
			}
			if found := strings.TrimSpace(text[at[1]:end]); found != "" {
				return found, nil
			}
		}
	}
	return "", fmt.Errorf("CHANGELOG.md has no changes under %q or \"## Unreleased\"", "## "+version)
}

// list returns the files of the release in order, without checksums, signatures and keys.
func (b *builder) list() ([]string, error) {
	var files []string
	err := filepath.WalkDir(b.Folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		relative, err := filepath.Rel(b.Folder, path)
		if !slices.Contains([]string{trialKey, publicKey, checksums, checksums + ".sig"}, relative) {
			files = append(files, filepath.ToSlash(relative))
		}
		return err
	})
	return files, err
}

// sum writes the checksums in the format of sha256sum.
func (b *builder) sum() error {
	files, err := b.list()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(b.Folder, file))
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(content), file)
	}
	return b.write(checksums, out.Bytes())
}

// publishFiles publishes the files and their checksums as one artifact, which `oras pull` downloads, and returns its digest.
func (b *builder) publishFiles(ctx context.Context) (string, error) {
	files, err := b.list()
	if err != nil {
		return "", err
	}
	a := artifact{kind: releaseKind, config: blob{mediaType: emptyConfig, content: []byte("{}")}, annotations: b.labels("holdfast/release")}
	for _, file := range append(files, checksums) {
		content, err := os.ReadFile(filepath.Join(b.Folder, file))
		if err != nil {
			return "", err
		}
		a.layers = append(a.layers, blob{mediaType: anyFile, content: content, annotations: map[string]string{titleOfLayer: file}})
	}
	return b.publish(ctx, "holdfast/release", a)
}
