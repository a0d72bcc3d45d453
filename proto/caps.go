package proto

// Cap is the maximum number of rows of one kind that a tenant can have in one mode. The platform can set another maximum for a tenant,
// from 0 to Highest.
type Cap struct {
	Name    string // in the limits of a tenant
	Default int
	Highest int
}

// The caps that the platform can set for a tenant. The service that owns the rows enforces the cap.
var (
	CapServices     = Cap{"services", 200, 1000}      // active ones
	CapUnits        = Cap{"units", 2000, 5000}        // that are not retired
	CapPackages     = Cap{"packages", 500, 2500}      // active ones
	CapHolidayRules = Cap{"holiday_rules", 200, 1000} // active ones
	CapFeeds        = Cap{"calendar_feeds", 50, 250}
	CapEndpoints    = Cap{"webhook_endpoints", 50, 250}
	CapKeys         = Cap{"api_keys", 1000, 5000} // that are not revoked
	CapApps         = Cap{"oauth_apps", 100, 500} // of both modes
)

// Caps lists the caps in a readable order.
var Caps = []Cap{CapServices, CapUnits, CapPackages, CapHolidayRules, CapFeeds, CapEndpoints, CapKeys, CapApps}
