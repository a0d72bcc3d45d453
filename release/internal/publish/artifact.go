package publish

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// artifact is an OCI artifact, which is not an image.
type artifact struct {
	kind        string // artifactType; empty: that of the config
	config      blob
	layers      []blob
	annotations map[string]string
}

type blob struct {
	mediaType   string
	content     []byte
	annotations map[string]string
}

// manifest is the manifest of an artifact. The library's type has no artifactType.
type manifest struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     types.MediaType   `json:"mediaType"`
	ArtifactType  string            `json:"artifactType,omitempty"`
	Config        v1.Descriptor     `json:"config"`
	Layers        []v1.Descriptor   `json:"layers"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

// rawManifest is a manifest that is published as it is.
type rawManifest []byte

func (m rawManifest) RawManifest() ([]byte, error) { return m, nil }

func (rawManifest) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// publish uploads the artifact with the version as its tag, signs it and returns its digest.
func (b *builder) publish(ctx context.Context, repository string, a artifact) (string, error) {
	tag, err := name.NewTag(b.Registry + "/" + repository + ":" + b.Version)
	if err != nil {
		return "", err
	}
	m := manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: a.kind, Annotations: a.annotations}
	if m.Config, err = b.upload(ctx, tag.Repository, a.config); err != nil {
		return "", err
	}
	for _, l := range a.layers {
		d, err := b.upload(ctx, tag.Repository, l)
		if err != nil {
			return "", err
		}
		m.Layers = append(m.Layers, d)
	}
	text, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	digest, err := static.NewLayer(text, m.MediaType).Digest()
	if err != nil {
		return "", err
	}
	if err := b.refuseChange(ctx, repository, digest); err != nil {
		return "", err
	}
	if err := remote.Put(tag, rawManifest(text), b.remote(ctx)...); err != nil {
		return "", fmt.Errorf("%s: %w", tag, err)
	}
	return digest.String(), b.signer.sign(ctx, b, tag.Digest(digest.String()))
}

// upload uploads a blob, unless the registry has it, and returns its descriptor.
func (b *builder) upload(ctx context.Context, repository name.Repository, c blob) (v1.Descriptor, error) {
	l := static.NewLayer(c.content, types.MediaType(c.mediaType))
	if err := remote.WriteLayer(repository, l, b.remote(ctx)...); err != nil {
		return v1.Descriptor{}, fmt.Errorf("%s: %w", repository, err)
	}
	digest, err := l.Digest()
	return v1.Descriptor{MediaType: types.MediaType(c.mediaType), Digest: digest, Size: int64(len(c.content)), Annotations: c.annotations}, err
}
