module holdfast.dev/examples/tests

go 1.26.0

require (
	holdfast.dev/sdks/go v0.0.0
	holdfast.dev/sdks/scenario v0.0.0
)

require github.com/oapi-codegen/nullable v1.1.0 // indirect

replace (
	holdfast.dev/sdks/go => ../../sdks/go
	holdfast.dev/sdks/scenario => ../../sdks/scenario
)
