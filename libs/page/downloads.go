package page

import "holdfast.dev/libs/quota"

// Downloads are the limits of downloads in a process: each holds a page in memory.
var Downloads = quota.Limits{Work: "downloads", All: 32, PerTenant: 8}

var downloads = quota.NewSlots(Downloads)
