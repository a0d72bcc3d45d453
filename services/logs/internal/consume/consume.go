// Package consume handles the messages from Kafka: it decodes the requests that the gateway logged and passes them to the intake.
package consume

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/logs/internal/app"
	"holdfast.dev/services/logs/internal/domain"
)

// Requests handles the messages of the topic of the request log.
type Requests struct{ Intake *app.Intake }

// Handle is a kafkax.Handler.
func (h *Requests) Handle(ctx context.Context, m kafkax.Message) error {
	return h.HandleBatch(ctx, []kafkax.Message{m})
}

// HandleBatch stores the requests of all messages in one transaction.
func (h *Requests) HandleBatch(ctx context.Context, batch []kafkax.Message) error {
	var list []domain.RequestLog
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
			list = append(list, l)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return h.Intake.Store(ctx, list)
}

func fromEntry(e *eventsv1.RequestLog) (domain.RequestLog, error) {
	id, err := ids.Parse[ids.RequestPrefix](e.GetId())
	if err != nil {
		return domain.RequestLog{}, fmt.Errorf("request id %q: %w", e.GetId(), err)
	}
	tenant, err := ids.Parse[ids.TenantPrefix](e.GetTenantId())
	if err != nil {
		return domain.RequestLog{}, fmt.Errorf("tenant id %q: %w", e.GetTenantId(), err)
	}
	return domain.RequestLog{
		TenantID: tenant, Livemode: e.GetLivemode(), ID: id, Status: int(e.GetStatus()), Method: e.GetMethod(), Route: e.GetRoute(),
		Path: e.GetPath(), QueryNames: e.GetQueryNames(), Code: orNull(e.GetCode()), Param: orNull(e.GetParam()),
		CredentialID: e.GetCredentialId(), CredentialType: e.GetCredentialType(), ObjectID: orNull(e.GetObjectId()),
		DurationMS: e.GetDurationMs(), ClientNetwork: orNull(e.GetClientNetwork()), UserAgent: orNull(e.GetUserAgent()),
		SDKVersion: orNull(e.GetSdkVersion()), IdempotencyKeyHash: e.GetIdempotencyKeyHash(), Replayed: e.GetReplayed(),
	}, nil
}

// orNull returns nil for an empty text.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
