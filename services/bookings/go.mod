module holdfast.dev/services/bookings

go 1.26.0

require (
	holdfast.dev/libs v0.0.0
	holdfast.dev/proto v0.0.0
)

require (
	github.com/maypok86/otter/v2 v2.4.0 // indirect
	github.com/oapi-codegen/nullable v1.1.0 // indirect
)

replace holdfast.dev/libs => ../../libs

replace holdfast.dev/proto => ../../proto
