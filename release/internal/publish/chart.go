package publish

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	chartFolder    = "charts/platform"
	chartConfig    = "application/vnd.cncf.helm.config.v1+json"
	chartContent   = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	chartReference = "holdfast/charts/platform"
)

// chart packages the chart with the digests of the images and publishes it. It names no registry, so that its digest is the same in a
// mirror; defaults.image.registry names it at installation. `helm package` is not used, because it writes the current time.
func (b *builder) chart(ctx context.Context, images []Image) (Image, error) {
	list, err := b.run(ctx, "git", "ls-files", chartFolder)
	if err != nil {
		return Image{}, err
	}
	var entries []entry
	var metadata []byte
	for file := range strings.Lines(list) {
		file = strings.TrimSpace(file)
		content, err := os.ReadFile(filepath.Join(b.root, file))
		if err != nil {
			return Image{}, err
		}
		relative := strings.TrimPrefix(file, chartFolder+"/")
		switch relative {
		case "Chart.yaml":
			if content, metadata, err = b.metadata(content); err != nil {
				return Image{}, err
			}
		case "values.yaml":
			if content, err = pin(content, images); err != nil {
				return Image{}, fmt.Errorf("%s: %w", file, err)
			}
		}
		entries = append(entries, entry{name: "platform/" + relative, content: content})
	}
	packed, err := b.pack(entries)
	if err != nil {
		return Image{}, err
	}
	if err := b.write("platform-"+b.Version+".tgz", packed); err != nil {
		return Image{}, err
	}
	digest, err := b.publish(ctx, chartReference, artifact{
		config: blob{mediaType: chartConfig, content: metadata}, layers: []blob{{mediaType: chartContent, content: packed}},
		annotations: b.labels("platform"),
	})
	return Image{Service: "chart", Repository: chartReference, Digest: digest}, err
}

// pack returns a compressed archive.
func (b *builder) pack(entries []entry) ([]byte, error) {
	plain, err := archive(b.date, entries)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// metadata returns Chart.yaml with the version, and the same as JSON.
func (b *builder) metadata(text []byte) (chart, config []byte, err error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, nil, fmt.Errorf("metadata of the chart: %w", err)
	}
	child(doc.Content[0], "version").SetString(b.Version)
	child(doc.Content[0], "appVersion").SetString(b.Version)
	if chart, err = encode(&doc); err != nil {
		return nil, nil, err
	}
	var fields map[string]any
	if err := doc.Decode(&fields); err != nil {
		return nil, nil, err
	}
	config, err = json.Marshal(fields)
	return chart, config, err
}

// pin sets services.<name>.image.digest in values.yaml.
func pin(text []byte, images []Image) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	all := child(doc.Content[0], "services")
	for _, image := range images {
		child(child(child(all, image.Service), "image"), "digest").SetString(image.Digest)
	}
	return encode(&doc)
}

// child returns the value of a key of a mapping, which it adds if it is missing.
func child(mapping *yaml.Node, key string) *yaml.Node {
	if mapping.Kind != yaml.MappingNode { // a new node, or null
		*mapping = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	}
	for i := 0; i < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	value := &yaml.Node{}
	mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value)
	return value
}

func encode(doc *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(doc); err != nil {
		return nil, err
	}
	if err := e.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
