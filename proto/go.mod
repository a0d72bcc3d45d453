module holdfast.dev/proto

go 1.26

require (
	github.com/oapi-codegen/nullable v1.1.0
	google.golang.org/protobuf v1.36.12
)
