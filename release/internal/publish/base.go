package publish

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/ko/pkg/build"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// base returns the image below the executable of a service: what k8s/Dockerfile copies, without a pull. The certificates come from a Go
// module, so that they do not depend on this machine. ko puts the executable into /ko-app; the link keeps the path /service.
func (b *builder) base(ctx context.Context, service string) (name.Reference, build.Result, error) {
	root, err := b.run(ctx, "go", "env", "GOROOT")
	if err != nil {
		return nil, nil, err
	}
	zones, err := os.ReadFile(filepath.Join(root, "lib/time/zoneinfo.zip"))
	if err != nil {
		return nil, nil, err
	}
	files, err := layer(b.date, []entry{
		{name: "etc/ssl/certs/ca-certificates.crt", content: certificates()},
		{name: "zoneinfo.zip", content: zones},
	})
	if err != nil {
		return nil, nil, err
	}
	link, err := layer(b.date, []entry{{name: "service", link: "/ko-app/" + service}})
	if err != nil {
		return nil, nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, platform := range b.Platforms {
		p, err := v1.ParsePlatform(platform)
		if err != nil {
			return nil, nil, fmt.Errorf("--platforms %q: a platform is OS/ARCHITECTURE, such as linux/amd64", platform)
		}
		image, err := baseImage(p, b.date, files, link)
		if err != nil {
			return nil, nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: p}})
	}
	ref, err := name.ParseReference("holdfast.dev/base:" + b.Version) // ko records the name; no registry has it
	return ref, index, err
}

func baseImage(p *v1.Platform, date time.Time, layers ...v1.Layer) (v1.Image, error) {
	image, err := mutate.ConfigFile(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), &v1.ConfigFile{
		OS: p.OS, Architecture: p.Architecture, Created: v1.Time{Time: date},
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{Env: []string{"ZONEINFO=/zoneinfo.zip"}, User: "65532:65532"},
	})
	if err != nil {
		return nil, err
	}
	for _, l := range layers {
		if image, err = mutate.Append(image, mutate.Addendum{Layer: l, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: date}, CreatedBy: "release"}}); err != nil {
			return nil, err
		}
	}
	return image, nil
}

// certificates returns the roots of Mozilla's program in PEM, without those that it trusts only for some certificates.
func certificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer does not fail
		}
	}
	return out.Bytes()
}

// entry is a file of an archive, or a symbolic link.
type entry struct {
	name, link string
	content    []byte
}

// archive returns the files as a tar with their folders. All of them belong to root, and have the same time.
func archive(date time.Time, entries []entry) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	folders := map[string]bool{}
	for _, e := range entries {
		parts := strings.Split(e.name, "/")
		for i := 1; i < len(parts); i++ {
			folder := strings.Join(parts[:i], "/") + "/"
			if folders[folder] {
				continue
			}
			folders[folder] = true
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder, Mode: 0o755, ModTime: date, Format: tar.FormatPAX}); err != nil {
				return nil, err
			}
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: 0o644, Size: int64(len(e.content)), ModTime: date, Format: tar.FormatPAX}
		if e.link != "" {
			h = &tar.Header{Typeflag: tar.TypeSymlink, Name: e.name, Linkname: e.link, Mode: 0o777, ModTime: date, Format: tar.FormatPAX}
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func layer(date time.Time, entries []entry) (v1.Layer, error) {
	content, err := archive(date, entries)
	if err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithCompressedCaching, tarball.WithMediaType(types.OCILayer))
}
