package api

import (
	"time"

	"holdfast.dev/libs/quota"
)

// In tests, requests for documents wait longer than in production: on a busy machine, all documents of a tenant with their rests take
// more than 5 s. libs/quota tests the wait itself.
func init() {
	limits := DocumentLimits
	limits.Wait = time.Minute
	documents = quota.NewSlots(limits)
}
