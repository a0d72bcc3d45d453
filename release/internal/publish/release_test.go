package publish

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/sigstore/cosign/v3/pkg/cosign"
	"github.com/sigstore/cosign/v3/pkg/oci"
	ociremote "github.com/sigstore/cosign/v3/pkg/oci/remote"
	"github.com/sigstore/sigstore/pkg/signature"

	"holdfast.dev/libs/testservers"
)

const (
	repositoryRoot = "../../.."
	version        = "9.8.7"
)

// full releases all services for all platforms and verifies them with the programs cosign and helm, as `make release-test` does.
var full = os.Getenv("TEST_SCALE") == "full"

// trial is one release of the commit of this checkout, from a clone of its own.
type trial struct {
	Release
	index Index
}

// TestRelease releases a commit twice, from two folders to two registries, and checks the result as its users do.
func TestRelease(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "cosign.key")
	pair, err := cosign.GenerateKeyPair(func(bool) ([]byte, error) { return []byte("password"), nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, pair.PrivateBytes, 0o600); err != nil {
		t.Fatal(err)
	}
	trials := make([]*trial, 2)
	for i := range trials {
		trials[i] = newTrial(t, key)
	}
	for _, tr := range trials {
		if err := tr.Publish(t.Context()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(tr.Folder, "images.json"))
		if err != nil || json.Unmarshal(text, &tr.index) != nil {
			t.Fatalf("images.json: %v\n%s", err, text)
		}
	}
	first := trials[0]
	t.Run("both are equal", func(t *testing.T) { equal(t, trials[0], trials[1]) })
	for _, image := range first.index.Images {
		t.Run("image of "+image.Service, func(t *testing.T) { first.checkImage(t, image) })
	}
	t.Run("chart", first.checkChart)
	t.Run("files", first.checkFiles)
	t.Run("the same again", func(t *testing.T) {
		if err := first.Publish(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("altered image", first.checkAltered)
}

// newTrial clones the checkout and starts a registry.
func newTrial(t *testing.T, key string) *trial {
	t.Helper()
	root := filepath.Join(t.TempDir(), "a-folder-of-its-own")
	run(t, ".", "git", "clone", "--quiet", "--no-checkout", repositoryRoot, root)
	run(t, root, "git", "checkout", "--quiet", run(t, ".", "git", "rev-parse", "HEAD"))
	tr := &trial{Release: Release{
		Root: root, Version: version, Registry: startRegistry(t), Key: key, Password: "password", Source: "https://example.com/source",
		Services: []string{plainService(t, root)}, Platforms: []string{"linux/" + runtime.GOARCH}, Say: t.Logf,
	}}
	if full {
		tr.Services, tr.Platforms = nil, []string{"linux/amd64", "linux/arm64"}
	}
	return tr
}

// plainService returns the first service with a database that embeds no files of npm.
func plainService(t *testing.T, root string) string {
	t.Helper()
	names, err := services(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range names {
		if _, err := os.Stat(filepath.Join(root, "services", s, "internal/pages")); err != nil {
			return s
		}
	}
	t.Fatal("each service has pages")
	return ""
}

// startRegistry starts a registry on loopback and returns its address.
func startRegistry(t *testing.T) string {
	t.Helper()
	address := make(chan string, 1)
	var done sync.WaitGroup
	t.Cleanup(done.Wait) // after the context of the test has ended
	done.Go(func() {
		if err := ServeRegistry(t.Context(), "127.0.0.1:0", func(a string) { address <- a }); err != nil {
			t.Error(err)
			close(address)
		}
	})
	return <-address
}

func run(t *testing.T, folder, command string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command, args...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", command, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// equal compares everything but signatures.
func equal(t *testing.T, a, b *trial) {
	t.Helper()
	for _, file := range []string{"images.json", checksums} {
		one, err := os.ReadFile(filepath.Join(a.Folder, file))
		if err != nil {
			t.Fatal(err)
		}
		two, err := os.ReadFile(filepath.Join(b.Folder, file))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(one, two) {
			t.Errorf("%s differs:\n%s\n%s", file, one, two)
		}
	}
	if one, two := a.digest(t, "holdfast/release"), b.digest(t, "holdfast/release"); one != two {
		t.Errorf("the digest of the files is %s and %s", one, two)
	}
}

// digest returns the digest of a tag.
func (tr *trial) digest(t *testing.T, repository string) string {
	t.Helper()
	d, err := remote.Head(tr.tag(t, repository))
	if err != nil {
		t.Fatal(err)
	}
	return d.Digest.String()
}

func (tr *trial) tag(t *testing.T, repository string) name.Tag {
	t.Helper()
	tag, err := name.NewTag(tr.Registry + "/" + repository + ":" + tr.Version)
	if err != nil {
		t.Fatal(err)
	}
	return tag
}

// checkImage checks the layout, the signatures, the executable and the bill of materials of a service's image for each platform.
func (tr *trial) checkImage(t *testing.T, image Image) {
	tag := tr.tag(t, image.Repository)
	if got := tr.digest(t, image.Repository); got != image.Digest {
		t.Errorf("the tag has the digest %s, images.json has %s", got, image.Digest)
	}
	tr.verify(t, tag.Digest(image.Digest))
	tr.checkProvenance(t, tag.Digest(image.Digest), image)
	if len(image.Platforms) != len(tr.Platforms) {
		t.Errorf("the platforms are %v, want %v", image.Platforms, tr.Platforms)
	}
	for platform, digest := range image.Platforms {
		ref := tag.Digest(digest)
		tr.verify(t, ref)
		tr.checkProvenance(t, ref, image)
		child, err := remote.Image(ref)
		if err != nil {
			t.Fatal(err)
		}
		files := extract(t, child)
		tr.checkConfig(t, image.Service, platform, child, files)
		executable := filepath.Join(t.TempDir(), "executable")
		if err := os.WriteFile(executable, files["ko-app/"+image.Service].content, 0o755); err != nil {
			t.Fatal(err)
		}
		tr.checkExecutable(t, image.Service, platform, executable)
		tr.checkBill(t, ref, executable)
	}
}

// extract returns the files of an image.
func extract(t *testing.T, image v1.Image) map[string]entry {
	t.Helper()
	content := mutate.Extract(image)
	defer func() { _ = content.Close() }()
	files, err := unpack(content)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func (tr *trial) checkConfig(t *testing.T, service, platform string, image v1.Image, files map[string]entry) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if got := path.Join(config.OS, config.Architecture); got != platform {
		t.Errorf("the platform is %s, want %s", got, platform)
	}
	if c := config.Config; c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/ko-app/" + service}) || !slices.Contains(c.Env, "ZONEINFO=/zoneinfo.zip") {
		t.Errorf("the user is %q, the entry point %q, and the environment %q", c.User, c.Entrypoint, c.Env)
	}
	if link := files["service"].link; link != "/ko-app/"+service {
		t.Errorf("/service leads to %q", link)
	}
	if n := bytes.Count(files["etc/ssl/certs/ca-certificates.crt"].content, []byte("BEGIN CERTIFICATE")); n < 100 {
		t.Errorf("the image has %d root certificates, want at least 100", n)
	}
	if zones := files["zoneinfo.zip"].content; !bytes.Contains(zones, []byte("Europe/Berlin")) {
		t.Errorf("the image has no time zones")
	}
	commit := run(t, tr.Root, "git", "rev-parse", "HEAD")
	created := run(t, tr.Root, "git", "show", "-s", "--format=%ct", "HEAD")
	if got := fmt.Sprint(config.Created.Unix()); got != created {
		t.Errorf("the image was created at %s, the commit at %s", got, created)
	}
	for key, want := range map[string]string{
		"title": "holdfast/" + service, "version": version, "revision": commit, "source": tr.Source, "licenses": "Apache-2.0",
		"created": config.Created.UTC().Format("2006-01-02T15:04:05Z"),
	} {
		if got := config.Config.Labels["org.opencontainers.image."+key]; got != want {
			t.Errorf("the label %s is %q, want %q", key, got, want)
		}
	}
}

// checkExecutable compares the executable with that of `make images`, and looks for the folder in which it was built.
func (tr *trial) checkExecutable(t *testing.T, service, platform, executable string) {
	t.Helper()
	content, err := os.ReadFile(executable)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(content, []byte(tr.Root)) || bytes.Contains(content, []byte("a-folder-of-its-own")) {
		t.Error("the executable contains the path of the checkout")
	}
	if platform != "linux/"+runtime.GOARCH {
		return
	}
	sum := run(t, tr.Root, ".ci/image", "--binary-only", service, version)
	if got := fmt.Sprintf("%x", sha256.Sum256(content)); got != sum {
		t.Errorf("the executable has the checksum %s, that of .ci/image %s", got, sum)
	}
}

// checkBill compares the bill of materials with `go version -m`.
func (tr *trial) checkBill(t *testing.T, ref name.Digest, executable string) {
	t.Helper()
	expected := map[string]string{}
	for line := range strings.Lines(run(t, ".", "go", "version", "-m", executable)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) > 1 && fields[0] == "mod":
			expected[fields[1]] = ""
		case len(fields) > 3 && fields[0] == "dep":
			expected[fields[1]] = fields[2] + " " + fmt.Sprintf("%x", decode(t, []byte(strings.TrimPrefix(fields[3], "h1:"))))
		case len(fields) > 2 && fields[0] == "dep": // another module of this repository
			expected[fields[1]] = fields[2]
		}
	}
	if len(expected) < 10 {
		t.Fatalf("go version -m lists %v", expected)
	}
	file, err := ociremote.SBOMTag(ref)
	if err != nil {
		t.Fatal(err)
	}
	attached, err := remote.Image(file)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := attached.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	if got := modules(t, text); !maps.Equal(got, expected) {
		t.Errorf("the bill of materials lists\n%v\ngo version -m\n%v", got, expected)
	}
	if signed := tr.attestation(t, ref, predicateSPDX); !maps.Equal(modules(t, signed.Predicate), expected) {
		t.Errorf("the signed bill of materials lists %v", modules(t, signed.Predicate))
	}
}

// modules returns the versions of the Go modules in an SPDX document.
func modules(t *testing.T, text []byte) map[string]string {
	t.Helper()
	var document struct {
		SPDXVersion string `json:"spdxVersion"`
		Packages    []struct {
			Name         string
			VersionInfo  string
			Checksums    []struct{ ChecksumValue string }
			ExternalRefs []struct{ ReferenceLocator string }
		}
	}
	if err := json.Unmarshal(text, &document); err != nil || !strings.HasPrefix(document.SPDXVersion, "SPDX-2.") {
		t.Fatalf("%v: %.300s", err, text)
	}
	found := map[string]string{}
	for _, p := range document.Packages {
		for _, r := range p.ExternalRefs {
			if strings.HasPrefix(r.ReferenceLocator, "pkg:golang/") {
				found[p.Name] = p.VersionInfo
				if len(p.Checksums) > 0 {
					found[p.Name] += " " + p.Checksums[0].ChecksumValue
				}
			}
		}
	}
	return found
}

// verify checks the signature of a digest as `cosign verify` does.
func (tr *trial) verify(t *testing.T, ref name.Reference) {
	t.Helper()
	if _, err := tr.signatures(t, ref); err != nil {
		t.Errorf("%s: %v", ref, err)
	}
	if full {
		run(t, ".", os.Getenv("COSIGN"), "verify", "--key", filepath.Join(tr.Folder, publicKey), "--insecure-ignore-tlog", ref.String())
	}
}

func (tr *trial) signatures(t *testing.T, ref name.Reference) ([]oci.Signature, error) {
	t.Helper()
	found, _, err := cosign.VerifyImageSignatures(t.Context(), ref, tr.options(t, cosign.SimpleClaimVerifier))
	return found, err
}

func (tr *trial) options(t *testing.T, claims func(oci.Signature, v1.Hash, map[string]any) error) *cosign.CheckOpts {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tr.Folder, publicKey))
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := signature.LoadVerifierFromPEMFile(filepath.Join(tr.Folder, publicKey), 5) // crypto.SHA256
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return &cosign.CheckOpts{SigVerifier: verifier, IgnoreTlog: true, Offline: true, ClaimVerifier: claims}
}

// signedStatement is an in-toto statement.
type signedStatement struct {
	PredicateType string
	Subject       []struct{ Digest map[string]string }
	Predicate     json.RawMessage
}

// attestation returns the verified statement of a type about a digest.
func (tr *trial) attestation(t *testing.T, ref name.Digest, predicateType string) signedStatement {
	t.Helper()
	found, _, err := cosign.VerifyImageAttestations(t.Context(), ref, tr.options(t, cosign.IntotoSubjectClaimVerifier))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		text, err := f.Payload()
		if err != nil {
			t.Fatal(err)
		}
		var envelope struct{ Payload []byte }
		var s signedStatement
		if json.Unmarshal(text, &envelope) != nil || json.Unmarshal(envelope.Payload, &s) != nil {
			t.Fatalf("attestation: %s", text)
		}
		if s.PredicateType == predicateType {
			return s
		}
	}
	t.Fatalf("%s has no attestation of the type %s", ref, predicateType)
	return signedStatement{}
}

func (tr *trial) checkProvenance(t *testing.T, ref name.Digest, image Image) {
	t.Helper()
	s := tr.attestation(t, ref, predicateSLSA)
	var p provenance
	if err := json.Unmarshal(s.Predicate, &p); err != nil {
		t.Fatal(err)
	}
	if len(s.Subject) != 1 || "sha256:"+s.Subject[0].Digest["sha256"] != ref.DigestStr() {
		t.Errorf("the subject is %v, want %s", s.Subject, ref)
	}
	commit := run(t, tr.Root, "git", "rev-parse", "HEAD")
	d := p.BuildDefinition
	if d.ExternalParameters["repository"] != image.Repository || d.ExternalParameters["version"] != version || d.ResolvedDependencies[0].Digest["gitCommit"] != commit {
		t.Errorf("the provenance is %s", s.Predicate)
	}
	if !strings.HasPrefix(d.InternalParameters["go"], "go1.") || !strings.HasPrefix(p.RunDetails.Builder.Version["ko"], "v") {
		t.Errorf("the provenance names no versions of the tools: %s", s.Predicate)
	}
}

// checkChart renders the published chart and looks for the digests.
func (tr *trial) checkChart(t *testing.T) {
	tr.verify(t, tr.tag(t, tr.index.Chart.Repository).Digest(tr.index.Chart.Digest))
	helm := testservers.Tool(t, "HELM")
	out := run(t, ".", helm, "template", "holdfast", "oci://"+tr.Registry+"/"+tr.index.Chart.Repository, "--version", version, "--plain-http",
		"--kube-version", "1.30.0", "--set", "defaults.image.registry="+tr.Registry)
	for _, image := range tr.index.Images {
		if want := fmt.Sprintf("image: %s/%s@%s\n", tr.Registry, image.Repository, image.Digest); !strings.Contains(out, want) {
			t.Errorf("the chart renders no %q", want)
		}
	}
	for line := range strings.Lines(out) {
		if image, ok := strings.CutPrefix(strings.TrimSpace(line), "image: "); full && ok && !strings.Contains(image, "@sha256:") {
			t.Errorf("the chart refers to an image by its tag: %s", image)
		}
	}
	shown := run(t, ".", helm, "show", "chart", "oci://"+tr.Registry+"/"+tr.index.Chart.Repository, "--version", version, "--plain-http")
	if !strings.Contains(shown, "\nversion: "+version) || !strings.Contains(shown, "appVersion: "+version) {
		t.Errorf("Chart.yaml is\n%s", shown)
	}
}

// checkFiles downloads the files from the registry and verifies their checksums and the signature of the checksums.
func (tr *trial) checkFiles(t *testing.T) {
	ref := tr.tag(t, "holdfast/release")
	tr.verify(t, ref)
	published, err := remote.Get(ref)
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := json.Unmarshal(published.Manifest, &m); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	var names []string
	for _, l := range m.Layers {
		file := l.Annotations[titleOfLayer]
		names = append(names, file)
		content := tr.blob(t, ref.Digest(l.Digest.String()))
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, folder, "sha256sum", "--check", "--strict", "--quiet", checksums)
	for _, pattern := range []string{
		"images.json", "CHANGELOG.md", "platform-" + version + ".tgz", "contract/openapi-full.json", "contract/openapi-sdk.json", "contract/openapi-webhooks.json", "collections.tar",
		"sdk/go-v*.zip", "sdk/holdfast-sdk-*.tgz", "sdk/holdfast-*.whl", "sbom/*-linux-" + runtime.GOARCH + ".spdx.json",
	} {
		if !slices.ContainsFunc(names, func(n string) bool { ok, _ := path.Match(pattern, n); return ok }) {
			t.Errorf("no file matches %s: %q", pattern, names)
		}
	}
	sums, err := os.Open(filepath.Join(folder, checksums))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sums.Close() }()
	encoded, err := os.ReadFile(filepath.Join(tr.Folder, checksums+".sig"))
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.options(t, nil).SigVerifier.VerifySignature(bytes.NewReader(decode(t, encoded)), sums); err != nil {
		t.Error(err)
	}
	if full {
		run(t, folder, os.Getenv("COSIGN"), "verify-blob", "--key", filepath.Join(tr.Folder, publicKey), "--insecure-ignore-tlog", "--new-bundle-format=false",
			"--signature", filepath.Join(tr.Folder, checksums+".sig"), checksums)
	}
}

func (tr *trial) blob(t *testing.T, ref name.Digest) []byte {
	t.Helper()
	l, err := remote.Layer(ref)
	if err != nil {
		t.Fatal(err)
	}
	content, err := l.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	text, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// checkAltered replaces a published image and its signature, as an attacker with access to the registry can.
func (tr *trial) checkAltered(t *testing.T) {
	image := tr.index.Images[0]
	tag := tr.tag(t, image.Repository)
	index, err := remote.Index(tag)
	if err != nil {
		t.Fatal(err)
	}
	altered := mutate.Annotations(index, map[string]string{"altered": "true"}).(v1.ImageIndex)
	if err := remote.WriteIndex(tag, altered); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.signatures(t, tag); err == nil {
		t.Error("an altered image without a signature is accepted")
	}
	digest, err := altered.Digest()
	if err != nil {
		t.Fatal(err)
	}
	from, to := signatureTag(tag, image.Digest), signatureTag(tag, digest.String())
	original, err := remote.Image(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(to, original); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.signatures(t, tag); err == nil {
		t.Error("an altered image with the signature of the original is accepted")
	}
	if full {
		out, err := exec.CommandContext(t.Context(), os.Getenv("COSIGN"), "verify", "--key", filepath.Join(tr.Folder, publicKey), "--insecure-ignore-tlog", tag.String()).CombinedOutput()
		if err == nil {
			t.Errorf("cosign verify accepts an altered image:\n%s", out)
		}
	}
	if err := tr.Publish(t.Context()); err == nil || !strings.Contains(err.Error(), "choose another version") {
		t.Errorf("the release replaces other content of its version: %v", err)
	}
}

// signatureTag returns where cosign finds the signatures of a digest.
func signatureTag(tag name.Tag, digest string) name.Tag {
	return tag.Tag(strings.Replace(digest, ":", "-", 1) + ".sig")
}
