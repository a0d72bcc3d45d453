package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
)

// Draft returns the sealed draft of an operator's form, or domain.ErrDraftNotFound.
func Draft(ctx context.Context, q pg.Q, id domain.OperatorID, key string, now time.Time) ([]byte, error) {
	return pg.One(ctx, q, pgx.RowTo[[]byte], domain.ErrDraftNotFound, `select sealed from form_drafts where operator_id = $1 and key = $2 and created_at > $3`,
		id, key, now.Add(-domain.DraftLifetime))
}

// PutDraft writes the encrypted draft of an operator's form, and deletes the operator's oldest drafts if there are too many.
func PutDraft(ctx context.Context, tx pg.Tx, id domain.OperatorID, key string, sealed []byte, now time.Time) error {
	_, err := tx.Exec(ctx, `insert into form_drafts (operator_id, key, sealed, created_at) values ($1, $2, $3, $4)
		on conflict (operator_id, key) do update set sealed = excluded.sealed, created_at = excluded.created_at`, id, key, sealed, now)
	if err != nil {
		return fmt.Errorf("write a draft: %w", err)
	}
	return pg.Exec(ctx, tx, "limit drafts", `delete from form_drafts where operator_id = $1 and key not in (
		select key from form_drafts where operator_id = $1 order by created_at desc, key limit $2)`, id, domain.MaxDrafts)
}
