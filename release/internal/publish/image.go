package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/ko/pkg/build"
	"github.com/sigstore/cosign/v3/pkg/oci"
	ocimutate "github.com/sigstore/cosign/v3/pkg/oci/mutate"
	ociremote "github.com/sigstore/cosign/v3/pkg/oci/remote"
)

// builder builds the parts of one release.
type builder struct {
	*Release
	*checkout
	signer *signer
}

// buildAssets builds the files that the services embed and that the repository does not contain, with the checkout's Makefile.
func (b *builder) buildAssets(ctx context.Context) error {
	args := []string{"--no-print-directory"}
	for _, service := range b.Services {
		for target, folder := range map[string]string{
			"style.css":     "internal/pages/assets",
			"scalar.js":     "internal/api/docs/assets",
			"minisearch.js": "internal/api/docs/assets",
		} {
			if found, _ := filepath.Glob(filepath.Join(b.root, "services", service, folder, ".gitkeep")); len(found) == 1 {
				args = append(args, filepath.Join("services", service, folder, target))
			}
		}
	}
	if len(args) == 1 {
		return nil
	}
	_, err := b.run(ctx, "make", args...)
	return err
}

// image builds the image of a service for all platforms, publishes it with its bills of materials, and signs it.
func (b *builder) image(ctx context.Context, service string) (Image, error) {
	folder := filepath.Join(b.root, "services", service)
	importPath, err := b.runIn(ctx, filepath.Join("services", service), "go", "list", ".")
	if err != nil {
		return Image{}, err
	}
	ko, err := build.NewGo(ctx, folder, b.options(service)...)
	if err != nil {
		return Image{}, err
	}
	result, err := ko.Build(ctx, build.StrictScheme+importPath)
	if err != nil {
		return Image{}, err
	}
	index, err := asIndex(result, b.Platforms[0])
	if err != nil {
		return Image{}, err
	}
	digest, err := index.Digest()
	if err != nil {
		return Image{}, err
	}
	image := Image{Service: service, Repository: "holdfast/" + service, Digest: digest.String(), Platforms: map[string]string{}}
	if err := b.refuseChange(ctx, image.Repository, digest); err != nil {
		return Image{}, err
	}
	if err := b.push(ctx, image, index); err != nil {
		return Image{}, err
	}
	return image, b.attest(ctx, index, image)
}

// asIndex returns the index that ko built, or an index of the image that it builds for a single platform.
func asIndex(result build.Result, platform string) (oci.SignedImageIndex, error) {
	if index, ok := result.(oci.SignedImageIndex); ok {
		return index, nil
	}
	image, ok := result.(oci.SignedImage)
	if !ok {
		return nil, fmt.Errorf("ko built %T", result)
	}
	p, err := v1.ParsePlatform(platform)
	if err != nil {
		return nil, err
	}
	return ocimutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), ocimutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: p}}), nil
}

// options returns ko's options. The flags are those of .ci/image, so both build the same executable.
func (b *builder) options(service string) []build.Option {
	created := v1.Time{Time: b.date}
	options := []build.Option{
		build.WithBaseImages(func(ctx context.Context, _ string) (name.Reference, build.Result, error) { return b.base(ctx, service) }),
		build.WithPlatforms(b.Platforms...),
		build.WithTrimpath(true),
		build.WithDefaultFlags([]string{"-buildvcs=false", "-p=2"}),
		build.WithLdflags([]string{
			"-s", "-w", "-buildid=",
			"-X holdfast.dev/libs/command.version=" + b.Version, "-X holdfast.dev/libs/command.commit=" + b.commit,
		}),
		build.WithDefaultEnv([]string{"GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT="}),
		build.WithCreationTime(created),
		build.WithKoDataCreationTime(created),
		build.WithSBOMDir(filepath.Join(b.Folder, "sbom")),
		build.WithJobs(1), // each build uses all processors, and most of the memory of a small machine
	}
	for key, value := range b.labels("holdfast/" + service) {
		options = append(options, build.WithLabel(key, value), build.WithAnnotation(key, value))
	}
	return options
}

// labels returns the labels and annotations of the OCI specification.
func (b *builder) labels(title string) map[string]string {
	const prefix = "org.opencontainers.image."
	return map[string]string{
		prefix + "title":    title,
		prefix + "version":  b.Version,
		prefix + "revision": b.commit,
		prefix + "created":  b.date.Format("2006-01-02T15:04:05Z"),
		prefix + "source":   b.Source,
		prefix + "licenses": "Apache-2.0",
		prefix + "vendor":   "Holdfast",
	}
}

// refuseChange fails if the version is in the registry with other content: a published version never changes.
func (b *builder) refuseChange(ctx context.Context, repository string, digest v1.Hash) error {
	tag, err := name.NewTag(b.Registry + "/" + repository + ":" + b.Version)
	if err != nil {
		return err
	}
	published, err := remote.Head(tag, b.remote(ctx)...)
	var failure *transport.Error
	switch {
	case errors.As(err, &failure) && failure.StatusCode == http.StatusNotFound:
		return nil
	case err != nil:
		return fmt.Errorf("registry %s: %w", b.Registry, err)
	case published.Digest != digest:
		return fmt.Errorf("%s is published with the digest %s, and this commit gives %s: choose another version", tag, published.Digest, digest)
	}
	return nil
}

// remote returns the options of requests to the registry. The login is that of docker or podman.
func (b *builder) remote(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
}

// push publishes the index under the version, and the bill of materials of each of its images as ko does.
func (b *builder) push(ctx context.Context, image Image, index oci.SignedImageIndex) error {
	tag, err := name.NewTag(b.Registry + "/" + image.Repository + ":" + b.Version)
	if err != nil {
		return err
	}
	if err := remote.WriteIndex(tag, index, b.remote(ctx)...); err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, m := range manifest.Manifests {
		child, err := index.SignedImage(m.Digest)
		if err != nil {
			return err
		}
		file, err := child.Attachment("sbom")
		if err != nil {
			return err
		}
		ref, err := ociremote.SBOMTag(tag.Digest(m.Digest.String()), ociremote.WithRemoteOptions(b.remote(ctx)...))
		if err != nil {
			return err
		}
		if err := remote.Write(ref, file, b.remote(ctx)...); err != nil {
			return err
		}
	}
	return nil
}

// attest signs the index and each of its images, and attaches the provenance and the bills of materials as attestations.
func (b *builder) attest(ctx context.Context, index oci.SignedImageIndex, image Image) error {
	repository, err := name.NewRepository(b.Registry + "/" + image.Repository)
	if err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, m := range manifest.Manifests {
		image.Platforms[m.Platform.String()] = m.Digest.String()
		child, err := index.SignedImage(m.Digest)
		if err != nil {
			return err
		}
		bill, err := attachment(child)
		if err != nil {
			return err
		}
		digest := repository.Digest(m.Digest.String())
		if err := b.signer.sign(ctx, b, digest); err != nil {
			return err
		}
		if err := b.signer.attest(ctx, b, digest, predicateSPDX, bill); err != nil {
			return err
		}
		if err := b.signer.attest(ctx, b, digest, predicateSLSA, b.provenance(image.Repository, m.Platform.String())); err != nil {
			return err
		}
	}
	digest := repository.Digest(image.Digest)
	if err := b.signer.sign(ctx, b, digest); err != nil {
		return err
	}
	return b.signer.attest(ctx, b, digest, predicateSLSA, b.provenance(image.Repository, b.Platforms...))
}

// attachment returns the bill of materials that ko attached to an image.
func attachment(image oci.SignedImage) (jsonText, error) {
	file, err := image.Attachment("sbom")
	if err != nil {
		return nil, err
	}
	layers, err := file.Layers()
	if err != nil {
		return nil, err
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }()
	return io.ReadAll(content)
}
