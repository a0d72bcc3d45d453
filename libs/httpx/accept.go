package httpx

import (
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/contract"
)

// CSVType is the media type of lists as CSV, in Accept and in the contract.
const CSVType = "text/csv"

// CSVRoute returns the route of a list as CSV in logs and metrics. It is separate because its duration is unrelated to that of
// pages.
func CSVRoute(op *contract.Operation) string { return op.Path + ".csv" }

// PrefersCSV reports whether the response to the request must be CSV.
func PrefersCSV(c *gin.Context) bool { return AcceptsCSV(of(c).op, c.Request.Header) }

// AcceptsCSV reports whether the operation supports CSV and the Accept header prefers text/csv. On a tie, JSON wins if the header
// names application/json. Otherwise CSV wins, because the header names it in addition to a range such as */*.
func AcceptsCSV(op *contract.Operation, h http.Header) bool {
	if op == nil || op.CSV == nil {
		return false
	}
	const named = 3
	csv := 0.0
	json, exact := 0.0, 0 // exact is how exactly the header names JSON: from named for application/json to 1 for */*
	for _, values := range h["Accept"] {
		for entry := range strings.SplitSeq(values, ",") {
			name, params, err := mime.ParseMediaType(entry)
			if err != nil {
				continue
			}
			q := quality(params)
			if name == CSVType {
				csv = max(csv, q)
			}
			if rank := map[string]int{"application/json": named, "application/*": 2, "*/*": 1}[name]; rank > exact {
				json, exact = q, rank
			}
		}
	}
	return csv > json || csv > 0 && csv == json && exact < named
}

// quality returns the parameter q, 1 if it is absent and 0 if it is not a number.
func quality(params map[string]string) float64 {
	text, ok := params["q"]
	if !ok {
		return 1
	}
	q, err := strconv.ParseFloat(text, 64)
	if err != nil || q < 0 || q > 1 {
		return 0
	}
	return q
}
