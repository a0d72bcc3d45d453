package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
)

// PutHeaders replaces the headers of an endpoint, sealed for its row. UpdateEndpoint and InsertEndpoint write their names.
func PutHeaders(ctx context.Context, tx pg.Tx, box *crypt.Box, id domain.EndpointID, h domain.EndpointHeaders) error {
	var sealed []byte
	if len(h) > 0 {
		plain, err := json.Marshal(h)
		if err != nil {
			return fmt.Errorf("encode headers: %w", err)
		}
		c := caller.FromContext(ctx)
		if sealed, err = box.Seal(plain, headersAAD(domain.EndpointKey{Tenant: c.Tenant, Livemode: c.Live(), Endpoint: id})); err != nil {
			return err
		}
	}
	tx.QueueAtCommit(`update endpoints set sealed_headers = @sealed where tenant_id = @tenant and livemode = @live and id = @id`,
		pg.Args{"id": id, "sealed": sealed})
	return nil
}

// SealedHeaders reads the sealed headers of an endpoint, or returns domain.ErrEndpointNotFound. An endpoint without headers has none.
func SealedHeaders(ctx context.Context, q pg.Q, id domain.EndpointID) ([]byte, error) {
	return pg.One(ctx, q, pgx.RowTo[[]byte], domain.ErrEndpointNotFound,
		`select e.sealed_headers from endpoints e where e.tenant_id = @tenant and e.livemode = @live and e.id = @id`, pg.Args{"id": id})
}

// OpenHeaders opens the sealed headers of an endpoint. It returns an error that is crypt.ErrOpen if no key opens them.
func OpenHeaders(box *crypt.Box, key domain.EndpointKey, sealed []byte) (domain.EndpointHeaders, error) {
	if len(sealed) == 0 {
		return nil, nil
	}
	plain, err := box.Open(sealed, headersAAD(key))
	if err != nil {
		return nil, fmt.Errorf("headers of %s: %w", key.Endpoint, err)
	}
	var h domain.EndpointHeaders
	if err := json.Unmarshal(plain, &h); err != nil {
		return nil, fmt.Errorf("headers of %s: %w", key.Endpoint, err)
	}
	return h, nil
}

// headersAAD returns the additional data that binds sealed headers to their row.
func headersAAD(key domain.EndpointKey) []byte {
	return fmt.Appendf(nil, "endpoints.sealed_headers\x00%s\x00%t\x00%s", key.Tenant, key.Livemode, key.Endpoint)
}
