package page

import (
	"time"

	"holdfast.dev/libs/quota"
)

// DeepSearches are the limits of deep searches in a process. Each search holds a connection of the pool.
var DeepSearches = quota.Limits{Work: "searches that read all their matches", All: 4, PerTenant: 1, Waiting: 3, Wait: 2 * time.Second}

var deepSearches = quota.NewSlots(DeepSearches)
