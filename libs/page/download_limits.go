package page

import (
	"context"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/quota"
)

// Downloads are the limits of downloads in a process: each holds a page in memory.
var Downloads = quota.Limits{Work: "downloads", All: 32, PerTenant: 8}

var downloads = quota.NewSlots(Downloads)

// DownloadRows are the most rows that a download reads at a time: so few that a slot is held briefly, and so many that the
// statements cost little.
const DownloadRows = 250

// Slots lets the downloads of a tenant read and render one part at a time in a process. A download that writes holds no slot.
// Create one with NewSlots for each kind of download: a download that waits for another service then delays only those of its
// kind.
type Slots struct{ slots *quota.Slots }

// NewSlots creates the slots of a kind of download in this process.
func NewSlots() Slots {
	return Slots{quota.NewSlots(quota.Limits{
		Work: Downloads.Work, All: Downloads.All, PerTenant: 1, Waiting: Downloads.PerTenant - 1, Wait: downloadTimeout,
	})}
}

// Take runs f, which reads and renders a part of a download and reports whether more follows. After a part that is not the last, the
// tenant rests. So a tenant with any number of downloads holds one part in memory, and leaves the processors to others most of the time.
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
