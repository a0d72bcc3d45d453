package contract

import (
	"sync"

	"holdfast.dev/proto"
)

// Public returns the public contract. The first call loads it, which takes a tenth of a second.
var Public = sync.OnceValues(func() (*Contract, error) { return Load(proto.OpenAPI) })
