package store

import (
	"maps"
	"slices"

	"holdfast.dev/libs/page"

	"holdfast.dev/services/customers/internal/domain"
)

// conditions are those in the two index tables.
func conditions(f CustomerFilter) []page.Condition {
	var out []page.Condition
	for _, p := range domain.Prefixes(f.Search) {
		out = append(out, page.Condition{
			IDs: `select i.customer_id from customer_words i where i.word >= ? and i.word < ?`,
			// The customer's own words are few, those of a prefix many: || keeps the word out of the index condition.
			Has:  `(select true from customer_words i where i.customer_id = c.id and i.word || '' >= ? and i.word || '' < ? limit 1)`,
			Args: []any{p.From, p.Before},
		})
	}
	for _, key := range slices.Sorted(maps.Keys(f.Metadata)) {
		out = append(out, page.Condition{
			IDs:  `select i.customer_id from customer_metadata i where i.key = ? and i.value = ?`,
			Has:  `(select true from customer_metadata i where i.key = ? and i.value = ? and i.customer_id = c.id limit 1)`,
			Args: []any{key, f.Metadata[key]},
		})
	}
	return out
}
