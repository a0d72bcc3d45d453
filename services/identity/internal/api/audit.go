package api

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/quota"
	"holdfast.dev/libs/rest"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

const (
	maxAudit   = 100 // records per page
	auditTime  = 5 * time.Second
	verifyTime = 8 * time.Second // below the ten seconds that the console waits
)

// errAuditTime reports that a log is too long for a request.
var errAuditTime = apperr.ErrUnavailable.WithMessage("The audit log is too long for this request. Filter by object, start at a later page, or use the command line.")

// listAudit returns who changed what in the tenant. An operator without permission to read the log receives only the changes of one
// object, without their source.
func (a *API) listAudit(c *gin.Context, by asker) error {
	f, limit, err := auditFilter(c, by)
	if err != nil {
		return err
	}
	whole := by.Role.Can(domain.ReadAudit)
	if !whole && f.Object == "" {
		return domain.ErrPermission
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), auditTime)
	defer cancel()
	records, more, err := a.App.AuditPage(ctx, f, limit)
	if err != nil {
		return inTime(ctx, err)
	}
	return rest.Object(c, view.AuditPage(records, more, whole))
}

// VerificationLimits limits the audit verifications of a process, with one per tenant. A second one at the same time is rejected.
var VerificationLimits = quota.Limits{Work: "audit verifications", All: 4, PerTenant: 1}

var verifications = quota.NewSlots(VerificationLimits)

// verifyAudit verifies the audit chain of the tenant.
func (a *API) verifyAudit(c *gin.Context, _ asker) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), verifyTime)
	defer cancel()
	tenant, err := store.Tenant(ctx, a.DB.Read(ctx))
	if err != nil {
		return err
	}
	release, err := verifications.Acquire(ctx, caller.FromContext(ctx).Tenant)
	if err != nil {
		return err
	}
	defer release()
	v, err := a.App.VerifyAuditGently(ctx, tenant)
	if err != nil {
		return inTime(ctx, err)
	}
	return rest.Object(c, view.AuditVerdict(v.Records, v.Head, v.Broken))
}

// inTime replaces an error caused by the end of ctx.
func inTime(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errAuditTime.WithCause(err)
	}
	return err
}

func auditFilter(c *gin.Context, by asker) (f store.AuditFilter, limit int, err error) {
	q := httpx.Query(c)
	f = auditQuery(q, by.Tenant)
	if cursor := q.String("cursor"); cursor != "" {
		f.Before, err = strconv.ParseInt(cursor, 10, 64)
	}
	return f, q.Int("limit", maxAudit), err
}

// auditQuery returns the filter of a query, without its cursor.
func auditQuery(q contract.Query, tenant ids.Tenant) store.AuditFilter {
	f := store.AuditFilter{Tenant: tenant, Actor: q.String("actor"), Action: q.String("action"), Object: q.String("object")}
	f.From, _ = q.Time("from")
	f.To, _ = q.Time("to")
	if q.Has("mode") {
		f.Livemode = new(caller.Mode(q.String("mode")) == caller.Live)
	}
	return f
}
