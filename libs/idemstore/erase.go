package idemstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"
)

// eraseBatch is the number of stored responses in memory at a time. Each is at most a few hundred KiB.
const eraseBatch = 20

// Erase replaces the stored responses about resources with the result of erase. The records are not deleted: a repeated request
// returns the erased body and has no second effect.
func (s *Store) Erase(ctx context.Context, tx pg.Tx, resources []string, erase func(body []byte) ([]byte, error)) error {
	type storedResponse struct {
		CredentialID, Key string
		Secret            bool
		Body              []byte
	}
	var last storedResponse
	for {
		list, err := pg.Many(ctx, tx, pgx.RowToStructByName[storedResponse], `
			select credential_id, key, secret, body from idempotency_keys
			where tenant_id = @tenant and livemode = @live and resource_id = any(@resources) and body is not null
			  and (credential_id, key) > (@credential, @key)
			order by credential_id, key limit @limit for update`,
			pg.Args{"resources": resources, "credential": last.CredentialID, "key": last.Key, "limit": eraseBatch})
		if err != nil {
			return fmt.Errorf("stored responses: %w", err)
		}
		b := &pgx.Batch{}
		for _, last = range list {
			body, err := s.erased(ctx, last.CredentialID, last.Key, last.Secret, last.Body, erase)
			if err != nil {
				return fmt.Errorf("stored response: %w", err)
			}
			b.Queue(`
				update idempotency_keys set body = @body
				where tenant_id = @tenant and livemode = @live and credential_id = @credential and key = @key`,
				pg.Args{"credential": last.CredentialID, "key": last.Key, "body": body})
		}
		if len(list) > 0 {
			if err := tx.SendBatch(ctx, b).Close(); err != nil {
				return fmt.Errorf("erase stored responses: %w", err)
			}
		}
		if len(list) < eraseBatch {
			return nil
		}
	}
}

func (s *Store) erased(ctx context.Context, credential, key string, secret bool, body []byte, erase func([]byte) ([]byte, error)) ([]byte, error) {
	if !secret {
		return erase(body)
	}
	owner := caller.FromContext(ctx) // the caller that the response is sealed for
	owner.Credential = credential
	sealed := aad(caller.With(ctx, owner), key)
	plain, err := s.Box.Open(body, sealed)
	if err != nil {
		return nil, err
	}
	if plain, err = erase(plain); err != nil {
		return nil, err
	}
	return s.Box.Seal(plain, sealed)
}
