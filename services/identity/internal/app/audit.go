package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/inbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/quota"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

const (
	auditBatch  = 1000
	gentleBatch = 250
	consumer    = "identity" // this service's name in the inbox
)

// Reported is the record of another service's action, with the event that reports it. The record contains its tenant and mode.
type Reported struct {
	Event   ids.Event
	Record  domain.Record
	Gateway *domain.Gateway // the state of a payment gateway account in the event; nil: none
}

func (r Reported) inboxed() inbox.Event {
	return inbox.Event{Tenant: r.Record.TenantID, Livemode: r.Record.Livemode, ID: r.Event}
}

// RecordAudit appends records of any tenants to their audit logs in the given order, all or none. It appends each event once, even
// if it is delivered repeatedly. The error is ErrTenantNotFound if a tenant does not exist.
func (a *App) RecordAudit(ctx context.Context, list []Reported) error {
	tenants, events := make([]ids.Tenant, len(list)), make([]inbox.Event, len(list))
	for i, r := range list {
		tenants[i], events[i] = r.Record.TenantID, r.inboxed()
	}
	err := a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		heads, err := store.AuditHeadsForUpdate(ctx, tx, tenants) // before the inbox, so that no two batches lock its rows in different orders
		if err != nil {
			return err
		}
		fresh, err := inbox.OnceEach(ctx, tx, consumer, events)
		if err != nil {
			return err
		}
		records, err := chain(heads, list, fresh)
		if err != nil {
			return err
		}
		for _, r := range list {
			if r.Gateway != nil {
				store.PutGateway(tx, r.Record.TenantID, r.Record.Livemode, *r.Gateway)
			}
		}
		if len(records) > 0 {
			store.AppendAudits(tx, records)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record audit of %d events: %w", len(list), err)
	}
	return nil
}

// chain numbers the records of new events after the heads. An event that appears twice in the list gets one record.
func chain(heads map[ids.Tenant]domain.Head, list []Reported, fresh map[inbox.Event]bool) ([]domain.Record, error) {
	records := make([]domain.Record, 0, len(fresh))
	for _, r := range list {
		if !fresh[r.inboxed()] {
			continue
		}
		delete(fresh, r.inboxed())
		record, head, err := heads[r.Record.TenantID].Append(r.Record)
		if err != nil {
			return nil, err
		}
		heads[r.Record.TenantID] = head
		records = append(records, record)
	}
	return records, nil
}

// ListAudit passes at most limit of the records that match the filter to show, newest first. It calls show for each page as soon as
// the page is read.
func (a *App) ListAudit(ctx context.Context, f store.AuditFilter, limit int, show func([]domain.Record) error) error {
	for limit > 0 {
		records, more, err := a.AuditPage(ctx, f, min(limit, auditBatch))
		if err == nil {
			err = show(records)
		}
		if err != nil || !more {
			return err
		}
		limit, f.Before = limit-len(records), records[len(records)-1].Seq
	}
	return nil
}

// AuditPage returns at most limit of the records that match the filter, newest first, and whether there are more.
func (a *App) AuditPage(ctx context.Context, f store.AuditFilter, limit int) (records []domain.Record, more bool, err error) {
	err = a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		records, err = store.AuditPage(ctx, tx, f, limit+1)
		return err
	})
	more = len(records) > limit
	return records[:min(len(records), limit)], more, err
}

// Verdict is the result of verifying one tenant's audit chain.
type Verdict struct {
	Tenant  string             `json:"tenant"`  // slug
	Records int64              `json:"records"` // number of valid records
	Head    domain.PrintedHead `json:"head"`    // the last of them
	Broken  string             `json:"broken"`  // where the chain is first broken; "" if it is valid
}

// VerifyAudit verifies the chain of each tenant from its first record to its stored head. It also checks the heads that were saved
// elsewhere, by slug. A person with write access to the database can shorten the log and its head together, but cannot change the
// saved head.
func (a *App) VerifyAudit(ctx context.Context, tenants []domain.Tenant, saved map[string]domain.PrintedHead) ([]Verdict, error) {
	verdicts := make([]Verdict, 0, len(tenants))
	for _, t := range tenants {
		w := walk{at: domain.NewHead(t.ID), saved: saved[t.Slug]}
		if err := w.run(ctx, a.Worker); err != nil {
			return nil, fmt.Errorf("tenant %s: %w", t.Slug, err)
		}
		verdicts = append(verdicts, w.verdict(t))
	}
	return verdicts, nil
}

// VerifyAuditGently is VerifyAudit for one tenant while other requests run. It pauses after each batch for as long as the batch
// took.
func (a *App) VerifyAuditGently(ctx context.Context, t domain.Tenant) (Verdict, error) {
	w := walk{at: domain.NewHead(t.ID), gentle: true}
	err := w.run(ctx, a.Worker)
	return w.verdict(t), err
}

// walk verifies one chain.
type walk struct {
	at     domain.Head
	saved  domain.PrintedHead // number 0 if none was saved
	gentle bool               // rests after each batch
	broken string
}

func (w *walk) verdict(t domain.Tenant) Verdict {
	return Verdict{Tenant: t.Slug, Records: w.at.Seq, Head: w.at.Printed(), Broken: w.broken}
}

// batch returns the number of records to read at a time: few if other requests must not wait long.
func (w *walk) batch() int {
	if w.gentle {
		return gentleBatch
	}
	return auditBatch
}

// run reads the head before the records, so that a record added in the meantime is not an error.
func (w *walk) run(ctx context.Context, db *pg.DB) error {
	var end store.AuditEnd
	err := db.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		end, err = store.AuditHead(ctx, tx, w.at.TenantID)
		return err
	})
	if errors.Is(err, domain.ErrHeadMissing) {
		w.broken = err.Error()
		return nil
	}
	for err == nil && w.broken == "" && w.at.Seq < end.Seq {
		began := time.Now()
		var records []domain.Record
		err = db.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
			records, err = store.Audit(ctx, tx, w.at.TenantID, w.at.Seq, w.batch())
			return err
		})
		if err == nil {
			w.follow(records, end.Seq)
		}
		if err == nil && w.gentle && w.broken == "" && w.at.Seq < end.Seq {
			err = quota.Rest(ctx, time.Since(began))
		}
	}
	if err == nil && w.broken == "" {
		w.broken = w.end(end)
	}
	return err
}

// follow verifies the next records, up to the record with the number last.
func (w *walk) follow(records []domain.Record, last int64) {
	if len(records) == 0 {
		w.broken = fmt.Sprintf("record %d is missing", w.at.Seq+1)
	}
	for _, r := range records[:min(int64(len(records)), last-w.at.Seq)] {
		next, fault := w.at.Follow(r)
		if fault != nil {
			w.broken = fault.Error()
			return
		}
		if w.at = next; w.at.Seq == w.saved.Seq && w.at.Printed() != w.saved {
			w.broken = fmt.Sprintf("record %d is not the one that was kept", w.at.Seq)
			return
		}
	}
}

// end returns the error at the end of the chain, or "" if there is none.
func (w *walk) end(end store.AuditEnd) string {
	switch {
	case !bytes.Equal(w.at.Hash, end.Hash):
		return fmt.Sprintf("record %d is not the one that the head names", w.at.Seq)
	case end.Stray != nil:
		return fmt.Sprintf("record %d lies beyond the chain, which ends at %d", *end.Stray, end.Seq)
	case w.saved.Seq > end.Seq:
		return fmt.Sprintf("the chain ends at record %d, and record %d was kept", end.Seq, w.saved.Seq)
	}
	return ""
}
