package publish

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/sigstore/cosign/v3/pkg/cosign"
	cosignremote "github.com/sigstore/cosign/v3/pkg/cosign/remote"
	"github.com/sigstore/cosign/v3/pkg/oci/mutate"
	ociremote "github.com/sigstore/cosign/v3/pkg/oci/remote"
	"github.com/sigstore/cosign/v3/pkg/oci/static"
	"github.com/sigstore/cosign/v3/pkg/types"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"
	"github.com/sigstore/sigstore/pkg/signature/options"
	"github.com/sigstore/sigstore/pkg/signature/payload"
)

const (
	trialKey  = "cosign.key" // files in the folder of the release
	publicKey = "cosign.pub"

	predicateSPDX = "https://spdx.dev/Document"
	predicateSLSA = "https://slsa.dev/provenance/v1"
	statementType = "https://in-toto.io/Statement/v1"
	payloadType   = "application/vnd.in-toto+json"
)

// signer signs with a key of cosign. `cosign verify` and `cosign verify-attestation` accept the result.
type signer struct{ signature.SignerVerifier }

// signer reads the key and writes the public key into the folder of the release. A registry on loopback needs no key: the release then
// creates one in the folder, for a trial.
func (r *Release) signer() (*signer, error) {
	file := r.Key
	if file == "" {
		if !r.loopback() {
			return nil, errors.New("--key is missing: pass the file of a private key that `cosign generate-key-pair` created")
		}
		file = filepath.Join(r.Folder, trialKey)
		if err := r.createTrialKey(file); err != nil {
			return nil, err
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--key: %w", err)
	}
	key, err := cosign.LoadPrivateKey(text, []byte(r.Password), nil)
	if err != nil {
		return nil, fmt.Errorf("--key %s: %w; COSIGN_PASSWORD must have its password", file, err)
	}
	public, err := key.PublicKey()
	if err != nil {
		return nil, err
	}
	encoded, err := cryptoutils.MarshalPublicKeyToPEM(public)
	if err != nil {
		return nil, err
	}
	return &signer{key}, r.write(publicKey, encoded)
}

func (r *Release) createTrialKey(file string) error {
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	pair, err := cosign.GenerateKeyPair(func(bool) ([]byte, error) { return []byte(r.Password), nil })
	if err != nil {
		return err
	}
	r.Say("key      %s is new: use it only for trials", file)
	if err := os.MkdirAll(r.Folder, 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, pair.PrivateBytes, 0o600)
}

// sign publishes a signature of the digest. Repeating it adds none.
func (s *signer) sign(ctx context.Context, b *builder, digest name.Digest) error {
	text, err := payload.Cosign{Image: digest}.MarshalJSON()
	if err != nil {
		return err
	}
	signed, err := s.SignMessage(bytes.NewReader(text), options.WithContext(ctx))
	if err != nil {
		return err
	}
	sig, err := static.NewSignature(text, base64.StdEncoding.EncodeToString(signed))
	if err != nil {
		return err
	}
	remote := ociremote.WithRemoteOptions(b.remote(ctx)...)
	entity, err := mutate.AttachSignatureToEntity(ociremote.SignedUnknown(digest, remote), sig, mutate.WithDupeDetector(cosignremote.NewDupeDetector(s)))
	if err != nil {
		return err
	}
	return ociremote.WriteSignatures(digest.Repository, entity, remote)
}

// jsonText is a JSON document that is copied as it is.
type jsonText = json.RawMessage

// statement is an in-toto statement about one subject.
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     any       `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// attest publishes a signed statement about the digest. It replaces an earlier statement of the same type.
func (s *signer) attest(ctx context.Context, b *builder, digest name.Digest, predicateType string, predicate any) error {
	text, err := json.Marshal(statement{
		Type:          statementType,
		Subject:       []subject{{Name: digest.RepositoryStr(), Digest: map[string]string{"sha256": hex(digest)}}},
		PredicateType: predicateType,
		Predicate:     predicate,
	})
	if err != nil {
		return err
	}
	signed, err := dsse.WrapSigner(s, payloadType).SignMessage(bytes.NewReader(text), options.WithContext(ctx))
	if err != nil {
		return err
	}
	att, err := static.NewAttestation(signed, static.WithLayerMediaType(types.DssePayloadType), static.WithAnnotations(map[string]string{"predicateType": predicateType}))
	if err != nil {
		return err
	}
	remote := ociremote.WithRemoteOptions(b.remote(ctx)...)
	entity, err := mutate.AttachAttestationToEntity(ociremote.SignedUnknown(digest, remote), att,
		mutate.WithDupeDetector(cosignremote.NewDupeDetector(s)), mutate.WithReplaceOp(cosignremote.NewReplaceOp(predicateType)))
	if err != nil {
		return err
	}
	return ociremote.WriteAttestations(digest.Repository, entity, remote)
}

// signFile writes the signature of a file next to it, for `cosign verify-blob`.
func (s *signer) signFile(r *Release, file string) error {
	text, err := os.ReadFile(filepath.Join(r.Folder, file))
	if err != nil {
		return err
	}
	signed, err := s.SignMessage(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return r.write(file+".sig", []byte(base64.StdEncoding.EncodeToString(signed)))
}

// hex returns a digest without the name of its algorithm.
func hex(digest name.Digest) string { return digest.DigestStr()[len("sha256:"):] }
