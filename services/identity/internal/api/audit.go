package api

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/quota"
	"holdfast.dev/libs/rest"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/internal/view"
)

const (
	maxAudit    = 100 // records of a page
	auditTime   = 5 * time.Second
	verifyTime  = 8 * time.Second // below the ten seconds that the console waits
	longestText = 200             // characters of a filter
)

// errAuditTime is a log that is too long for a request.
var errAuditTime = apperr.ErrUnavailable.WithMessage("The audit log is too long for this request. Name an object or a later page, or use the command line.")

// listAudit answers who changed what of the tenant. Whoever may not read the log reads what happened to one object, and not from where.
func (a *API) listAudit(c *gin.Context, by asker) error {
	f, limit, err := auditFilter(c, by)
	if err != nil {
		return err
	}
	whole := by.Role.May(domain.ReadAudit)
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

// VerificationLimits bound the audit verifications of a process, one of each tenant: a second one at the same time is refused.
var VerificationLimits = quota.Limits{Work: "audit verifications", All: 4, PerTenant: 1}

var verifications = quota.NewSlots(VerificationLimits)

// verifyAudit checks the chain of the tenant.
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
	verdicts, err := a.App.VerifyAudit(ctx, []domain.Tenant{tenant}, nil)
	if err != nil {
		return inTime(ctx, err)
	}
	v := verdicts[0]
	return rest.Object(c, view.AuditVerdict(v.Records, v.Head, v.Broken))
}

// inTime replaces an error that the end of ctx has caused.
func inTime(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errAuditTime.WithCause(err)
	}
	return err
}

func auditFilter(c *gin.Context, by asker) (f store.AuditFilter, limit int, err error) {
	f = store.AuditFilter{Tenant: by.Tenant, Actor: c.Query("actor"), Action: c.Query("action"), Object: c.Query("object")}
	var wrong []error
	read := func(name, message string, into func(text string) bool) {
		if text := c.Query(name); text != "" && !into(text) {
			wrong = append(wrong, apperr.Field(name, "%s", message))
		}
	}
	for _, name := range []string{"actor", "action", "object"} {
		read(name, "Must be at most 200 characters.", func(text string) bool { return len(text) <= longestText })
	}
	for name, into := range map[string]*time.Time{"from": &f.From, "to": &f.To} {
		read(name, "Must be an RFC 3339 date and time.", func(text string) bool {
			*into, err = time.Parse(time.RFC3339, text)
			return err == nil
		})
	}
	read("mode", "Must be one of: live, test.", func(text string) bool {
		f.Livemode = new(caller.Mode(text) == caller.Live)
		return *f.Livemode || caller.Mode(text) == caller.Test
	})
	read("cursor", "Must be the next_cursor of a page.", func(text string) bool {
		f.Before, err = strconv.ParseInt(text, 10, 64)
		return err == nil && f.Before > 0
	})
	limit = maxAudit
	read("limit", "Must be 1 to 100.", func(text string) bool {
		limit, err = strconv.Atoi(text)
		return err == nil && limit >= 1 && limit <= maxAudit
	})
	return f, limit, apperr.Join(wrong...)
}
