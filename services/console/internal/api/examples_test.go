package api_test

import (
	"strings"
	"time"
)

// oneID ends the id of each object in internal calls.
const oneID = "_01k00000000000000000000001"

// onePixel is a PNG image in Base64.
const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="

// internalExample returns the response to an internal call: nil if it has no body. Each call returns its own copy.
func internalExample(operation string) (body any, ok bool) {
	list := func(one map[string]any) any { return map[string]any{"data": []any{one}} }
	switch operation {
	case "listApiKeys":
		return list(apiKey()), true
	case "createApiKey", "rotateApiKey":
		k := apiKey()
		k["secret"] = "svc_test_secret"
		return k, true
	case "revokeApiKey":
		return apiKey(), true
	case "listMembers":
		return list(member()), true
	case "inviteMember":
		return map[string]any{"member": member(), "delivery": "by_hand", "link_token": "linksecret"}, true
	case "changeMember":
		return member(), true
	case "listApps":
		return list(oauthApp()), true
	case "createApp", "updateApp":
		return oauthApp(), true
	case "listGrants":
		return list(map[string]any{
			"id": "gr" + oneID, "app_id": "app" + oneID, "app": "Till", "operator_id": "op" + oneID, "operator": "olive@example.com", "mode": "test",
			"scopes": []any{"read:bookings"}, "created_at": "2027-02-01T14:00:00Z", "last_refreshed_at": nil, "ends_at": "2027-08-01T14:00:00Z",
		}), true
	case "removeMember", "deleteApp", "revokeGrant", "deleteView", "disconnectGatewayAccount":
		return nil, true
	case "listAudit":
		return map[string]any{"data": []any{auditRecord()}, "next_cursor": nil}, true
	case "verifyAudit":
		return map[string]any{"records": 12, "head": map[string]any{"sequence": 12, "hash": "ab12"}, "broken": nil}, true
	case "listViews":
		return list(savedView()), true
	case "saveView":
		return savedView(), true
	}
	return settingsExample(operation)
}

func settingsExample(operation string) (body any, ok bool) {
	switch operation {
	case "lookupTenantLogo":
		return map[string]any{"hash": strings.Repeat("ab", 32), "media_type": "image/png", "logo": onePixel}, true
	case "lookupTenant", "updateTenant", "setTenantLogo":
		return map[string]any{
			"id": "tn" + oneID, "slug": "alpha", "name": "Alpha", "timezone": "America/New_York", "currency": "USD", "country": "US", "policy_version": 1, "clock": nil,
			"booking_policy": map[string]any{
				"auto_confirm": false, "hold_ttl_minutes": 30, "min_notice_minutes": 120, "max_advance_days": 365, "confirm_on_deposit": true,
				"refund_rules": []any{map[string]any{"hours_before": 48, "percent": 50}}, "auto_refund": false, "refund_late_payments": true,
			},
			"invoice_prefix": "INV-", "invoice_year": true, "legal_name": "Alpha Ltd", "address": "1 Main Street", "tax_id": "", "logo_hash": strings.Repeat("ab", 32),
		}, true
	case "getGatewayAccount", "connectGatewayAccount":
		return map[string]any{
			"id": "ga" + oneID, "provider": "stripe", "account": "acct_1", "country": "US", "connected": true, "publishable_key": "pk_test_1",
			"webhook_path": "/stripe/webhooks/ga" + oneID, "events": "late", "created_at": "2027-02-01T14:00:00Z",
		}, true
	case "listOwedRefunds":
		return map[string]any{"data": []any{owedRefund()}, "count": 1, "has_more": false, "next_cursor": nil}, true
	case "getOwedRefund", "retryOwedRefund":
		return owedRefund(), true
	case "closeOwedRefund":
		o := owedRefund()
		o["status"], o["closed_at"], o["closed_by"], o["note"] = "closed", "2027-03-01T17:00:00Z", "op"+oneID, "Returned in cash."
		return o, true
	case "listPackagePrices":
		return map[string]any{
			"package_id": "pkg" + oneID, "service_id": "srv" + oneID, "name": "Two hours", "currency": "USD", "data": []any{
				map[string]any{"date": "2027-01-01", "total_amount": 12500, "deposit_amount": 2500, "holiday": map[string]any{"id": "hr" + oneID, "name": "New Year", "multiplier_bps": 12500}},
				map[string]any{"date": "2027-01-02", "total_amount": 10000, "deposit_amount": 2000, "holiday": nil},
			},
		}, true
	case "listDueBookings":
		hold := calendarBooking()
		hold["status"], hold["hold_expires_at"] = "pending", noon.Add(time.Hour).Format(time.RFC3339)
		return map[string]any{"holds": []any{hold}, "unpaid": []any{calendarBooking()}}, true
	case "getSentDelivery":
		return map[string]any{
			"delivery": failedDelivery("we"+oneID, "whd"+oneID), "body": `{"id":"evt_1","type":"booking.created"}`, "sample": false,
			"requests": []any{map[string]any{"number": 1, "headers": []any{map[string]any{"name": "Service-Delivery-Attempt", "value": "1"}, map[string]any{"name": "Service-Signature", "value": "t=1,v1=…"}}}},
		}, true
	case "listFailingDeliveries":
		return map[string]any{"data": []any{failedDelivery("we"+oneID, "whd"+oneID)}}, true
	case "listCalendar":
		return map[string]any{"data": []any{calendarBooking()}, "timezone": "America/New_York", "truncated": false}, true
	case "listStatistics":
		days := []any{}
		for i := range 30 {
			day := noon.AddDate(0, 0, i-29).Format(time.DateOnly)
			days = append(days, map[string]any{"date": day, "revenue": 2500 * (i % 7), "bookings": i % 4, "booked_minutes": 60 * (i % 7), "open_minutes": 600})
		}
		return map[string]any{"currency": "USD", "timezone": "America/New_York", "data": days}, true
	}
	return nil, false
}

// owedRefund returns a refund that a policy requires and the gateway refuses.
func owedRefund() map[string]any {
	return map[string]any{
		"id": "rfo" + oneID, "cause": "cancelled", "booking_id": "bk" + oneID, "payment_intent_id": nil, "amount": 12500, "remaining_amount": 12500, "currency": "USD",
		"status": "open", "tries": 2, "failure": map[string]any{"code": "charge_disputed", "message": "The charge has a dispute."},
		"failed_at": "2027-02-27T09:30:00Z", "next_try_at": "2027-03-02T09:30:00Z", "closed_at": nil, "closed_by": nil, "note": nil, "version": 3,
		"created_at": "2027-02-27T09:00:00Z",
	}
}

// failedDelivery returns a delivery that failed once.
func failedDelivery(endpoint, id string) map[string]any {
	return map[string]any{
		"id": id, "object": "delivery", "endpoint_id": endpoint, "event_id": "evt" + oneID, "event_type": "booking.created", "status": "pending",
		"failure_reason": nil, "next_attempt_at": "2027-03-01T17:30:00Z", "created_at": "2027-03-01T16:00:00Z", "updated_at": "2027-03-01T16:00:00Z", "mode": "test",
		"attempts": []any{map[string]any{"number": 1, "at": "2027-03-01T16:00:00Z", "status_code": 503, "duration_ms": 9, "error": "the response status is not 2xx", "response_body": "the till is closed"}},
	}
}

// apiKey returns a valid API key.
func apiKey() map[string]any {
	return map[string]any{
		"id": "key" + oneID, "name": "Till", "mode": "test", "status": "active", "scopes": []any{"read:bookings"}, "created_at": "2027-02-01T14:00:00Z",
		"last_used_at": nil, "expires_at": nil, "revoked_at": nil,
	}
}

func member() map[string]any {
	return map[string]any{
		"id": "op" + oneID, "email": "olive@example.com", "name": "Olive", "role": "staff", "state": "active", "second_factor": true, "created_at": "2027-02-01T14:00:00Z",
	}
}

func oauthApp() map[string]any {
	return map[string]any{
		"id": "app" + oneID, "name": "Till", "redirect_uris": []any{"https://app.example/callback"}, "scopes": []any{"read:bookings"}, "published": false,
		"reuse_leeway_seconds": 0, "browser_origins": []any{}, "created_at": "2027-02-01T14:00:00Z", "updated_at": "2027-02-01T14:00:00Z",
	}
}

func auditRecord() map[string]any {
	return map[string]any{
		"sequence": 12, "at": "2027-02-01T14:00:00Z", "mode": "test", "actor": "op" + oneID, "action": "key.create", "object": "key" + oneID,
		"before": nil, "after": map[string]any{"name": "Till"}, "source": "console:req_1",
	}
}

func savedView() map[string]any {
	return map[string]any{"id": "view" + oneID, "list": "bookings", "name": "Open", "query": "status=pending", "created_at": "2027-02-01T14:00:00Z"}
}
