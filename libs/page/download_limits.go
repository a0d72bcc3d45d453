package page

import (
	"context"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/quota"
)

// Downloads are the limits of downloads in a process. Each download holds a page in memory.
var Downloads = quota.Limits{Work: "downloads", All: 32, PerTenant: 8}

var downloads = quota.NewSlots(Downloads)

// DownloadRows is the maximum number of rows that a download reads at a time. It is small enough to hold a slot only briefly, and
// large enough to keep the number of statements low.
const DownloadRows = 250

// Slots lets the downloads of a tenant read and render one part at a time in a process. A download holds no slot while it writes.
// Call NewSlots for each kind of download, so that a download that waits for another service delays only downloads of its kind.
type Slots struct{ slots *quota.Slots }

// NewSlots creates the slots of a kind of download in this process.
func NewSlots() Slots {
	return Slots{quota.NewSlots(quota.Limits{
		Work: Downloads.Work, All: Downloads.All, PerTenant: 1, Waiting: Downloads.PerTenant - 1, Wait: downloadTimeout,
	})}
}

// Take runs f, which reads and renders a part of a download and reports whether more follows. After each part except the last, the
// slot stays in use for a pause. A tenant with any number of downloads therefore holds one part in memory and leaves most of the
// processor time to others.
func (t Slots) Take(ctx context.Context, f func() (more bool, err error)) error {
	done, err := t.slots.Acquire(ctx, caller.FromContext(ctx).Tenant)
	if err != nil {
		return err
	}
	defer done()
	began := time.Now()
	more, err := f()
	if err != nil || !more {
		return err
	}
	return quota.Rest(ctx, time.Since(began))
}
