module holdfast.dev/proto

go 1.26

require (
	github.com/oapi-codegen/nullable v1.1.0
	go.yaml.in/yaml/v3 v3.0.5
	google.golang.org/protobuf v1.36.12
)
