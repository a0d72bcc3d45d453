// Package publish builds and publishes a release. Two builds of one commit with one version of Go give the same bytes: everything but the
// signatures depends only on the commit and the version.
package publish

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"golang.org/x/mod/semver"
)

// Release describes what to build and where to publish it.
type Release struct {
	Root      string   // the checkout
	Version   string   // semantic, without "v"
	Registry  string   // host or host/path
	Key       string   // file with cosign's private key
	Password  string   // of the key
	Folder    string   // for the files; empty: bin/release/<version> in the checkout
	Source    string   // URL of the source code
	Services  []string // empty: all
	Platforms []string // such as linux/amd64
	Say       func(format string, args ...any)
}

// Image is a published image of a service.
type Image struct {
	Service    string            `json:"service"`
	Repository string            `json:"repository"` // without the registry
	Digest     string            `json:"digest"`     // of the index
	Platforms  map[string]string `json:"platforms"`  // digest by platform
}

// Index is the file images.json. The chart and the images have the same digests in every registry.
type Index struct {
	Version string  `json:"version"`
	Commit  string  `json:"commit"`
	Go      string  `json:"go"`
	Images  []Image `json:"images"`
	Chart   Image   `json:"chart"`
}

// Publish builds the release, publishes it and writes its files. It ends with the artifact that lists the files, so a release without
// this artifact is not complete and can be published again.
func (r *Release) Publish(ctx context.Context) error {
	source, err := r.check(ctx)
	if err != nil {
		return err
	}
	s, err := r.signer()
	if err != nil {
		return err
	}
	if err := r.clearFolder(); err != nil {
		return err
	}
	b := &builder{Release: r, checkout: source, signer: s}
	index := Index{Version: r.Version, Commit: source.commit, Go: source.goVersion}
	if err := b.buildAssets(ctx); err != nil {
		return err
	}
	for _, service := range r.Services {
		image, err := b.image(ctx, service)
		if err != nil {
			return fmt.Errorf("image of %s: %w", service, err)
		}
		r.Say("image    %s/%s:%s@%s", r.Registry, image.Repository, r.Version, image.Digest)
		index.Images = append(index.Images, image)
	}
	if index.Chart, err = b.chart(ctx, index.Images); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	r.Say("chart    %s/%s:%s@%s", r.Registry, index.Chart.Repository, r.Version, index.Chart.Digest)
	if err := b.files(ctx, index); err != nil {
		return err
	}
	digest, err := b.publishFiles(ctx)
	if err != nil {
		return fmt.Errorf("files: %w", err)
	}
	r.Say("files    %s/holdfast/release:%s@%s, and in %s", r.Registry, r.Version, digest, r.Folder)
	return nil
}

// check completes the release with defaults and reads the checkout.
func (r *Release) check(ctx context.Context) (*checkout, error) {
	if v := "v" + r.Version; !semver.IsValid(v) || semver.Build(v) != "" || semver.Canonical(v) != v {
		return nil, fmt.Errorf("--version %q: a version is MAJOR.MINOR.PATCH, such as 1.0.0 or 1.1.0-rc.1", r.Version)
	}
	host, _, _ := strings.Cut(r.Registry, "/")
	if tag, err := name.NewTag(r.Registry + "/holdfast/release:" + r.Version); err != nil || tag.RegistryStr() != host || strings.HasSuffix(host, ":") {
		return nil, fmt.Errorf("--registry %q: an address of a registry is HOST[:PORT][/PATH], such as registry.example.com", r.Registry)
	}
	root, err := filepath.Abs(r.Root)
	if err != nil {
		return nil, fmt.Errorf("--root: %w", err)
	}
	r.Root = root
	r.Folder = cmp.Or(r.Folder, filepath.Join(root, "bin/release", r.Version))
	known, err := services(root)
	if err != nil {
		return nil, err
	}
	for _, s := range r.Services {
		if !slices.Contains(known, s) {
			return nil, fmt.Errorf("--services %q: proto/services.yaml lists %s", s, strings.Join(known, ", "))
		}
	}
	if len(r.Services) == 0 {
		r.Services = known
	}
	return openCheckout(ctx, root, r.Version)
}

// loopback reports whether only programs on this machine reach the registry.
func (r *Release) loopback() bool {
	host, _, _ := strings.Cut(r.Registry, "/")
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// clearFolder removes the files of an earlier attempt, except a key for trials.
func (r *Release) clearFolder() error {
	if err := os.MkdirAll(r.Folder, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(r.Folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == trialKey || e.Name() == publicKey {
			continue
		}
		if err := os.RemoveAll(filepath.Join(r.Folder, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// write creates a file of the release.
func (r *Release) write(file string, content []byte) error {
	file = filepath.Join(r.Folder, file)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644) //nolint:gosec // the files are public
}

// indented returns JSON for people.
func indented(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	return append(text, '\n'), err
}
