// Package consume handles the messages from Kafka: it decodes the requests that the gateway logged and passes them to the intake.
package consume

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/logs/internal/app"
	"holdfast.dev/services/logs/internal/domain"
)

// Requests handles the messages of the topic of the request log.
type Requests struct {
	Intake *app.Intake
	Erased func(ctx context.Context) (map[ids.Tenant]bool, error) // the tenants whose requests are not stored
}

// Handle is a kafkax.Handler.
func (h *Requests) Handle(ctx context.Context, m kafkax.Message) error {
	return h.HandleBatch(ctx, []kafkax.Message{m})
}

// HandleBatch stores the requests and adds the counts of all messages in one transaction.
func (h *Requests) HandleBatch(ctx context.Context, batch []kafkax.Message) error {
	erased, err := h.Erased(ctx)
	if err != nil {
		return err
	}
	var list []domain.RequestLog
	var counts []domain.RequestCount
	for _, m := range batch {
		var in eventsv1.RequestLogs
		if err := proto.Unmarshal(m.Value, &in); err != nil {
			return kafkax.Poison(fmt.Errorf("request logs: %w", err))
		}
		list = slices.Grow(list, len(in.GetEntries()))
		for _, e := range in.GetEntries() {
			l, err := fromEntry(e)
			if err != nil {
				return kafkax.Poison(err)
			}
			if !erased[l.TenantID] {
				list = append(list, l)
			}
		}
		for _, c := range in.GetCounts() {
			var err error
			if counts, err = appendCounts(counts, c); err != nil {
				return kafkax.Poison(err)
			}
		}
	}
	if len(list)+len(counts) == 0 {
		return nil
	}
	return h.Intake.Store(ctx, list, counts)
}

// uuidBytes is the length of a UUID.
const uuidBytes = 16

func appendCounts(list []domain.RequestCount, batch *eventsv1.RequestCounts) ([]domain.RequestCount, error) {
	if len(batch.GetId()) != uuidBytes {
		return nil, fmt.Errorf("%w: request counts have an id of %d bytes", ids.ErrMalformed, len(batch.GetId()))
	}
	for _, c := range batch.GetCounts() {
		if len(c.GetTenantUuid()) != uuidBytes {
			return nil, fmt.Errorf("%w: request counts have a tenant of %d bytes", ids.ErrMalformed, len(c.GetTenantUuid()))
		}
		list = append(list, domain.RequestCount{
			Batch: [uuidBytes]byte(batch.GetId()), TenantID: ids.FromUUID[ids.TenantPrefix]([uuidBytes]byte(c.GetTenantUuid())), Livemode: c.GetLivemode(),
			Day: time.Unix(0, 0).UTC().AddDate(0, 0, int(c.GetDay())), Class: text(c.GetClass()), Requests: c.GetRequests(),
		})
	}
	return list, nil
}

func fromEntry(e *eventsv1.RequestLog) (domain.RequestLog, error) {
	id, err := ids.Parse[ids.RequestPrefix](e.GetId())
	if err != nil {
		return domain.RequestLog{}, fmt.Errorf("request id %q: %w", e.GetId(), err)
	}
	if len(e.GetTenantUuid()) != uuidBytes {
		return domain.RequestLog{}, fmt.Errorf("%w: request %s has a tenant of %d bytes", ids.ErrMalformed, id, len(e.GetTenantUuid()))
	}
	return domain.RequestLog{
		TenantID: ids.FromUUID[ids.TenantPrefix]([uuidBytes]byte(e.GetTenantUuid())), Livemode: e.GetLivemode(), ID: id, Status: int(e.GetStatus()), Method: text(e.GetMethod()), Route: text(e.GetRoute()),
		Path: text(e.GetPath()), QueryNames: queryNames(e.GetQueryNames()), Code: orNull(e.GetCode()), Param: orNull(e.GetParam()),
		CredentialID: text(e.GetCredentialId()), CredentialType: text(e.GetCredentialType()), ObjectID: orNull(e.GetObjectId()),
		DurationMS: e.GetDurationMs(), ClientNetwork: orNull(e.GetClientNetwork()), UserAgent: orNull(e.GetUserAgent()),
		SDKVersion: orNull(e.GetSdkVersion()), IdempotencyKeyHash: e.GetIdempotencyKeyHash(), Replayed: e.GetReplayed(),
	}, nil
}

func queryNames(list []string) []string {
	out := make([]string, len(list))
	for i, name := range list {
		out[i] = text(name)
	}
	return out
}

// orNull returns nil for an empty text.
func orNull(s string) *string {
	if s = text(s); s == "" {
		return nil
	}
	return &s
}

// text removes NUL, which PostgreSQL does not store, so that no message blocks its partition.
func text(s string) string { return strings.ReplaceAll(s, "\x00", "") }
