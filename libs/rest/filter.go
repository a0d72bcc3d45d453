package rest

import (
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/ids"
)

// FilterID reads an id in a filter of a list. none reports that the id is malformed, so that the list is empty.
func FilterID[P ids.Prefix](q contract.Query, name string) (id *ids.ID[P], none bool) {
	if !q.Has(name) {
		return nil, false
	}
	parsed, err := ids.Parse[P](q.String(name))
	return &parsed, err != nil
}

// FilterBool reads a filter that is true or false. It returns nil if the request does not contain the filter.
func FilterBool(q contract.Query, name string) *bool {
	if !q.Has(name) {
		return nil
	}
	v := q.String(name) == "true"
	return &v
}
