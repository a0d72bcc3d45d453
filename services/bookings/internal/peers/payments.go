package peers

import (
	"context"
	"net/http"
	"net/url"

	"holdfast.dev/libs/peer"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/bookings/internal/domain"
)

// Payments calls the payments service on behalf of the caller in the context. It implements app.Accounts.
type Payments struct{ Client *peer.Client }

// Account returns the state of the account of a booking in a currency.
func (p *Payments) Account(ctx context.Context, id domain.BookingID, currency string) (domain.AccountState, error) {
	var got internalapi.Account
	path := "/internal/v1/accounts/" + id.String() + "?" + url.Values{"currency": {currency}}.Encode()
	if err := p.Client.Do(ctx, http.MethodGet, path, nil, &got); err != nil {
		return domain.AccountState{}, err
	}
	return domain.AccountState{Version: got.Version, Received: got.Received, Returned: got.Returned + got.Held}, nil
}
