package page

import "holdfast.dev/libs/quota"

// Downloads are the limits of downloads in a process: each holds a page in memory.
var Downloads = quota.Limits{Work: "downloads", All: 32, PerTenant: 8}

var downloads = quota.NewSlots(Downloads)

// turns bounds the downloads of a tenant that read and render a page at the same time to one. A download that writes holds no turn.
var turns = quota.NewSlots(quota.Limits{
	Work: Downloads.Work, All: Downloads.All, PerTenant: 1, Waiting: Downloads.PerTenant - 1, Wait: downloadTimeout,
})
