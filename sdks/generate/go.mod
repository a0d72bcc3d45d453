module holdfast.dev/sdks/generate

go 1.26.0

require (
	go.yaml.in/yaml/v3 v3.0.5
	holdfast.dev/proto v0.0.0
)

replace holdfast.dev/proto => ../../proto
