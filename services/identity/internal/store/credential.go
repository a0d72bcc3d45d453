package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
)

// EndedCredentials returns the state of credentials of any tenant, in their order.
func EndedCredentials(ctx context.Context, q pg.Q, list []domain.Credential, now time.Time) ([]domain.CredentialState, error) {
	tenants, kinds, uuids := make([]ids.Tenant, len(list)), make([]string, len(list)), make([]uuid.UUID, len(list))
	for i, c := range list {
		tenants[i], kinds[i], uuids[i] = c.TenantID, c.Kind, c.ID
	}
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.CredentialState],
		`select n, ended, successor from ended_credentials($1, $2, $3, $4) order by n`, tenants, kinds, uuids, now)
}
