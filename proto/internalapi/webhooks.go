package internalapi

// EndpointHealth is the object of the events webhook_endpoint.failing and webhook_endpoint.disabled.
type EndpointHealth struct {
	ID                  string  `json:"id"` // we_…
	Status              string  `json:"status"`
	DisabledReason      *string `json:"disabled_reason"`
	ConsecutiveFailures int     `json:"consecutive_failures"`
}
