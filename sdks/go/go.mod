module holdfast.dev/sdks/go

go 1.25.0

require github.com/oapi-codegen/nullable v1.1.0
