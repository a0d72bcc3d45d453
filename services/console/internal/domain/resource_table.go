package domain

// The groups of the navigation.
const (
	Business   = "business"
	Catalogue  = "catalogue"
	Developers = "developers"
	Settings   = "settings"
)

const customerOf = "customer_id"

// times is the last section of every page of a resource.
var times = Section{"times", []string{"created_at", "updated_at", "id"}}

// resourceTable lists the resources of the API in the order of the navigation, with the fields that need a specific position.
var resourceTable = []Resource{
	{
		Name: "bookings", Prefix: "bk", Group: Business, Events: true,
		List: "listBookings", Get: "getBooking", Create: "createBooking", Update: "updateBooking", ListQuery: map[string]string{"expand": "customer"},
		Title:   []string{"number"},
		Columns: []string{"number", "status", customerOf, "event_local_date", "event_start_time", "unit_id", "total_amount", "payment_status"},
		Filters: []string{"status", "payment_status", "event_date_from", "event_date_to", "unit_id", "service_id", "number"},
		Sections: []Section{
			{"booking", []string{"status", customerOf, "event_local_date", "event_start_time", "event_end_time", "service_id", "unit_id", "package_id", "event_type", "guest_count", "hold_expires_at", "notes"}},
			{"money", []string{"payment_status", "total_amount", "deposit_amount", "amount_paid", "amount_refunded", "amount_due", "disputed"}},
			{"chain", []string{"lead_id", "quote_id", "invoice_ids"}},
			{"cancellation", []string{"cancellation"}},
			{"metadata", []string{"metadata"}},
			{"times", []string{"created_at", "updated_at", "confirmed_at", "cancelled_at", "completed_at", "id"}},
		},
		New:  []string{customerOf, "package_id", "unit_id", "service_id", "event_date", "event_start_time", "event_end_time", "guest_count", "status", "event_type", "notes"},
		Edit: []string{customerOf, "event_date", "event_start_time", "event_end_time", "unit_id", "service_id", "guest_count", "event_type", "notes", "metadata"},
		Actions: []Action{
			{Name: "confirm", Operation: "updateBooking", From: []string{"pending"}, Fixed: map[string]string{"status": "confirmed"}},
			{Name: "complete", Operation: "updateBooking", From: []string{"confirmed", "no_show"}, Fixed: map[string]string{"status": "completed"}},
			{Name: "no_show", Operation: "updateBooking", From: []string{"confirmed", "completed"}, Fixed: map[string]string{"status": "no_show"}},
			{Name: "reprice", Operation: "repriceBooking", From: []string{"pending", "confirmed", "completed", "no_show"}},
			{Name: "invoice", Page: true, Operation: "createInvoice", From: []string{"pending", "confirmed", "completed", "no_show", "cancelled"}, Body: "booking_id", Fixed: map[string]string{"kind": "balance"}},
			{Name: "refund", Page: true, Operation: "createRefund", Body: "booking_id", Fresh: true},
			{Name: "cancel", Operation: "cancelBooking", From: []string{"pending", "confirmed"}, Fields: []string{"reason"}, Danger: true},
		},
		Related: []Related{{"invoices", "booking_id", ""}, {"quotes", "booking_id", ""}, {"payments", "booking_id", ""}, {"refunds", "booking_id", ""}},
		Except:  []string{"starts_at", "ends_at", "hold_minutes", "metadata", "status", "package_id", "number", "customer", "package_snapshot", "event_date", "timezone"},
	},
	{
		Name: "customers", Prefix: "cu", Group: Business, Events: true,
		List: "listCustomers", Get: "getCustomer", Create: "createCustomer", Update: "updateCustomer",
		Title: []string{"name", "email"}, Columns: []string{"name", "email", "phone", "company", "created_at"}, Filters: []string{"q", "email", "phone"},
		Sections: []Section{{"customer", []string{"first_name", "last_name", "email", "phone", "company"}}, {"metadata", []string{"metadata"}}, times},
		New:      []string{"first_name", "last_name", "email", "phone", "company"},
		Edit:     []string{"first_name", "last_name", "email", "phone", "company", "metadata"},
		Actions: []Action{
			{Name: "book", Page: true, Operation: "createBooking", Body: customerOf},
			{Name: "quote", Page: true, Operation: "createQuote", Body: customerOf},
			{Name: "erase", Operation: "deleteCustomer", Danger: true, Fresh: true},
		},
		Related: []Related{{"bookings", customerOf, ""}, {"leads", customerOf, ""}, {"quotes", customerOf, ""}, {"invoices", customerOf, ""}},
		Except:  []string{"metadata", "name"},
	},
	{
		Name: "leads", Prefix: "ld", Group: Business, Events: true,
		List: "listLeads", Get: "getLead", Create: "createLead", Update: "updateLead",
		Title: []string{"first_name", "last_name", "email"}, Columns: []string{"first_name", "last_name", "status", "source", "event_local_date", "budget", "created_at"},
		Filters: []string{"q", "status", "source"},
		Sections: []Section{
			{"lead", []string{"status", "first_name", "last_name", "email", "phone", "company", "source", "message", "lost_reason"}},
			{"wanted", []string{"event_type", "event_local_date", "guest_count", "budget", "service_id", "unit_id", "package_id"}},
			{"chain", []string{customerOf, "quote_ids", "converted_booking_id"}},
			{"metadata", []string{"metadata"}},
			times,
		},
		New:  []string{"first_name", "last_name", "email", "phone", "company", "source", "event_type", "event_date", "guest_count", "budget", "service_id", "package_id", "message"},
		Edit: []string{"first_name", "last_name", "email", "phone", "company", "source", "event_type", "event_date", "guest_count", "budget", "service_id", "package_id", "message", "metadata"},
		Actions: []Action{
			{Name: "contacted", Operation: "updateLead", From: []string{"new", "lost"}, Fixed: map[string]string{"status": "contacted"}},
			{Name: "qualified", Operation: "updateLead", From: []string{"new", "contacted"}, Fixed: map[string]string{"status": "qualified"}},
			{Name: "quote", Page: true, Operation: "createQuote", Body: "lead_id"},
			{Name: "convert", Operation: "convertLead", From: []string{"new", "contacted", "qualified", "quoted"}, Fields: []string{customerOf}},
			{Name: "lose", Operation: "updateLead", From: []string{"new", "contacted", "qualified", "quoted"}, Fixed: map[string]string{"status": "lost"}, Fields: []string{"lost_reason"}, Danger: true},
		},
		Related: []Related{{"quotes", "lead_id", ""}},
		Except:  []string{"unit_id", "metadata", "status", "lost_reason", "event_date", "customer", "converted_at"},
	},
	{
		Name: "quotes", Prefix: "qt", Group: Business, Events: true, PDF: "getQuotePdf",
		List: "listQuotes", Get: "getQuote", Create: "createQuote", Update: "updateQuote", ListQuery: map[string]string{"expand": "customer"},
		Title: []string{"number"}, Columns: []string{"number", "status", customerOf, "event_local_date", "total_amount", "expires_at", "created_at"},
		Filters: []string{"status", "number"},
		Sections: []Section{
			{"quote", []string{"status", customerOf, "event_local_date", "event_start_time", "event_end_time", "service_id", "unit_id", "package_id", "expires_at", "decline_reason", "notes", "terms"}},
			{"lines", []string{"line_items"}},
			{"money", []string{"subtotal_amount", "discount_amount", "tax_amount", "total_amount", "deposit_amount"}},
			{"chain", []string{"lead_id", "booking_id", "invoice_ids"}},
			{"metadata", []string{"metadata"}},
			{"times", []string{"created_at", "sent_at", "accepted_at", "declined_at", "cancelled_at", "id"}},
		},
		New:  []string{customerOf, "lead_id", "package_id", "unit_id", "event_date", "event_start_time", "event_end_time", "line_items", "deposit_amount", "expires_at", "notes", "terms"},
		Edit: []string{customerOf, "package_id", "unit_id", "event_date", "event_start_time", "event_end_time", "line_items", "deposit_amount", "expires_at", "notes", "terms", "metadata"},
		Actions: []Action{
			{Name: "send", Operation: "sendQuote", From: []string{"draft"}},
			{Name: "accept", Operation: "acceptQuote", From: []string{"sent"}},
			{Name: "decline", Operation: "declineQuote", From: []string{"sent"}, Fields: []string{"reason"}, Danger: true},
			{Name: "cancel", Operation: "cancelQuote", From: []string{"draft", "sent"}, Danger: true},
		},
		Except: []string{"service_id", "metadata", "lead_id", "number", "customer", "lead", "event_date", "booking_status", "updated_at"},
	},
	{
		Name: "invoices", Prefix: "inv", Group: Business, Events: true, PDF: "getInvoicePdf",
		List: "listInvoices", Get: "getInvoice", Create: "createInvoice", Update: "updateInvoice", ListQuery: map[string]string{"expand": "customer"},
		Title: []string{"number"}, Columns: []string{"number", "status", "kind", customerOf, "total_amount", "amount_due", "due_at", "overdue"},
		Filters: []string{"status", "overdue", "due_before", "number"},
		Sections: []Section{
			{"invoice", []string{"status", "kind", customerOf, "booking_id", "due_at", "overdue", "billing_address", "notes"}},
			{"lines", []string{"line_items"}},
			{"money", []string{"subtotal_amount", "discount_amount", "tax_amount", "total_amount", "amount_paid", "amount_refunded", "amount_due", "disputed"}},
			{"payments", []string{"payments"}},
			{"chain", []string{"lead_id", "quote_id"}},
			{"metadata", []string{"metadata"}},
			{"times", []string{"created_at", "opened_at", "paid_at", "voided_at", "id"}},
		},
		New:  []string{customerOf, "booking_id", "kind", "line_items", "due_at", "billing_address", "notes"},
		Edit: []string{"line_items", "due_at", "billing_address", "notes", "metadata"},
		Actions: []Action{
			{Name: "open", Operation: "openInvoice", From: []string{"draft"}},
			{Name: "pay", Operation: "recordInvoicePayment", From: []string{"open", "partially_paid", "uncollectible"}, Fields: []string{"amount", "method", "paid_at", "reference"}},
			{Name: "uncollectible", Operation: "markInvoiceUncollectible", From: []string{"open", "partially_paid"}, Danger: true},
			{Name: "void", Operation: "voidInvoice", From: []string{"open", "uncollectible"}, Danger: true},
		},
		Except: []string{"metadata", customerOf, "booking_id", "kind", "number", "customer", "booking_status", "billing", "updated_at"},
	},
	{
		Name: "payments", Prefix: "pi", Group: Business, Events: true,
		List: "listPaymentIntents", Get: "getPaymentIntent", Create: "createPaymentIntent",
		Title: []string{"id"}, Columns: []string{"id", "status", "amount", "amount_refunded", "booking_id", customerOf, "created_at"}, Filters: []string{"status", "booking_id"},
		Sections: []Section{
			{"payment", []string{"status", "amount", "amount_received", "amount_capturable", "amount_refunded", "capture_method", "description", "receipt_email", "failure", "disputed"}},
			{"chain", []string{"booking_id", "invoice_id", customerOf}},
			{"metadata", []string{"metadata"}},
			{"times", []string{"created_at", "updated_at", "succeeded_at", "canceled_at", "id"}},
		},
		Actions: []Action{
			{Name: "capture", Operation: "capturePaymentIntent", From: []string{"requires_capture"}},
			{Name: "refund", Page: true, Operation: "createRefund", From: []string{"succeeded"}, Body: "payment_intent_id", Fresh: true},
			{Name: "cancel", Operation: "cancelPaymentIntent", From: []string{"requires_payment_method", "requires_confirmation", "requires_action", "requires_capture"}, Danger: true},
		},
		Related: []Related{{"refunds", "payment_intent_id", ""}},
		Except:  []string{"currency", "booking_status", "client_secret"},
	},
	{
		Name: "refunds", Prefix: "rf", Group: Business,
		List: "listRefunds", Get: "getRefund", Create: "createRefund", Fresh: true,
		Title: []string{"id"}, Columns: []string{"id", "status", "amount", "reason", "booking_id", "payment_intent_id", "created_at"}, Filters: []string{"status", "booking_id"},
		Sections: []Section{{"refund", []string{"status", "amount", "reason", "booking_id", "payment_intent_id"}}, {"allocations", []string{"allocations"}}, {"metadata", []string{"metadata"}}, times},
		New:      []string{"booking_id", "payment_intent_id", "amount_minor", "reason"},
		Except:   []string{"metadata", "currency"},
	},
	{
		Name: "owed-refunds", Prefix: "rfo",
		List: "listOwedRefunds", Get: "getOwedRefund",
		Title: []string{"id"}, Columns: []string{"booking_id", "cause", "remaining_amount", "failure", "failed_at", "next_try_at"},
		Sections: []Section{
			{"refund", []string{"status", "cause", "amount", "remaining_amount", "booking_id", "payment_intent_id", "failure", "tries"}},
			{"times", []string{"created_at", "failed_at", "next_try_at", "closed_at", "closed_by", "note", "id"}},
		},
		Actions: []Action{
			{Name: "retry", Operation: "retryOwedRefund", From: []string{"open"}, Fresh: true},
			{Name: "close", Operation: "closeOwedRefund", From: []string{"open"}, Fields: []string{"note"}, Fresh: true, Danger: true},
		},
	},
	{
		Name: "services", Prefix: "srv", Group: Catalogue, Events: true,
		List: "listServices", Get: "getService", Create: "createService", Update: "updateService",
		Title: []string{"name"}, Columns: []string{"name", "duration_minutes", "buffer_before_minutes", "buffer_after_minutes", "active"}, Filters: []string{"active"},
		Sections: []Section{
			{"service", []string{"name", "description", "duration_minutes", "slot_step_minutes", "buffer_before_minutes", "buffer_after_minutes", "active", "unit_ids"}}, times,
		},
		New:     []string{"name", "description", "duration_minutes", "slot_step_minutes", "buffer_before_minutes", "buffer_after_minutes", "unit_ids", "active"},
		Edit:    []string{"name", "description", "duration_minutes", "slot_step_minutes", "buffer_before_minutes", "buffer_after_minutes", "unit_ids", "active"},
		Related: []Related{{"packages", "service_id", ""}},
	},
	{
		Name: "units", Prefix: "un", Group: Catalogue, Events: true,
		List: "listUnits", Get: "getUnit", Create: "createUnit", Update: "updateUnit",
		Title: []string{"name"}, Columns: []string{"name", "status", "capacity", "service_ids"}, Filters: []string{"active", "service_id"},
		Sections: []Section{{"unit", []string{"name", "description", "status", "capacity", "service_ids"}}, {"hours", []string{"opening_hours"}}, times},
		New:      []string{"name", "description", "service_ids", "capacity", "opening_hours"},
		Edit:     []string{"name", "description", "status", "service_ids", "capacity", "opening_hours"},
		Related:  []Related{{"bookings", "unit_id", ""}},
		Except:   []string{"status"},
	},
	{
		Name: "packages", Prefix: "pkg", Group: Catalogue, Events: true,
		List: "listPackages", Get: "getPackage", Create: "createPackage", Update: "updatePackage",
		Title: []string{"name"}, Columns: []string{"name", "service_id", "base_price", "deposit_type", "visible", "active"}, Filters: []string{"active", "service_id"},
		Sections: []Section{
			{"package", []string{"name", "description", "service_id", "base_price", "deposit_type", "deposit_value", "duration_minutes", "unit_ids", "visible", "active"}}, times,
		},
		New:  []string{"name", "service_id", "base_price", "deposit_type", "deposit_value", "duration_minutes", "unit_ids", "description", "visible", "active"},
		Edit: []string{"name", "service_id", "base_price", "deposit_type", "deposit_value", "duration_minutes", "unit_ids", "description", "visible", "active"},
	},
	{
		Name: "holiday-rules", Prefix: "hr", Group: Catalogue, Events: true,
		List: "listHolidayRules", Get: "getHolidayRule", Create: "createHolidayRule", Update: "updateHolidayRule",
		Title: []string{"name"}, Columns: []string{"name", "date_from", "date_to", "recurrence", "multiplier_bps", "applies_to", "priority", "active"}, Filters: []string{"active"},
		Sections: []Section{
			{"rule", []string{"name", "date_from", "date_to", "recurrence", "multiplier_bps", "applies_to", "priority", "stackable", "active"}}, times,
		},
		New:  []string{"name", "date_from", "date_to", "recurrence", "multiplier_bps", "applies_to", "priority", "stackable", "active"},
		Edit: []string{"name", "date_from", "date_to", "recurrence", "multiplier_bps", "applies_to", "priority", "stackable", "active"},
	},
	{
		Name: "endpoints", Prefix: "we", Group: Developers, Fresh: true,
		List: "listWebhookEndpoints", Get: "getWebhookEndpoint", Create: "createWebhookEndpoint", Update: "updateWebhookEndpoint",
		Title: []string{"url"}, Columns: []string{"url", "status", "event_types", "consecutive_failures", "created_at"}, Filters: []string{"status"},
		Sections: []Section{
			{"endpoint", []string{"url", "description", "status", "disabled_reason", "warning", "event_types", "consecutive_failures", "max_in_flight", "max_per_second", "headers"}}, times,
		},
		New:  []string{"url", "event_types", "description", "max_in_flight", "max_per_second", "headers"},
		Edit: []string{"url", "event_types", "description", "max_in_flight", "max_per_second", "headers"},
		Actions: []Action{
			{Name: "test", Operation: "testWebhookEndpoint", From: []string{"enabled"}, Fields: []string{"type"}},
			{Name: "replay", Operation: "replayEvents", From: []string{"enabled"}, Fields: []string{"from", "to", "types"}, Body: "endpoint_id", Fresh: true},
			{Name: "enable", Operation: "updateWebhookEndpoint", From: []string{"disabled"}, Fixed: map[string]string{"status": "enabled"}, Fresh: true},
			{Name: "rotate", Operation: "rotateWebhookSecret", Fields: []string{"previous_secret_expires_in"}, Fresh: true, Secret: true},
			{Name: "disable", Operation: "updateWebhookEndpoint", From: []string{"enabled"}, Fixed: map[string]string{"status": "disabled"}, Danger: true, Fresh: true},
			{Name: "delete", Operation: "deleteWebhookEndpoint", Danger: true, Fresh: true},
		},
		Except: []string{"status"},
	},
	{
		Name: "events", Prefix: "evt", Group: Developers,
		List: "listEvents", Get: "getEvent",
		Title: []string{"type"}, Columns: []string{"type", "object", "id", "created_at"}, Filters: []string{"type", "object_id", "created_after", "created_before"},
		Sections: []Section{{"event", []string{"type", "created_at", "request", "resource_version", "id"}}, {"data", []string{"data"}}},
		Actions:  []Action{{Name: "resend", Operation: "resendEvent", Fields: []string{"endpoint_id"}, Fresh: true}},
		Except:   []string{"api_version"},
	},
	{
		Name: "requests", Prefix: "req", Group: Developers,
		List: "listRequestLogs", Get: "getRequestLog",
		Title: []string{"id"}, Columns: []string{"created_at", "method", "route", "status", "code", "object_id", "duration_ms", "id"},
		Filters: []string{"status", "code", "method", "route", "credential_id", "object_id", "created_after", "created_before"},
		Sections: []Section{
			{"request", []string{"created_at", "method", "route", "path", "query_names", "object_id", "idempotency_key_hash", "id"}},
			{"response", []string{"status", "code", "param", "replayed", "duration_ms"}},
			{"client", []string{"credential_id", "credential_type", "sdk_version", "user_agent", "client_network"}},
		},
	},
	{
		Name: "feeds", Prefix: "cf", Group: Developers, Fresh: true,
		List: "listCalendarFeeds", Get: "getCalendarFeed", Create: "createCalendarFeed",
		Title: []string{"name"}, Columns: []string{"name", "unit_id", "include_details", "created_at"},
		Sections: []Section{{"feed", []string{"name", "unit_id", "include_details", "created_by"}}, times},
		New:      []string{"name", "unit_id", "include_details"},
		Actions:  []Action{{Name: "delete", Operation: "deleteCalendarFeed", Danger: true, Fresh: true}},
	},
	{
		Name: "keys", Prefix: "key", Group: Developers, Whole: true, Fresh: true,
		List: "listApiKeys", Create: "createApiKey",
		Title: []string{"name"}, Columns: []string{"name", "status", "id", "scopes", "created_at", "last_used_at"},
		Sections: []Section{{"key", []string{"name", "status", "scopes", "expires_at", "revoked_at", "last_used_at", "created_at", "id"}}},
		New:      []string{"name", "scopes"},
		Actions: []Action{
			{Name: "replace", Operation: "rotateApiKey", From: []string{"active"}, Fields: []string{"overlap_seconds"}, Fresh: true, Secret: true},
			{Name: "revoke", Operation: "revokeApiKey", From: []string{"active", "rotated"}, Danger: true, Fresh: true},
		},
	},
	{
		Name: "apps", Prefix: "app", Group: Developers, Whole: true, Fresh: true,
		List: "listApps", Create: "createApp", Update: "updateApp",
		Title: []string{"name"}, Columns: []string{"name", "id", "scopes", "published", "created_at"},
		Sections: []Section{{"app", []string{"name", "id", "redirect_uris", "scopes", "published", "reuse_leeway_seconds", "browser_origins"}}, {"times", []string{"created_at", "updated_at"}}},
		New:      []string{"name", "redirect_uris", "scopes", "published", "reuse_leeway_seconds", "browser_origins"},
		Edit:     []string{"name", "redirect_uris", "scopes", "published", "reuse_leeway_seconds", "browser_origins"},
		Actions:  []Action{{Name: "delete", Operation: "deleteApp", Danger: true, Fresh: true}},
	},
	{
		Name: "grants", Prefix: "gr", Group: Developers, Whole: true,
		List:  "listGrants",
		Title: []string{"app"}, Columns: []string{"app", "operator_id", "mode", "scopes", "created_at", "last_refreshed_at", "ends_at"},
		Sections: []Section{{"grant", []string{"app", "app_id", "operator_id", "mode", "scopes", "created_at", "last_refreshed_at", "ends_at", "id"}}},
		Actions:  []Action{{Name: "withdraw", Operation: "revokeGrant", Danger: true, Fresh: true}},
	},
	{
		Name: "members", Prefix: "op", Group: Settings, Whole: true, Fresh: true,
		List: "listMembers", Create: "inviteMember",
		Title: []string{"name", "email"}, Columns: []string{"name", "email", "role", "state", "second_factor", "created_at"},
		Sections: []Section{{"member", []string{"name", "email", "role", "state", "second_factor", "created_at", "id"}}},
		New:      []string{"email", "name", "role"},
		Actions: []Action{
			{Name: "role", Operation: "changeMember", Fields: []string{"role"}, Fresh: true},
			{Name: "remove", Operation: "removeMember", Danger: true, Fresh: true},
		},
	},
	{
		Name: "audit", Group: Settings, Needs: "read audit",
		List:    "listAudit",
		Columns: []string{"sequence", "at", "action", "object", "actor", "mode", "changes", "source"},
		Filters: []string{"actor", "action", "object", "from", "to", "mode"},
	},
}
