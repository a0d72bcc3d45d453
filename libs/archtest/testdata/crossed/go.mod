module holdfast.dev/services/crossed

go 1.26
