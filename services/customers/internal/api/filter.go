package api

import (
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/ids"
)

// filterID reads an id in a filter. No row has a malformed one, so the list is then empty.
func filterID[P ids.Prefix](q contract.Query, name string) (id *ids.ID[P], none bool) {
	if !q.Has(name) {
		return nil, false
	}
	parsed, err := ids.Parse[P](q.String(name))
	return &parsed, err != nil
}

func filterBool(q contract.Query, name string) *bool {
	if !q.Has(name) {
		return nil
	}
	v := q.String(name) == "true"
	return &v
}
