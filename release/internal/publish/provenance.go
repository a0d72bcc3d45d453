package publish

// provenance is a predicate of SLSA 1.0. It names the commit and everything else that determines the image, and no times, so that it is
// the same wherever the release is built.
type provenance struct {
	BuildDefinition buildDefinition `json:"buildDefinition"`
	RunDetails      runDetails      `json:"runDetails"`
}

type buildDefinition struct {
	BuildType            string            `json:"buildType"`
	ExternalParameters   map[string]any    `json:"externalParameters"`
	InternalParameters   map[string]string `json:"internalParameters"`
	ResolvedDependencies []dependency      `json:"resolvedDependencies"`
}

type dependency struct {
	URI    string            `json:"uri"`
	Digest map[string]string `json:"digest"`
}

type runDetails struct {
	Builder struct {
		ID      string            `json:"id"`
		Version map[string]string `json:"version,omitempty"`
	} `json:"builder"`
}

// koVersion is the version of ko in go.mod.
const koVersion = "v0.19.1"

// buildType is the URI of the description of the parameters.
const buildType = "https://holdfast.dev/docs/releases/build/v1"

func (b *builder) provenance(repository string, platforms ...string) provenance {
	p := provenance{BuildDefinition: buildDefinition{
		BuildType:            buildType,
		ExternalParameters:   map[string]any{"repository": repository, "version": b.Version, "platforms": platforms, "source": b.Source, "revision": b.commit},
		InternalParameters:   map[string]string{"go": b.goVersion},
		ResolvedDependencies: []dependency{{URI: "git+" + b.Source, Digest: map[string]string{"gitCommit": b.commit}}},
	}}
	p.RunDetails.Builder.ID = "https://holdfast.dev/release"
	p.RunDetails.Builder.Version = map[string]string{"ko": koVersion}
	return p
}
