package store

import "holdfast.dev/libs/usage"

// Waiting are the kinds of background work of this service.
var Waiting = []usage.Waiting{
	{Kind: "quote_acceptance", SQL: `select coalesce(accept_since, updated_at) as at from quotes where tenant_id = @tenant and livemode = @live and accept_until is not null`},
	{Kind: "lead_conversion", SQL: `select coalesce(converting_since, updated_at) as at from leads where tenant_id = @tenant and livemode = @live and converting_until is not null`},
}
