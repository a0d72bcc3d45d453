package store

import (
	"slices"

	"holdfast.dev/libs/page"

	"holdfast.dev/services/customers/internal/domain"
)

// conditions returns the conditions in the two index tables.
func conditions(f CustomerFilter) []page.Condition {
	var out []page.Condition
	for _, p := range domain.Prefixes(f.Search) {
		out = append(out, page.Condition{
			IDs: `select i.customer_id from customer_words i where i.tenant_id = @tenant and i.livemode = @live and i.word >= ? and i.word < ?`,
			// A customer has few words, a prefix has many customers: || keeps the word out of the index condition.
			Has: `(select true from customer_words i where i.tenant_id = @tenant and i.livemode = @live and i.customer_id = c.id
				and i.word || '' >= ? and i.word || '' < ? limit 1)`,
			Args: []any{p.From, p.Before},
		})
	}
	return slices.Concat(out, page.MetadataConditions(customerMetadata, "c", f.Metadata))
}
