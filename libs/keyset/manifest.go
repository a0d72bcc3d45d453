package keyset

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Manifest is a file with Secrets of Kubernetes: YAML documents, or the list that `kubectl get secrets --output yaml` prints.
type Manifest struct {
	release   string
	documents []map[string]any
}

// NewManifest returns the manifest of a set.
func NewManifest(s Set, release string) *Manifest {
	m := &Manifest{release: release}
	for _, name := range Names() {
		values := map[string]any{}
		for setting, value := range s[name] {
			values[setting] = value
		}
		m.documents = append(m.documents, map[string]any{
			"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": map[string]any{"name": SecretName(release, name)}, "stringData": values,
		})
	}
	return m
}

var errManifest = errors.New("is not YAML with Secrets of Kubernetes")

// ParseManifest reads a manifest. Secrets of other names stay as they are.
func ParseManifest(text []byte, release string) (*Manifest, error) {
	m := &Manifest{release: release}
	for dec := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var document map[string]any
		err := dec.Decode(&document)
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return nil, errManifest // err can contain a part of the text
		}
		if document != nil {
			m.documents = append(m.documents, document)
		}
	}
}

// Text returns the manifest as YAML.
func (m *Manifest) Text() ([]byte, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	for _, document := range m.documents {
		if err := enc.Encode(document); err != nil {
			return nil, fmt.Errorf("encode the Secrets: %w", err)
		}
	}
	err := enc.Close()
	return out.Bytes(), err
}

// Set returns the settings in the Secrets of the release.
func (m *Manifest) Set() (Set, error) {
	set := Set{}
	for _, name := range Names() {
		secret := m.find(name)
		if secret == nil {
			continue
		}
		set[name] = map[string]string{}
		for setting, value := range mapping(secret["data"]) {
			raw, err := base64.StdEncoding.DecodeString(fmt.Sprint(value))
			if err != nil {
				return nil, fmt.Errorf("%s: %s is not base64, as values of data are", name, setting)
			}
			set[name][setting] = string(raw)
		}
		for setting, value := range mapping(secret["stringData"]) {
			set[name][setting] = fmt.Sprint(value)
		}
	}
	return set, nil
}

// Apply writes changed settings to the Secrets.
func (m *Manifest) Apply(changes []Change) {
	for _, c := range changes {
		secret := m.find(c.Secret)
		if data := mapping(secret["data"]); data[c.Setting] != nil {
			data[c.Setting] = base64.StdEncoding.EncodeToString([]byte(c.Value))
		}
		if text := mapping(secret["stringData"]); text[c.Setting] != nil {
			text[c.Setting] = c.Value
		}
	}
}

// find returns the Secret of a name in a Set, or nil.
func (m *Manifest) find(name string) map[string]any {
	want := SecretName(m.release, name)
	for _, document := range m.documents {
		items, _ := document["items"].([]any)
		for _, one := range append(slices.Clone(items), document) {
			if secret := mapping(one); secret["kind"] == "Secret" && mapping(secret["metadata"])["name"] == want {
				return secret
			}
		}
	}
	return nil
}

func mapping(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}
