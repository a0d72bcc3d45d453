// Package view converts request logs into their public bodies.
package view

import (
	"encoding/hex"

	"github.com/oapi-codegen/nullable"

	"holdfast.dev/proto/api"

	"holdfast.dev/services/logs/internal/domain"
)

// RequestLog returns the public body of a request log.
func RequestLog(l domain.RequestLog, mode api.Mode) api.RequestLog {
	hash := api.Null[string]()
	if len(l.IdempotencyKeyHash) > 0 {
		hash = nullable.NewNullableWithValue(hex.EncodeToString(l.IdempotencyKeyHash))
	}
	return api.RequestLog{
		Id: l.ID.String(), Object: api.RequestLogObjectRequestLog, Status: l.Status, Method: api.RequestMethod(l.Method), Route: l.Route,
		Path: l.Path, QueryNames: l.QueryNames, Code: api.OrNull(l.Code), Param: api.OrNull(l.Param), CredentialId: l.CredentialID,
		CredentialType: api.CredentialType(l.CredentialType), ObjectId: api.OrNull(l.ObjectID), DurationMs: int(l.DurationMS),
		ClientNetwork: api.OrNull(l.ClientNetwork), UserAgent: api.OrNull(l.UserAgent), SdkVersion: api.OrNull(l.SDKVersion),
		IdempotencyKeyHash: hash, Replayed: l.Replayed, Mode: mode, CreatedAt: l.ID.Time(),
	}
}
