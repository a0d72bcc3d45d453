package app

import (
	"context"
	"time"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// EndpointHolders knows which grants hold webhook endpoints. peers.EndpointGrants implements it with calls to webhooks.
type EndpointHolders interface {
	List(ctx context.Context, after string) ([]domain.EndpointGrant, error)
	End(ctx context.Context, ended []domain.EndpointGrant) error
}

// EndpointGrants disables the webhook endpoints of grants that have ended, whatever ended them: a revocation, the end of a membership, the
// deletion of an app, or time. Any number of processes can run it at the same time.
type EndpointGrants struct {
	DB      *pg.DB
	Holders EndpointHolders
	Now     func() time.Time
}

// Run checks every grant that holds an enabled endpoint once.
func (a *EndpointGrants) Run(ctx context.Context) error {
	after := ""
	for {
		list, err := a.Holders.List(ctx, after)
		if err != nil || len(list) == 0 {
			return err
		}
		credentials := make([]domain.Credential, len(list))
		for i, g := range list {
			credentials[i] = domain.CredentialOf(g.TenantID, g.ID)
		}
		states, err := store.EndedCredentials(ctx, a.DB.Read(ctx), credentials, a.Now())
		if err != nil {
			return err
		}
		var ended []domain.EndpointGrant
		for _, s := range states {
			if s.Ended {
				ended = append(ended, list[s.N-1])
			}
		}
		if len(ended) > 0 {
			if err := a.Holders.End(ctx, ended); err != nil {
				return err
			}
		}
		after = list[len(list)-1].ID
	}
}
