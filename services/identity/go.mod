module holdfast.dev/services/identity

go 1.26.0

require (
	github.com/bojanz/currency v1.4.0
	github.com/gin-gonic/gin v1.12.0
	github.com/jackc/pgx/v5 v5.12.0
	github.com/oapi-codegen/nullable v1.1.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/spf13/cobra v1.10.2
	holdfast.dev/libs v0.0.0
	holdfast.dev/proto v0.0.0
)

replace holdfast.dev/libs => ../../libs

replace holdfast.dev/proto => ../../proto
