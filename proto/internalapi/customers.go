package internalapi

import "encoding/json"

// CustomerBatch is the body of POST /internal/v1/customers/batch: at most 100 ids, cu_….
type CustomerBatch struct {
	IDs []string `json:"ids"`
}

// CustomerBatchAnswer holds the public bodies of the customers that exist, in the order of the ids. It ends where it is
// as large as a page: the rest of the ids has not been looked up.
type CustomerBatchAnswer struct {
	Data []json.RawMessage `json:"data"`
	Rest []string          `json:"rest,omitempty"`
}
