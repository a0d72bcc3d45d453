package app

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/store"
)

// NewUnfinished creates and registers the metrics of accepts, conversions, refunds and recorded payments that wait for a completer.
func NewUnfinished(worker *pg.DB, now func() time.Time, reg prometheus.Registerer) *operation.Meter {
	count := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "chain_unfinished", Help: "Quote acceptances, lead conversions, refunds of credit notes and recorded payments that their first process did not complete, by resource.",
	}, []string{"resource"})
	age := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "chain_unfinished_oldest_seconds", Help: "Age of the oldest item of chain_unfinished since its first attempt; 0 when there is none.",
	}, []string{"resource"})
	reg.MustRegister(count, age)
	return &operation.Meter{Worker: worker, Now: now, Backlogs: []operation.Backlog{
		operation.Labelled(count, age, "quote", store.UnfinishedAccepts), operation.Labelled(count, age, "lead", store.UnfinishedConversions),
		operation.Labelled(count, age, "credit_note", store.UnfinishedNoteRefunds),
		operation.Labelled(count, age, "invoice_payment", store.UnfinishedReceipts),
	}}
}
