package internalapi

import "encoding/json"

// CustomerBatch is the body of POST /internal/v1/customers/batch: at most 100 ids, cu_….
type CustomerBatch struct {
	IDs []string `json:"ids"`
}

// CustomerBatchAnswer holds the public bodies of the customers that exist, in no order.
type CustomerBatchAnswer struct {
	Data []json.RawMessage `json:"data"`
}
